package member

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/datadir"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/kv/mvcc"
	"github.com/quorate/quorate/internal/storage/snapshot"
)

// receivedSnapshots remembers where verified snapshots lie until the core asks for one to be installed.
type receivedSnapshots struct {
	mu      sync.Mutex
	mark    consensus.Mark
	dir     string
	counter int
}

// keep makes dir the received snapshot, and returns the one it replaces.
func (r *receivedSnapshots) keep(mark consensus.Mark, dir string) (replaced string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	replaced, r.mark, r.dir = r.dir, mark, dir
	return replaced
}

// claim returns the directory of the snapshot at mark.
func (r *receivedSnapshots) claim(mark consensus.Mark) (dir string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dir == "" || r.mark != mark {
		return "", false
	}
	dir, r.dir = r.dir, ""
	return dir, true
}

// outrun forgets a snapshot that shows nothing beyond applied and returns its directory: the core will not ask for it
// any more. That happens when a new leader streams another one while the last is being installed.
func (r *receivedSnapshots) outrun(applied consensus.Index) (dir string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dir != "" && r.mark.Index <= applied {
		dir, r.dir = r.dir, ""
	}
	return dir
}

func (r *receivedSnapshots) next() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counter++
	return r.counter
}

// sendSnapshot streams a checkpoint of the store to a follower. Writes go on meanwhile.
func (m *Member) sendSnapshot(to consensus.MemberID) {
	ctx, done := m.streams.begin(m.stopping, to)
	m.background(func() {
		defer done()
		meta, err := m.streamSnapshot(ctx, to)
		if err != nil && m.stopping.Err() == nil {
			m.logger.Warn("could not send a snapshot", "peer", to.String(), "err", err)
		}
		m.inbox.put(raft.SnapshotSent{To: to, Mark: meta.Mark, OK: err == nil})
	})
}

func (m *Member) streamSnapshot(ctx context.Context, to consensus.MemberID) (meta consensus.SnapshotMeta, err error) {
	begun := m.options.Clock.Now()
	err = m.checkpoint(ctx, func(ctx context.Context, dir string, machine *apply.Machine) error {
		meta = machine.SnapshotMeta()
		return m.transport.SendSnapshot(ctx, to, meta, func(w io.Writer) error {
			counted, done, err := m.transfers.begin(to, w, m.data.Options.FS, dir, m.options.Clock)
			if err != nil {
				return err
			}
			defer done()
			return snapshot.Write(counted, m.data.Options.FS, dir)
		})
	})
	if err == nil {
		m.logger.Info("sent a snapshot", "peer", to.String(), "index", uint64(meta.Mark.Index),
			"took", m.options.Clock.Now().Sub(begun).String())
	}
	return meta, err
}

// checkpoint makes a checkpoint of the store, opens a copy of it for reading, calls f and removes both. f must not write
// to dir. ctx ends when the store's life does, too.
func (m *Member) checkpoint(
	ctx context.Context, f func(ctx context.Context, dir string, machine *apply.Machine) error,
) (err error) {
	store, held := m.stores.Hold()
	if !held {
		return ErrStopped
	}
	ctx, cancel := store.Within(ctx)
	defer cancel()
	fs := m.data.Options.FS
	name := fmt.Sprintf("outgoing-%d", m.received.next())
	dir := fs.PathJoin(m.data.Options.Dir, snapshot.WorkDir, name)
	defer fs.RemoveAll(dir) //nolint:errcheck // Open removes what is left
	// The store is held for the milliseconds that a checkpoint takes, not for the time that reading it takes.
	err = snapshot.Build(store.Engine.Checkpoint, fs, dir)
	store.Release()
	if err != nil {
		return err
	}
	view := fs.PathJoin(m.data.Options.Dir, snapshot.WorkDir, name+"-view")
	defer fs.RemoveAll(view) //nolint:errcheck // likewise
	if err := snapshot.Clone(fs, dir, view); err != nil {
		return err
	}
	opened, err := m.data.Options.View(view)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	machine, err := apply.Open(opened, apply.Options{Store: mvcc.Options{Life: ctx}})
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return f(ctx, dir, machine)
}

