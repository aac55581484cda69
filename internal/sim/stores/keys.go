package stores

import (
	"context"
	"time"

	"github.com/quorate/quorate/internal/sim/disk"
	"github.com/quorate/quorate/internal/storage/atrest"
)

// mostKeys bounds the keys of a run.
const mostKeys = 50

// newRing makes a ring of keys on a disk that no fault strikes: one for all machines, as copies of disks move between them.
func newRing() (*atrest.Ring, error) {
	fs := disk.New()
	if err := fs.MkdirAll("keys", 0o700); err != nil {
		return nil, err
	}
	return atrest.CreateRing(context.Background(), fs, "keys", atrest.Providers{nobody{}}, time.Time{})
}

// nobody wraps a key in nothing.
type nobody struct{}

// Name implements atrest.Provider.
func (nobody) Name() string { return "simulated" }

// Wrap implements atrest.Provider.
func (nobody) Current(context.Context) (string, error) { return "nobody", nil }

func (nobody) Wrap(_ context.Context, key []byte) (atrest.Wrapped, error) {
	return atrest.Wrapped{Ciphertext: append([]byte(nil), key...)}, nil
}

// Unwrap implements atrest.Provider.
func (nobody) Unwrap(_ context.Context, w *atrest.Wrapped) ([]byte, error) { return w.Ciphertext, nil }
