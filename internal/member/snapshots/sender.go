package snapshots

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/kv/census"
	"github.com/quorate/quorate/internal/kv/mvcc"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/storage/snapshot"
)

// SenderOptions say what a Sender sends, and how.
type SenderOptions struct {
	Stores *datadir.Stores
	Data   *datadir.Options // where checkpoints are made
	Clock  env.Clock
	Logger *slog.Logger
	// Stream sends what write writes to a member, and returns once that member has accepted it.
	Stream func(
		ctx context.Context, to consensus.MemberID, meta consensus.SnapshotMeta, write func(io.Writer) error,
	) error
}

// Sender makes checkpoints of the store, and sends them. The core asks for one at a time for each member.
type Sender struct {
	options  SenderOptions
	streams  streams
	progress transfers
	waiting  waiting
	made     atomic.Uint64 // checkpoints, for their names
}

// NewSender returns a Sender.
func NewSender(options SenderOptions) *Sender { return &Sender{options: options} }

// Begin prepares the sending of a snapshot to a member. Stop ends it from now on, also before send is called. send
// returns the position of the snapshot once the member has accepted it.
func (s *Sender) Begin(ctx context.Context, to consensus.MemberID) (send func() (consensus.Position, error)) {
	streaming, done := s.streams.begin(ctx, to)
	return func() (consensus.Position, error) {
		defer done()
		meta, err := s.send(streaming, to)
		if s.waiting.isNews(to, err) && err != nil && ctx.Err() == nil {
			s.options.Logger.Warn("could not send a snapshot", "peer", to.String(), "err", err)
		}
		return meta.Position, err
	}
}

// Stop ends the snapshot to a member that was begun last: it has become useless.
func (s *Sender) Stop(to consensus.MemberID) { s.streams.stop(to) }

// Progress returns how far the snapshot to a member is, or nil if there is none.
func (s *Sender) Progress(to consensus.MemberID) *membership.TransferView { return s.progress.of(to) }

func (s *Sender) send(ctx context.Context, to consensus.MemberID) (meta consensus.SnapshotMeta, err error) {
	begun := s.options.Clock.Now()
	if err := readable(s.options.Stores, to); err != nil {
		return meta, err
	}
	err = s.checkpoint(ctx, func(ctx context.Context, dir string, machine *apply.Machine) error {
		meta = machine.SnapshotMeta()
		return s.options.Stream(ctx, to, meta, func(w io.Writer) error {
			counted, done, err := s.progress.begin(to, w, s.options.Data.FS, dir, s.options.Clock)
			if err != nil {
				return err
			}
			defer done()
			return snapshot.Write(counted, s.options.Data.FS, dir)
		})
	})
	if err == nil {
		s.options.Logger.Info("sent a snapshot", "peer", to.String(), "index", uint64(meta.Position.Index),
			"took", s.options.Clock.Now().Sub(begun).String())
	}
	return meta, err
}

// checkpoint makes a checkpoint of the store, opens a copy of it for reading, calls f and removes both. f must not
// write to dir. The context that f gets ends with ctx and with the store's life.
func (s *Sender) checkpoint(
	ctx context.Context, f func(ctx context.Context, dir string, machine *apply.Machine) error,
) (err error) {
	store, held := s.options.Stores.Acquire()
	if !held {
		return datadir.ErrStopped
	}
	ctx, cancel := store.Within(ctx)
	defer cancel()
	fs, work := s.options.Data.FS, s.options.Data.WorkDir()
	name := fmt.Sprintf("outgoing-%d", s.made.Add(1))
	dir := fs.PathJoin(work, name)
	defer fs.RemoveAll(dir) //nolint:errcheck // the next start removes what is left
	err = snapshot.Build(store.Engine.Checkpoint, fs, dir)
	store.Release()
	if err != nil {
		return err
	}
	view := fs.PathJoin(work, name+"-view")
	defer fs.RemoveAll(view) //nolint:errcheck // likewise
	if err := snapshot.Clone(fs, dir, view); err != nil {
		return err
	}
	opened, err := s.options.Data.View(view)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	machine, err := apply.Open(opened, apply.Options{Level: s.options.Data.Apply.Level, Store: mvcc.Options{
		Life: ctx, CacheBytes: -1, Census: census.Options{LogBytes: viewCountBytes, IntervalBytes: viewCountBytes},
	}})
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return f(ctx, dir, machine)
}

// viewCountBytes is what counts of keys by interval may take in a view, of which no client asks for any.
const viewCountBytes = 64 << 10

// Backup calls f with the opened state machine of a consistent checkpoint. Writes go on meanwhile. The context that f
// gets ends when the member stops, too.
func (s *Sender) Backup(ctx context.Context, f func(ctx context.Context, machine *apply.Machine) error) error {
	return s.checkpoint(ctx, func(ctx context.Context, _ string, machine *apply.Machine) error { return f(ctx, machine) })
}

// Checkpoint copies a consistent checkpoint into a directory, which must not exist, and calls f with its opened state machine.
// The directory stays: the caller removes it.
func (s *Sender) Checkpoint(ctx context.Context, dir string, f func(*apply.Machine) error) error {
	return s.checkpoint(ctx, func(_ context.Context, made string, machine *apply.Machine) error {
		if err := snapshot.Clone(s.options.Data.FS, made, dir); err != nil {
			return err
		}
		return f(machine)
	})
}