// Backup calls f with the opened state machine of a consistent checkpoint. Writes go on meanwhile. The context that f gets
// ends when the member stops, too.
func (m *Member) Backup(ctx context.Context, f func(ctx context.Context, machine *apply.Machine) error) error {
	return m.checkpoint(ctx, func(ctx context.Context, _ string, machine *apply.Machine) error { return f(ctx, machine) })
}

// ReceiveSnapshot verifies and keeps a snapshot that the leader streams. It is the transport's handler.
func (m *Member) ReceiveSnapshot(from consensus.MemberID, meta consensus.SnapshotMeta, r io.Reader) error {
	fs := m.data.Options.FS
	dir := fs.PathJoin(m.data.Options.Dir, snapshot.WorkDir, fmt.Sprintf("incoming-%d", m.received.next()))
	if low := m.options.DiskLow; low != nil && low() {
		return ErrDiskLow
	}
	err := snapshot.Receive(fs, r, dir)
	if err == nil {
		if err = m.data.Check(meta, dir); err != nil {
			err = errors.Join(err, fs.RemoveAll(dir))
		}
	}
	if err != nil {
		m.logger.Warn("refused a snapshot", "peer", from.String(), "err", err)
		return err
	}
	if replaced := m.received.keep(meta.Mark, dir); replaced != "" {
		if err := fs.RemoveAll(replaced); err != nil {
			return err
		}
	}
	machine, release := m.Machine()
	applied := machine.Applied().Index
	release()
	return m.discardOutrun(applied)
}

// discardOutrun frees the space of a received snapshot that is not needed any more.
func (m *Member) discardOutrun(applied consensus.Index) error {
	if dir := m.received.outrun(applied); dir != "" {
		return m.data.Options.FS.RemoveAll(dir)
	}
	return nil
}

// install puts a received snapshot in place of the store. It runs in the goroutine that applies.
func (m *Member) install(meta consensus.SnapshotMeta) error {
	dir, ok := m.received.claim(meta.Mark)
	if !ok {
		m.inbox.put(raft.SnapshotInstalled{Meta: meta, Failed: true})
		return nil
	}
	old, err := m.data.Install(meta, dir)
	if errors.Is(err, datadir.ErrSwitch) {
		return fmt.Errorf("install snapshot %v: %w", meta.Mark, err)
	}
	if err != nil {
		m.logger.Error("could not install a snapshot: the present store serves on", "index",
			uint64(meta.Mark.Index), "err", err)
		m.inbox.put(raft.SnapshotInstalled{Meta: meta, Failed: true})
		return nil
	}
	m.serve(m.data.Generation)
	m.background(func() { m.data.Retire(old) })
	m.retainer.sizes, m.retainer.bytes = nil, 0
	m.scrub.wake() // the new store may be less scrubbed than the old one was
	if err := m.node.Restored(meta, m.data.Machine); err != nil {
		return err
	}
	m.noteRemoval()
	m.integrity.Note()
	m.configNews.tell()
	m.jobs.changed.tell()
	m.inbox.put(raft.SnapshotInstalled{
		Meta: meta, Tombstones: m.data.Tombstones(), Revision: uint64(m.data.Machine.Store().Revision()),
	})
	m.logger.Info("installed a snapshot", "index", uint64(meta.Mark.Index), "term", uint64(meta.Mark.Term))
	return nil
}

// serve makes a generation that the data has switched to the one that everybody reads.
func (m *Member) serve(next *datadir.Generation) {
	if m.Leader() == m.ID() {
		next.Machine.Leases().Promote(m.options.Clock.Now(), m.extendLeases())
	}
	m.fates.Store(next.Machine)
	m.stores.Set(next)
}
