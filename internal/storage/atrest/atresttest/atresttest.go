package atresttest

import (
	"context"
	"errors"
	"time"

	"github.com/quorate/quorate/internal/storage/atrest"
	"github.com/quorate/quorate/internal/storage/files/filestest"
)

// Open is a provider that hides nothing. Failure, if set, is the error of every call.
type Open struct{ Failure error }

// Name implements atrest.Provider.
func (Open) Name() string { return "test" }

// Wrap implements atrest.Provider.
func (o Open) Wrap(_ context.Context, key []byte) (atrest.Wrapped, error) {
	return atrest.Wrapped{KeyID: "open", Ciphertext: append([]byte(nil), key...)}, o.Failure
}

// Unwrap implements atrest.Provider.
func (o Open) Unwrap(_ context.Context, w *atrest.Wrapped) ([]byte, error) {
	return w.Ciphertext, o.Failure
}

// Current implements Provider.
func (o Open) Current(context.Context) (string, error) { return "open", o.Failure }

// Ring returns a ring on a disk of its own.
func Ring() *atrest.Ring {
	fs := filestest.NewMem()
	err := fs.MkdirAll("data", 0o700)
	ring, ringErr := atrest.CreateRing(context.Background(), fs, "data", atrest.Providers{Open{}}, time.Unix(1796000000, 0))
	if err = errors.Join(err, ringErr); err != nil {
		panic(err)
	}
	return ring
}
