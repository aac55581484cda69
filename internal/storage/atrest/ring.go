package atrest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/aes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/storage/durable"
)

// RingFile is the name of the file with the ring, in the data directory.
const RingFile = "keyring"

// ringForm is the number in its first line.
const ringForm = 1

// maxKeys bounds the keys of a ring, as old ones are never dropped.
const maxKeys = 1000

// ringUse is what the box with the keys is bound to.
const ringUse = "quorate keyring 1"

// ringRecord is the content of the file: a key that a provider has wrapped, and a box with the data keys that this key sealed.
type ringRecord struct {
	Wrapped
	Sealed []byte `json:"keys"`
}

// ringKeys is what the box holds.
type ringKeys struct {
	Active string    `json:"active"`
	Keys   []ringKey `json:"keys"`
}

type ringKey struct {
	ID      string    `json:"id"`
	Created time.Time `json:"created"`
	Secret  []byte    `json:"secret"`
}

// Ring has the data keys of a data directory. Any goroutine may use it.
type Ring struct {
	fs        env.FS
	path      string
	providers Providers

	writing sync.Mutex // held while the file is replaced

	mu      sync.RWMutex
	keys    []*Key // oldest first
	active  *Key
	wrapped Wrapped
	text    string // of the file
}

// HasRing reports whether a data directory has a ring, and so is encrypted. A place that is no directory has none: the start
// says what is wrong with it.
func HasRing(fs env.FS, dataDir string) (bool, error) {
	_, err := fs.Stat(fs.PathJoin(dataDir, RingFile))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		return true, nil
	}
	if place, stat := fs.Stat(dataDir); stat == nil && !place.IsDir() {
		return false, nil
	}
	return false, fmt.Errorf("look for the ring of keys in %s: %w", dataDir, err)
}

// CreateRing makes the ring of a data directory, which must be there, with one key, durably.
func CreateRing(ctx context.Context, fs env.FS, dataDir string, providers Providers, now time.Time) (*Ring, error) {
	r := &Ring{fs: fs, path: fs.PathJoin(dataDir, RingFile), providers: providers}
	key := newKey(now)
	return r, r.write(ctx, []*Key{key}, key)
}

// NewPassingRing returns a ring that is written nowhere: what is encrypted with it is lost with the process.
func NewPassingRing(now time.Time) *Ring {
	key := newKey(now)
	return &Ring{keys: []*Key{key}, active: key}
}

