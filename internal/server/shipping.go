package server

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/backup/feed"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/server/shipper"
	"github.com/quorate/quorate/internal/storage/objects"
	objectplace "github.com/quorate/quorate/internal/storage/objects/place"
	"github.com/quorate/quorate/internal/storage/objects/retry"
	"github.com/quorate/quorate/internal/storage/snapshot"
)

// shippedBytes is what the continuous backup holds in memory.
func (s *Server) shippedBytes() (bytes int64) {
	if s.feed != nil {
		bytes = s.feed.Held()
	}
	if ships := s.shipper.Load(); ships != nil {
		bytes += ships.Held()
	}
	if place := s.shipPlace.Load(); place != nil {
		bytes += place.Held()
	}
	return bytes
}

// placePatience is for one operation on a place. Package ship tries again later.
var placePatience = retry.Policy{Attempts: 2, First: time.Second, Most: 2 * time.Second}

// placeParts divides the memory for the place between operations there and the names of what is there.
const placeParts = 2

// newFeed makes the feed, before anything is applied to the member's data.
func (s *Server) newFeed() *feed.Feed {
	s.feed = feed.New(s.budgets.Shipped.Kept)
	s.feed.Begin(s.data.Machine)
	return s.feed
}

// startShipper ships the backup whenever it is this member's turn, until clients are gone: what they wrote is put.
func (s *Server) startShipper(context.Context, Options) error {
	own := &s.data.Identity
	ships := shipper.New(shipper.Options{
		Cluster: own.Cluster, Epoch: uint64(own.Epoch.Number), Member: own.Member, Build: config.Build(), Feed: s.feed,
		Row: s.backupRow, Propose: s.member.Propose, Checkpoint: s.member.Checkpoint,
		Open: s.placeOpener(s.budgets.Shipped.Place/placeParts, &s.shipPlace),
		FS:   s.disk.fs, Dir: filepath.Join(s.cfg.Storage.DataDir, "member", snapshot.WorkDir, "shipped"),
		HeldBytes: s.budgets.Shipped.Waiting, AtOnce: objectplace.AtOnce(s.budgets.Shipped.Place / placeParts),
		NameBytes: max(s.budgets.Shipped.Place/placeParts, fetch.LeastNameBytes),
		Clock:     env.WallClock{}, Logger: s.logger,
	})
	s.shipper.Store(ships)
	var ctx context.Context
	ctx, s.endShipping = context.WithCancel(context.WithoutCancel(s.ctx))
	s.wg.Go(func() { ships.Run(ctx) })
	return nil
}

// allowPlaces reads which places the operator allows.
func (s *Server) allowPlaces(context.Context, Options) (err error) {
	if s.places, err = objectplace.ParseAllowed(s.cfg.Backup.Places); err != nil {
		return fmt.Errorf("--backup-places: %w", err)
	}
	return nil
}

// refusesPlace says why this member would not ship to a place; empty: it would. It does not look at the disk, which may hang.
func (s *Server) refusesPlace(url string) string {
	at, err := objectplace.Parse(url)
	if err == nil {
		_, err = s.places.Permit(at)
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// advised says what to do about an error of a place, where that is known: it is read by operators in the status of the backup.
func advised(err error) error {
	if advice := objectplace.Advice(err); advice != "" {
		return fmt.Errorf("%w. %s", err, advice)
	}
	return err
}

// backupRow is the row of the backup, as this member has applied it.
func (s *Server) backupRow() *kv.BackupRow {
	machine, release := s.member.Machine()
	defer release()
	return machine.Backup()
}

// placeOpener returns what opens a place, in which operations have so much memory together. The place that is open is in at,
// unless that is nil.
func (s *Server) placeOpener(memory int64, at *atomic.Pointer[objectplace.Store]) func(string) (objects.Store, func(), error) {
	return func(url string) (objects.Store, func(), error) {
		store, err := s.openPlace(url, memory)
		if err != nil {
			return nil, nil, err
		}
		if at == nil {
			return store, store.Close, nil
		}
		at.Store(store)
		return store, func() {
			at.CompareAndSwap(store, nil)
			store.Close()
		}, nil
	}
}

func (s *Server) openPlace(url string, memory int64) (*objectplace.Store, error) {
	at, err := objectplace.Parse(url)
	if err == nil {
		at, err = s.places.Permit(at)
	}
	if err != nil {
		return nil, err
	}
	store, err := objectplace.Open(at, objectplace.Options{FS: s.disk.below, Getenv: os.Getenv, Retry: placePatience,
		Memory: memory})
	if err != nil {
		return nil, advised(err)
	}
	for _, warning := range store.Warnings {
		s.logger.Warn("the place of the backup", "place", at.String(), "warning", warning)
	}
	return store, nil
}
