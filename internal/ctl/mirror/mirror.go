package mirror

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Options of New.
type Options struct {
	Source, Target *clientv3.Client
	MaxTxnOps      int           // of the target
	Quiet          time.Duration // for how long the source must not change before a verdict
	Overwrite      bool          // a target that is not empty may be overwritten
	Cutover        bool          // end with a verdict once the source is quiet
	Report         func(Progress)
	Notice         func(error) // of what is tried again
}

// Progress is how far a mirror is.
type Progress struct {
	Stage     string        `json:"stage"`    // "copying" or "following"
	Revision  int64         `json:"revision"` // of the source, which the target has
	Behind    int64         `json:"behind"`   // revisions
	Lag       time.Duration `json:"lag_nanoseconds"`
	Leases    int           `json:"leases"`
	Written   int           `json:"written"`                  // changes, by this run
	SameRevs  bool          `json:"same_revisions"`           // the target's revisions are the source's
	Changes   bool          `json:"source_changes,omitempty"` // with Cutover: it did within Quiet
	head      int64         // the revision of the source when it was last looked at
	changedAt time.Time     // when that was another one than before
	behindAt  time.Time
	lookedAt  time.Time
	shownAt   time.Time
	quietFrom time.Time
}

// Mirror copies and follows.
type Mirror struct {
	options Options
	target  target
	leases  *leases
	source  string // id of its cluster
	run     string
	done    int64 // the target is equal to the source at this revision
	part    int   // so many changes of the next one are made
	fresh   bool  // compare everything before following
	now     Progress
}

// New makes a mirror. ctx ends the renewal of leases at the target.
func New(ctx context.Context, options Options) *Mirror {
	return &Mirror{
		options: options, target: target{client: options.Target, notice: options.Notice}, run: rand.Text()[:8],
		leases: newLeases(ctx, options.Source, options.Target),
	}
}

// meet asks both sides who they are.
func (m *Mirror) meet(ctx context.Context) (head int64, err error) {
	source, err := m.options.Source.Get(ctx, positionKey, clientv3.WithCountOnly())
	if err != nil {
		return 0, fmt.Errorf("the source: %w", err)
	}
	target, err := m.options.Target.Get(ctx, positionKey, clientv3.WithCountOnly())
	if err != nil {
		return 0, fmt.Errorf("the target: %w", err)
	}
	if source.Header.ClusterId == target.Header.ClusterId {
		return 0, refusal(fmt.Errorf("--from and --to are the same cluster, %x", source.Header.ClusterId))
	}
	m.source = fmt.Sprintf("%x", source.Header.ClusterId)
	return source.Header.Revision, nil
}

// refusal is an error that no waiting changes.
func refusal(err error) error { return &refused{err} }

type refused struct{ error }

func permanent(err error) bool {
	var r *refused
	return errors.As(err, &r) || errors.Is(err, errTwo)
}

// newPosition returns a position of this run.
func (m *Mirror) newPosition(revision int64, part int, copying bool) *position {
	return &position{Source: m.source, Run: m.run, Revision: revision, Part: part, Copying: copying}
}

// put writes a key as the source has it, on a lease that the target has.
func (m *Mirror) put(ctx context.Context, kv *mvccpb.KeyValue) (clientv3.Op, error) {
	var options []clientv3.OpOption
	if kv.Lease != 0 {
		if err := m.leases.ensure(ctx, clientv3.LeaseID(kv.Lease)); err != nil {
			return clientv3.Op{}, err
		}
		options = append(options, clientv3.WithLease(clientv3.LeaseID(kv.Lease)))
	}
	return clientv3.OpPut(string(kv.Key), string(kv.Value), options...), nil
}

// report tells how far this is, once a second at most.
func (m *Mirror) report(idle bool) {
	if now := time.Now(); now.Sub(m.now.shownAt) >= time.Second || idle && m.now.shownAt.IsZero() {
		m.now.shownAt = now
		m.now.Revision, m.now.Leases, m.now.Lag = m.done, m.leases.count(), 0
		if !m.now.behindAt.IsZero() {
			m.now.Lag = now.Sub(m.now.behindAt)
		}
		m.options.Report(m.now)
	}
}