// OpenRing reads the ring of a data directory. The error says what to do, but ErrDamagedRing only what is wrong: the caller
// knows how a member starts over.
func OpenRing(ctx context.Context, fs env.FS, dataDir string, providers Providers) (*Ring, error) {
	r := &Ring{fs: fs, path: fs.PathJoin(dataDir, RingFile), providers: providers}
	switch err := r.read(ctx); {
	case errors.Is(err, durable.ErrCorrupt):
		return nil, fmt.Errorf("%s: %w: %w", r.path, ErrDamagedRing, err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", r.path, err)
	}
	return r, nil
}

func (r *Ring) read(ctx context.Context) error {
	whole, err := durable.ReadSealed(r.fs, r.path)
	text := ""
	if err == nil {
		text, err = durable.CutHead(whole, RingFile, ringForm)
	}
	if err != nil {
		return err
	}
	var record ringRecord
	if err := json.Unmarshal([]byte(text), &record); err != nil {
		return fmt.Errorf("%w: %w", durable.ErrCorrupt, err)
	}
	master, err := r.providers.unwrap(ctx, &record.Wrapped)
	if err != nil {
		return err
	}
	block, err := aes.NewCipher(master)
	if err != nil {
		return err
	}
	opened, err := gcm(block).Open(nil, nil, record.Sealed, []byte(ringUse))
	if err != nil {
		return fmt.Errorf("%w: %w", durable.ErrCorrupt, err)
	}
	var held ringKeys
	if err := json.Unmarshal(opened, &held); err != nil {
		return fmt.Errorf("%w: %w", durable.ErrCorrupt, err)
	}
	r.wrapped, r.text = record.Wrapped, whole
	return r.adopt(&held)
}

func (r *Ring) adopt(held *ringKeys) error {
	for i := range held.Keys {
		k := &Key{Created: held.Keys[i].Created}
		id, err := hex.DecodeString(held.Keys[i].ID)
		if err != nil || len(id) != len(k.ID) || len(held.Keys[i].Secret) != KeyBytes {
			return fmt.Errorf("%w: key %d", durable.ErrCorrupt, i+1)
		}
		copy(k.ID[:], id)
		copy(k.secret[:], held.Keys[i].Secret)
		if r.keys = append(r.keys, k); held.Keys[i].ID == held.Active {
			r.active = k
		}
	}
	if r.active == nil {
		return fmt.Errorf("%w: it names no active key", durable.ErrCorrupt)
	}
	return nil
}

// write replaces the file, wrapped anew, and then what Active and Find return. After an error the file has the former content
// or the new one, and the ring the former.
func (r *Ring) write(ctx context.Context, keys []*Key, active *Key) error {
	held := ringKeys{Active: active.ID.String()}
	for _, k := range keys {
		held.Keys = append(held.Keys, ringKey{k.ID.String(), k.Created, k.secret[:]})
	}
	plain, err := json.Marshal(&held)
	if err != nil {
		return err
	}
	var master [KeyBytes]byte
	_, _ = rand.Read(master[:]) // never fails
	block, err := aes.NewCipher(master[:])
	if err != nil {
		return err
	}
	record := ringRecord{Sealed: gcm(block).Seal(nil, nil, plain, []byte(ringUse))}
	if record.Wrapped, err = r.providers.wrap(ctx, master[:]); err != nil {
		return err
	}
	// A provider that cannot open what it has wrapped is met now, and not by the next start.
	if back, err := r.providers.unwrap(ctx, &record.Wrapped); err != nil || !bytes.Equal(back, master[:]) {
		return fmt.Errorf("it does not open what it has just wrapped; nothing was changed: %w", cmp.Or(err, errOtherKey))
	}
	text, err := json.Marshal(&record)
	if err != nil {
		return err
	}
	whole := durable.Head(RingFile, ringForm) + string(text) + "\n"
	if err := durable.WriteSealed(r.fs, r.path, whole); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keys, r.active, r.wrapped, r.text = keys, active, record.Wrapped, whole
	return nil
}

var errOtherKey = errors.New("it returned another key")

// IsCurrent reports whether the file is still as it was read or written. A caller that opened a ring before it had the lock of
// the directory must ask, and open it again if it is not: another process may have rotated the keys.
func (r *Ring) IsCurrent() (bool, error) {
	text, err := durable.ReadSealed(r.fs, r.path)
	r.mu.RLock()
	defer r.mu.RUnlock()
	return text == r.text, err
}

// Active returns the key that new files begin with.
func (r *Ring) Active() *Key {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.active
}

// Find returns a key, or ErrNoKey.
func (r *Ring) Find(id KeyID) (*Key, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for i := len(r.keys) - 1; i >= 0; i-- {
		if r.keys[i].ID == id {
			return r.keys[i], nil
		}
	}
	return nil, fmt.Errorf("%w: %v", ErrNoKey, id)
}

// Keys returns all keys, oldest first, the active one, and by which key of which provider the ring is wrapped.
func (r *Ring) Keys() (keys []*Key, active *Key, wrapped Wrapped) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Clone(r.keys), r.active, r.wrapped
}

// Rotate makes a new key the active one, and wraps the ring anew by what the first of the providers has as its key now. Former
// keys stay for the files that have them. providers replace those of the ring once that is durable; nil: they stay.
func (r *Ring) Rotate(ctx context.Context, providers Providers, now time.Time) (*Key, error) {
	r.writing.Lock()
	defer r.writing.Unlock()
	former := r.providers
	if providers != nil {
		r.providers = providers
	}
	keys, _, _ := r.Keys()
	if len(keys) >= maxKeys {
		return nil, fmt.Errorf("the ring has %d keys, which is the most: reset this member to begin with a new ring", len(keys))
	}
	key := newKey(now)
	if err := r.write(ctx, append(keys, key), key); err != nil {
		r.providers = former
		return nil, fmt.Errorf("rotate the keys of %s: nothing has a new key: %w", r.path, err)
	}
	return key, nil
}
