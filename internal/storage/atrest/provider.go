package atrest

import (
	"context"
	"errors"
	"fmt"
)

// Wrapped is a key that a Provider has encrypted.
type Wrapped struct {
	Provider    string            `json:"provider"`
	KeyID       string            `json:"key"` // of the key that wrapped it, as the provider names it
	Annotations map[string][]byte `json:"annotations,omitempty"`
	Ciphertext  []byte            `json:"wrapped"`
}

// Provider has keys that never come to this machine's disks: it wraps the ring's own key, and unwraps it.
type Provider interface {
	// Name is stored with what the provider wraps: a Provider of the same name unwraps it.
	Name() string
	// Wrap encrypts a key of KeyBytes.
	Wrap(ctx context.Context, key []byte) (Wrapped, error)
	// Unwrap returns what Wrap was given. The error says what to do.
	Unwrap(ctx context.Context, wrapped *Wrapped) ([]byte, error)
	// Current is the name of the key that Wrap would use now.
	Current(ctx context.Context) (keyID string, err error)
}

// Providers open a ring, each one what it has wrapped. The first one wraps.
type Providers []Provider

// ErrOtherProvider means that the providers that are there did not wrap the ring.
var ErrOtherProvider = errors.New("the ring of keys was wrapped otherwise")

func (p Providers) wrap(ctx context.Context, key []byte) (w Wrapped, err error) {
	if len(p) == 0 {
		return w, errors.New("there is no key to wrap the ring of keys with")
	}
	if w, err = p[0].Wrap(ctx, key); err != nil {
		return w, fmt.Errorf("wrap the ring of keys: %w", err)
	}
	w.Provider = p[0].Name()
	return w, nil
}

func (p Providers) unwrap(ctx context.Context, w *Wrapped) ([]byte, error) {
	for _, provider := range p {
		if provider.Name() != w.Provider {
			continue
		}
		key, err := provider.Unwrap(ctx, w)
		if err == nil && len(key) != KeyBytes {
			err = fmt.Errorf("the key has %d bytes, not %d", len(key), KeyBytes)
		}
		if err != nil {
			return nil, fmt.Errorf("unwrap the ring of keys: %w", err)
		}
		return key, nil
	}
	return nil, fmt.Errorf("%w: by %q: give that one, too", ErrOtherProvider, w.Provider)
}
