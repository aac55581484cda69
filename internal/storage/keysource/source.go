package keysource

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/storage/atrest"
)

// Source is what the flags say. The zero value is none: a directory that is not encrypted.
type Source struct {
	KeyFile string // a file of keys: see ReadKeyFile
	KMS     string // unix:///PATH: the socket of a plug-in; it wraps, if there is a file, too
}

// IsZero reports whether there is no key.
func (s Source) IsZero() bool { return s == Source{} }

// Flags for the help of commands.
const (
	KeyFileFlag = "encryption-key-file"
	KeyFileHelp = "file with the key that the keys of an encrypted data directory are wrapped with"
	KMSFlag     = "encryption-kms"
	KMSHelp     = "unix:///PATH: socket of the Kubernetes KMS v2 plug-in that has wrapped them"
)

// Providers opens them. A file is read now; a plug-in is asked when it is needed.
func (s Source) Providers() (atrest.Providers, error) {
	var all atrest.Providers
	if s.KMS != "" {
		plugin, err := NewKMS(s.KMS)
		if err != nil {
			return nil, fmt.Errorf("--%s %s: %w", KMSFlag, s.KMS, err)
		}
		all = append(all, plugin)
	}
	if s.KeyFile != "" {
		file, err := ReadKeyFile(s.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", KeyFileFlag, err)
		}
		all = append(all, file)
	}
	return all, nil
}

// ErrKeyNeeded means that a data directory is encrypted, and no key was given.
var ErrKeyNeeded = errors.New("it is encrypted: give --" + KeyFileFlag + " or --" + KMSFlag +
	", as the member was started with")

// ErrNoKeyFile means that a data directory is encrypted, and the file of its key is not there.
var ErrNoKeyFile = errors.New("it is encrypted, and its key is not there")

// Open returns the ring of a data directory, or nil if there is none. It changes nothing.
func (s Source) Open(ctx context.Context, fs env.FS, dataDir string) (*atrest.Ring, error) {
	has, err := atrest.HasRing(fs, dataDir)
	if err != nil || !has {
		return nil, err
	}
	if s.IsZero() {
		return nil, fmt.Errorf("--data-dir %s: %w", dataDir, ErrKeyNeeded)
	}
	providers, err := s.Providers()
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("--data-dir %s: %w: %w", dataDir, ErrNoKeyFile, err)
	case err != nil:
		return nil, err
	}
	return atrest.OpenRing(ctx, fs, dataDir, providers)
}

// Create makes the ring of a data directory that is there and has none.
func (s Source) Create(ctx context.Context, fs env.FS, dataDir string, now time.Time) (*atrest.Ring, error) {
	providers, err := s.Providers()
	if err != nil {
		return nil, err
	}
	return atrest.CreateRing(ctx, fs, dataDir, providers, now)
}

// Rotate gives the ring a new key, wrapped by what the source has now: the file is read again.
func (s Source) Rotate(ctx context.Context, ring *atrest.Ring, now time.Time) (*atrest.Key, error) {
	providers, err := s.Providers()
	if err != nil {
		return nil, err
	}
	return ring.Rotate(ctx, providers, now)
}

// Current is the name of the key that a rotation would wrap the ring with now, and of its provider.
func (s Source) Current(ctx context.Context) (provider, keyID string, err error) {
	providers, err := s.Providers()
	if err != nil || len(providers) == 0 {
		return "", "", err
	}
	keyID, err = providers[0].Current(ctx)
	return providers[0].Name(), keyID, err
}
