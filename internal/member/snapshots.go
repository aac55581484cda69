package member

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/kv/apply"
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
	m.background(func() {
		meta, err := m.streamSnapshot(to)
		if err != nil && m.stopping.Err() == nil {
			m.logger.Warn("could not send a snapshot", "peer", to.String(), "err", err)
		}
		m.inbox.put(raft.SnapshotSent{To: to, Mark: meta.Mark, OK: err == nil})
	})
}

func (m *Member) streamSnapshot(to consensus.MemberID) (meta consensus.SnapshotMeta, err error) {
	begun := m.options.Clock.Now()
	err = m.checkpoint(func(dir string, machine *apply.Machine) error {
		meta = machine.SnapshotMeta()
		return m.transport.SendSnapshot(m.stopping, to, meta, func(w io.Writer) error {
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

// checkpoint makes a checkpoint of the store, opens it, calls f and removes it. f must not write to dir.
func (m *Member) checkpoint(f func(dir string, machine *apply.Machine) error) error {
	options := &m.data.Options
	fs := options.FS
	name := fmt.Sprintf("outgoing-%d", m.received.next())
	dir := fs.PathJoin(options.Dir, snapshot.WorkDir, name)
	defer fs.RemoveAll(dir) //nolint:errcheck // Open removes what is left
	if err := snapshot.Build(m.checkpointEngine, fs, dir); err != nil {
		return err
	}
	view := fs.PathJoin(options.Dir, snapshot.WorkDir, name+"-view")
	defer fs.RemoveAll(view) //nolint:errcheck // likewise
	if err := snapshot.Clone(fs, dir, view); err != nil {
		return err
	}
	store, err := options.OpenEngine(view)
	if err != nil {
		return err
	}
	machine, err := apply.Open(store, apply.Options{})
	if err == nil {
		err = f(dir, machine)
	}
	return errors.Join(err, store.Close())
}

// checkpointEngine keeps the store from being replaced for the milliseconds that a checkpoint takes, not for the time
// that reading it takes.
func (m *Member) checkpointEngine(dir string) error {
	m.machineMu.RLock()
	defer m.machineMu.RUnlock()
	return m.data.Engine.Checkpoint(dir)
}

// Backup calls f with the opened state machine of a consistent checkpoint. Writes go on meanwhile.
func (m *Member) Backup(ctx context.Context, f func(machine *apply.Machine) error) error {
	return m.checkpoint(func(_ string, machine *apply.Machine) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return f(machine)
	})
}

// ReceiveSnapshot verifies and keeps a snapshot that the leader streams. It is the transport's handler.
func (m *Member) ReceiveSnapshot(from consensus.MemberID, meta consensus.SnapshotMeta, r io.Reader) error {
	fs := m.data.Options.FS
	dir := fs.PathJoin(m.data.Options.Dir, snapshot.WorkDir, fmt.Sprintf("incoming-%d", m.received.next()))
	if err := snapshot.Receive(fs, r, dir); err != nil {
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
	if err := m.swapStore(meta, dir); err != nil {
		return fmt.Errorf("install snapshot %v: %w", meta.Mark, err)
	}
	m.retainer.sizes, m.retainer.bytes = nil, 0
	m.scrub.wake() // the new store may be less scrubbed than the old one was
	if err := m.node.Restored(meta, m.machine); err != nil {
		return err
	}
	m.noteRemoval()
	m.configNews.tell()
	m.jobs.changed.tell()
	m.inbox.put(raft.SnapshotInstalled{
		Meta: meta, Tombstones: m.data.tombstones(), Revision: uint64(m.data.Machine.Store().Revision()),
	})
	m.logger.Info("installed a snapshot", "index", uint64(meta.Mark.Index), "term", uint64(meta.Mark.Term))
	return nil
}

func (m *Member) swapStore(meta consensus.SnapshotMeta, dir string) error {
	m.machineMu.Lock()
	defer m.machineMu.Unlock()
	if err := m.data.Replace(meta, dir); err != nil {
		return err
	}
	leading := m.Leader() == m.ID()
	m.machine = m.data.Machine
	m.fates.Store(m.machine)
	if leading {
		m.machine.Leases().Promote(m.options.Clock.Now(), m.extendLeases())
	}
	return nil
}

// Replace closes the store, puts the snapshot in dir in its place and opens it. A snapshot that does not open, or is not
// what was announced, is refused while the old store is still open.
func (d *Data) Replace(meta consensus.SnapshotMeta, dir string) error {
	if err := d.adopt(meta, dir); err != nil {
		return err
	}
	d.Machine.Detach()
	if err := d.Engine.Close(); err != nil {
		return err
	}
	d.Options.Apply.Hub = d.Machine.Hub()
	if err := snapshot.InstallAt(d.Options.FS, d.Options.Dir, dir, meta.Mark); err != nil {
		return err
	}
	return d.openStore()
}

// adopt opens a received snapshot, checks what it holds, and makes it this directory's.
func (d *Data) adopt(meta consensus.SnapshotMeta, dir string) (err error) {
	store, err := d.Options.OpenEngine(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	machine, err := apply.Open(store, apply.Options{})
	if err != nil {
		return err
	}
	if got := machine.Applied(); got != meta.Mark {
		return fmt.Errorf("member: the snapshot holds %v, announced was %v", got, meta.Mark)
	}
	if got := machine.Cluster(); got != d.Identity.Cluster {
		return fmt.Errorf("member: the snapshot is of cluster %v, this member of %v", got, d.Identity.Cluster)
	}
	return machine.SetOwner(d.Identity)
}
