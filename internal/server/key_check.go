package server

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/storage/atrest"
	"github.com/quorate/quorate/internal/storage/keysource"
)

const (
	// checkKeysEvery is how often a member opens its ring of keys anew. A start needs that: what is lost meanwhile is found
	// while the process still has the keys, and a rotation can wrap them with another one.
	checkKeysEvery = time.Minute
	// checkKeysPatience bounds how long one check waits for a key service.
	checkKeysPatience = 10 * time.Second
)

// keyCheck opens the ring of keys of a data directory now and then as a start does, beside the one that is in use. It changes
// nothing.
type keyCheck struct {
	fs      env.FS
	dataDir string
	ring    *atrest.Ring
	source  keysource.Source
	logger  *slog.Logger
	last    atomic.Pointer[quoratepb.ObservedKeys]
}

// lookAgain checks once, and logs what has changed.
func (k *keyCheck) lookAgain(ctx context.Context) {
	now := k.openAgain(ctx)
	if context.Cause(ctx) != nil { // the member stops
		return
	}
	if before := k.last.Swap(now); now.GetTrouble() != before.GetTrouble() {
		k.tellChange(now)
	}
}

func (k *keyCheck) tellChange(now *quoratepb.ObservedKeys) {
	if why := now.GetTrouble(); why != "" {
		k.logger.Error("this member could not open its encrypted data directory at its next start: do not stop it before that "+
			"is repaired, or `quorate key rotate` has wrapped its keys anew", "err", why)
		return
	}
	k.logger.Info("this member could open its encrypted data directory again")
}

func (k *keyCheck) openAgain(ctx context.Context) *quoratepb.ObservedKeys {
	ctx, cancel := context.WithTimeout(ctx, checkKeysPatience)
	defer cancel()
	active := k.ring.Active()
	opened, err := k.source.Open(ctx, k.fs, k.dataDir)
	switch {
	case err == nil && opened == nil:
		err = fmt.Errorf("%s is not in %s any more", atrest.RingFile, k.dataDir)
	case err == nil:
		if _, missing := opened.Find(active.ID); missing != nil {
			err = fmt.Errorf("%s in %s is an older one, or another member's: it lacks the key of new files", atrest.RingFile,
				k.dataDir)
		}
	}
	now := k.wrappedNow()
	now.Asked = true
	if err != nil {
		now.Trouble = err.Error()
	}
	if provider, current, err := k.source.Current(ctx); err == nil && provider == now.GetProvider() {
		now.Current = current
	} else if err == nil {
		now.Current = provider + ": " + current
	}
	return now
}

// wrappedNow names the key that has wrapped the ring.
func (k *keyCheck) wrappedNow() *quoratepb.ObservedKeys {
	_, _, by := k.ring.Keys()
	return &quoratepb.ObservedKeys{Provider: by.Provider, WrappedBy: by.KeyID}
}

// lastLook is the outcome of the last check; nil: the data directory is not encrypted.
func (k *keyCheck) lastLook() *quoratepb.ObservedKeys {
	if k == nil {
		return nil
	}
	if last := k.last.Load(); last != nil {
		return last
	}
	return k.wrappedNow()
}
