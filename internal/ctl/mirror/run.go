package mirror

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/internal/base/plural"
)

// Run mirrors until ctx ends, or, with Cutover, until there is a verdict.
func (m *Mirror) Run(ctx context.Context) (*Verdict, error) {
	for pause := pauseBegin; ; pause = min(2*pause, pauseEnd) {
		err := m.begin(ctx)
		if err == nil {
			pause = pauseBegin
			err = m.follow(ctx)
		}
		var verdict *Verdict
		if err == nil {
			verdict, err = m.judge(ctx)
		}
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err == nil && verdict != nil:
			return verdict, nil
		case err == nil: // the source changed meanwhile
			continue
		case errors.Is(err, errAgain):
			m.fresh = true
		case !passing(err) || permanent(err):
			return nil, err
		default:
			m.options.Notice(err)
		}
		if err := wait(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// begin brings the target to where it can be followed from.
func (m *Mirror) begin(ctx context.Context) error {
	head, err := m.meet(ctx)
	if err != nil {
		return err
	}
	if err := m.target.load(ctx); err != nil {
		return err
	}
	if err := m.leases.adopt(ctx); err != nil {
		return err
	}
	at := m.target.at
	switch {
	case at == nil && !m.fresh:
		if same, err := m.isCopy(ctx, head); err != nil || same {
			return err
		}
		m.fresh = true
	case at == nil:
	case at.Source != m.source:
		return refusal(fmt.Errorf("the target is a mirror of cluster %s, and the source is cluster %s: name another target, "+
			"or delete the key %q there to begin anew", at.Source, m.source, positionKey))
	case at.Copying:
		m.fresh = true
	default:
		m.done, m.part, m.now.SameRevs = at.Revision, at.Part, m.target.wrote == at.Revision
		if lost, err := m.leases.missing(ctx, m.done); err != nil || lost {
			m.fresh = m.fresh || lost
			if err != nil {
				return err
			}
		}
	}
	if m.fresh {
		if err := m.copy(ctx); err != nil {
			return err
		}
	}
	m.fresh = false
	return m.leases.look(ctx)
}

// isCopy finds out whether the target, which has no position yet, was restored from a snapshot of the source. Then it has the
// source's revisions, and keeps them. A target that is neither that nor empty is refused.
func (m *Mirror) isCopy(ctx context.Context, head int64) (bool, error) {
	now, err := m.options.Target.Get(ctx, "\x00", clientv3.WithFromKey(), clientv3.WithCountOnly())
	if err != nil {
		return false, fmt.Errorf("the target: %w", err)
	}
	at := now.Header.Revision
	differ := at > head || at <= 1
	if !differ {
		source, target := newPages(m.options.Source, at), newPages(m.options.Target, at)
		err = merge(ctx, source, target, func(from, to *mvccpb.KeyValue) error {
			if !equal(from, to, true) {
				return errDiffer
			}
			return nil
		})
		if err != nil && !errors.Is(err, errDiffer) && !errors.Is(err, errAgain) {
			return false, err
		}
		differ = err != nil
	}
	if !differ {
		m.done, m.now.SameRevs = at, true
		return true, m.leases.look(ctx)
	}
	if now.Count > 0 && !m.options.Overwrite {
		return false, refusal(fmt.Errorf("the target holds %s and is no copy of the source at revision %d, or the "+
			"source's history from there on is compacted: choose an empty target, or one made from a new snapshot of the "+
			"source; --overwrite makes it equal, and deletes what the source does not have", plural.Of(now.Count, "key"), at))
	}
	return false, nil
}

var errDiffer = errors.New("mirror: the contents differ")
