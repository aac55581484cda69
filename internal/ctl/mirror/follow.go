package mirror

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// askTimeout is how long the source is waited for when it is asked for its revision.
const askTimeout = 5 * time.Second

// follow makes each revision of the source at the target. With Cutover it returns nil once the source is quiet.
func (m *Mirror) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m.now.Stage, m.now.quietFrom = "following", time.Time{}
	changes := m.options.Source.Watch(clientv3.WithRequireLeader(ctx), "\x00", clientv3.WithFromKey(),
		clientv3.WithRev(m.done+1))
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case answer, open := <-changes:
			if !open {
				return errors.New("the source ended the watch")
			}
			if err := m.take(ctx, &answer); err != nil {
				return err
			}
		case <-ticker.C:
			quiet, err := m.look(ctx)
			if err != nil || quiet && m.options.Cutover {
				return err
			}
		}
	}
}

// take makes the revisions of one answer.
func (m *Mirror) take(ctx context.Context, answer *clientv3.WatchResponse) error {
	switch err := answer.Err(); {
	case answer.CompactRevision != 0, errors.Is(err, rpctypes.ErrCompacted):
		return errAgain
	case err != nil:
		return fmt.Errorf("watch the source: %w", err)
	case answer.IsProgressNotify():
		m.reach(answer.Header.Revision)
		return nil
	}
	for begin := 0; begin < len(answer.Events); {
		end := begin + 1
		revision := answer.Events[begin].Kv.ModRevision
		for end < len(answer.Events) && answer.Events[end].Kv.ModRevision == revision {
			end++
		}
		if revision > m.done {
			if err := m.make(ctx, revision, answer.Events[begin:end]); err != nil {
				return err
			}
		}
		begin = end
	}
	m.report(false)
	return nil
}

// reach notes that there is nothing to do up to a revision.
func (m *Mirror) reach(revision int64) {
	if m.part == 0 {
		m.done = max(m.done, revision)
	}
}

// make makes one revision, in one transaction if the target takes it.
func (m *Mirror) make(ctx context.Context, revision int64, events []*clientv3.Event) error {
	var ops []clientv3.Op
	for _, event := range events {
		switch {
		case string(event.Kv.Key) == positionKey: // of a mirror into the source; its revision is made, with nothing in it
		case event.Type == clientv3.EventTypeDelete:
			ops = append(ops, clientv3.OpDelete(string(event.Kv.Key)))
		default:
			op, err := m.put(ctx, event.Kv)
			if err != nil {
				return err
			}
			ops = append(ops, op)
		}
	}
	ops = ops[min(m.part, len(ops)):]
	err := errLimit
	if len(ops) < m.options.MaxTxnOps {
		err = m.write(ctx, ops, revision, revision, 0)
	} else if whole, ok := m.wholeRange(ctx, events); ok {
		err = m.write(ctx, whole, revision, revision, 0)
	}
	if errors.Is(err, errLimit) {
		return m.makeInParts(ctx, revision, ops)
	}
	return err
}

// makeInParts makes the rest of a revision in several transactions. The position tells how many of its changes are made.
func (m *Mirror) makeInParts(ctx context.Context, revision int64, ops []clientv3.Op) error {
	for size := max(m.options.MaxTxnOps/2, 1); len(ops) > 0; {
		few := ops[:min(len(ops), size)]
		at, part := m.done, m.part+len(few)
		if len(few) == len(ops) {
			at, part = revision, 0
		}
		err := m.write(ctx, few, revision, at, part)
		switch {
		case errors.Is(err, errLimit) && len(few) > 1:
			size = len(few) / 2
			continue
		case errors.Is(err, errLimit):
			return refusal(fmt.Errorf("a change of revision %d of the source is too large for the target: raise its "+
				"--max-request-bytes to that of the source", revision))
		case err != nil:
			return err
		}
		ops = ops[len(few):]
	}
	return nil
}

// write makes some changes of a revision.
func (m *Mirror) write(ctx context.Context, ops []clientv3.Op, revision, at int64, part int) error {
	got, err := m.target.write(ctx, ops, m.newPosition(at, part, false))
	if err != nil {
		return err
	}
	m.now.SameRevs = m.now.SameRevs && got == revision
	m.now.Written += len(ops)
	m.done, m.part = at, part
	return nil
}

// wholeRange turns very many deletions into one, if they are all keys of a range.
func (m *Mirror) wholeRange(ctx context.Context, events []*clientv3.Event) ([]clientv3.Op, bool) {
	first, last := events[0].Kv.Key, events[0].Kv.Key
	for _, event := range events {
		if event.Type != clientv3.EventTypeDelete {
			return nil, false
		}
		first, last = minKey(first, event.Kv.Key), maxKey(last, event.Kv.Key)
	}
	end := clientv3.WithRange(string(last) + "\x00")
	found, err := m.options.Target.Get(ctx, string(first), end, clientv3.WithCountOnly())
	if err != nil || found.Count != int64(len(events)) || m.part > 0 {
		return nil, false
	}
	return []clientv3.Op{clientv3.OpDelete(string(first), end)}, true
}

func minKey(a, b []byte) []byte {
	if string(a) < string(b) {
		return a
	}
	return b
}

func maxKey(a, b []byte) []byte {
	if string(a) > string(b) {
		return a
	}
	return b
}

// look compares with the present revision of the source, and settles leases. quiet: nothing has changed for some time, and the
// target has everything.
func (m *Mirror) look(ctx context.Context) (quiet bool, err error) {
	if m.leases.takeLost() {
		return false, errAgain
	}
	asked, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	head, err := m.options.Source.Get(asked, positionKey, clientv3.WithCountOnly())
	if err != nil {
		return false, fmt.Errorf("ask the source for its revision: %w", err)
	}
	now := time.Now()
	if at := head.Header.Revision; at != m.now.head {
		if m.now.head != 0 {
			m.now.changedAt = now
		}
		m.now.head = at
	}
	m.now.Changes = m.options.Cutover && !m.now.changedAt.IsZero() && now.Sub(m.now.changedAt) < m.options.Quiet
	if m.now.Behind = head.Header.Revision - m.done; m.now.Behind <= 0 {
		m.now.Behind, m.now.behindAt = 0, time.Time{}
	} else {
		if m.now.behindAt.IsZero() {
			m.now.behindAt = now
		}
		m.now.quietFrom = time.Time{}
		_ = m.options.Source.RequestProgress(clientv3.WithRequireLeader(ctx)) // a revision may have no events
	}
	if now.Sub(m.now.lookedAt) >= lookEvery {
		m.now.lookedAt = now
		if err := m.leases.look(ctx); err != nil {
			return false, err
		}
		if err := m.leases.settle(ctx, m.done); err != nil {
			return false, err
		}
	}
	m.report(true)
	if m.now.Behind > 0 {
		return false, nil
	}
	if m.now.quietFrom.IsZero() {
		m.now.quietFrom = now
	}
	return now.Sub(m.now.quietFrom) >= m.options.Quiet && m.leases.settled(), nil
}
