package mirror

import (
	"context"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// maxBatchBytes is how much one transaction of a copy holds, unless a single key is larger.
const maxBatchBytes = 512 << 10

// batch is changes of a copy that are written together.
type batch struct {
	ops   []clientv3.Op
	bytes int
}

// copy makes the target equal to the source at its present revision: it compares both, and writes what differs.
func (m *Mirror) copy(ctx context.Context) error {
	head, err := m.meet(ctx)
	if err != nil {
		return err
	}
	if err := m.leases.look(ctx); err != nil {
		return err
	}
	before := m.now.Written
	m.now.Stage, m.now.Revision = "copying", 0
	var b batch
	flush := func(next *position) error {
		if len(b.ops) == 0 && next.Copying {
			return nil
		}
		if _, err := m.target.write(ctx, b.ops, next); err != nil {
			return err
		}
		m.now.Written += len(b.ops)
		b = batch{}
		m.report(false)
		return nil
	}
	source, target := newPages(m.options.Source, head), newPages(m.options.Target, 0)
	err = merge(ctx, source, target, func(from, to *mvccpb.KeyValue) error {
		if from != nil && equal(from, to, false) {
			return nil
		}
		size := len(to.GetKey())
		if from != nil {
			size = len(from.Key) + len(from.Value)
		}
		if len(b.ops) >= m.options.MaxTxnOps-1 || b.bytes+size > maxBatchBytes {
			if err := flush(m.newPosition(0, 0, true)); err != nil {
				return err
			}
		}
		b.bytes += size
		if from == nil {
			b.ops = append(b.ops, clientv3.OpDelete(string(to.Key)))
			return nil
		}
		op, err := m.put(ctx, from)
		b.ops = append(b.ops, op)
		return err
	})
	if err == nil {
		err = flush(m.newPosition(head, 0, false))
	}
	if err != nil {
		return err
	}
	m.done, m.part = head, 0
	m.now.SameRevs = m.now.SameRevs && m.now.Written == before
	return nil
}
