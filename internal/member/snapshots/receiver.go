package snapshots

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/storage/snapshot"
)

// ErrDiskLow means that there is no room for a snapshot now.
var ErrDiskLow = errors.New("member: the disk is nearly full: a snapshot is received once there is room")

// ReceiverOptions say where received snapshots are kept, and what they must be.
type ReceiverOptions struct {
	Stores  *datadir.Stores
	Data    *datadir.Options
	Check   func(meta consensus.SnapshotMeta, dir string) error // refuses what is not what was announced
	DiskLow func() bool                                         // nil: there always is room
	Reserve int64                                               // bytes of the disk that a snapshot must leave free
	Logger  *slog.Logger
}

// Receiver verifies snapshots that a leader streams, and keeps the last one until it is taken.
type Receiver struct {
	options ReceiverOptions
	made    atomic.Uint64 // directories, for their names

	mu       sync.Mutex
	position consensus.Position
	dir      string // empty: none is kept
}

// NewReceiver returns a Receiver that keeps nothing.
func NewReceiver(options ReceiverOptions) *Receiver { return &Receiver{options: options} }

// Receive verifies and keeps a snapshot.
func (r *Receiver) Receive(from consensus.MemberID, meta consensus.SnapshotMeta, stream io.Reader) error {
	fs := r.options.Data.FS
	dir := fs.PathJoin(r.options.Data.WorkDir(), fmt.Sprintf("incoming-%d", r.made.Add(1)))
	if low := r.options.DiskLow; low != nil && low() {
		return ErrDiskLow
	}
	err := snapshot.ReceiveBeside(fs, stream, dir, r.options.Reserve)
	if err == nil {
		if err = r.options.Check(meta, dir); err != nil {
			err = errors.Join(err, fs.RemoveAll(dir))
		}
	}
	if err != nil {
		r.options.Logger.Warn("refused a snapshot", "peer", from.String(), "err", err)
		return err
	}
	if replaced := r.keep(meta.Position, dir); replaced != "" {
		if err := fs.RemoveAll(replaced); err != nil {
			return err
		}
	}
	machine, release := r.options.Stores.Machine()
	applied := machine.Applied().Index
	release()
	return r.Discard(applied)
}

// keep makes dir the received snapshot, and returns the one it replaces.
func (r *Receiver) keep(position consensus.Position, dir string) (replaced string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	replaced, r.position, r.dir = r.dir, position, dir
	return replaced
}

// Take returns the directory of the snapshot at position, which is the caller's from now on.
func (r *Receiver) Take(position consensus.Position) (dir string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dir == "" || r.position != position {
		return "", false
	}
	dir, r.dir = r.dir, ""
	return dir, true
}

// Discard removes a snapshot that shows nothing beyond applied: the core will not ask for it any more. That happens
// when a new leader streams another one while the last is being installed.
func (r *Receiver) Discard(applied consensus.Index) error {
	if dir := r.useless(applied); dir != "" {
		return r.options.Data.FS.RemoveAll(dir)
	}
	return nil
}

func (r *Receiver) useless(applied consensus.Index) (dir string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dir != "" && r.position.Index <= applied {
		dir, r.dir = r.dir, ""
	}
	return dir
}
