package undelete

import (
	"context"
	"errors"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// Result is what became of the items of a plan. Items that are in none of it were not reached.
type Result struct {
	Restored int
	Bytes    int64    // of their keys and values
	Revision int64    // of the last write; 0: there was none
	Came     Existing // they exist by now, not by this Apply, and were left alone
	Gone     []Item   // their versions were compacted meanwhile
	TooLarge []Item   // the cluster takes no request of their size any more
}

// Settled is how many items have an outcome.
func (r *Result) Settled() int {
	return r.Restored + r.Came.Same + r.Came.Other + len(r.Gone) + len(r.TooLarge)
}

const (
	// mostAtOnce is the most keys of a transaction; etcd's default bound is 128 operations, nested ones beside those around
	// them.
	mostAtOnce = 100
	// mostBytesAtOnce is the most bytes of keys and values in a transaction, unless one key has more: a third of etcd's
	// default.
	mostBytesAtOnce = 512 << 10
	// itemOverhead is about what the encoding of a key in a transaction takes beside its key, twice, and its value.
	itemOverhead = 64
)

func weight(i *Item) int64 { return 2*int64(len(i.Key)) + i.Size + itemOverhead }

// Apply restores the keys of a plan in their order. progress, unless it is nil, is told the result so far, after each
// transaction. The result is never nil: with an error, which is that of a call, it is what was done until then.
func (c *Cluster) Apply(ctx context.Context, p *Plan, progress func(*Result)) (*Result, error) {
	a := &applier{Cluster: c, past: p.past, result: &Result{}, most: mostAtOnce, progress: progress}
	for left := p.Items; len(left) > 0; {
		n, bytes := 0, int64(0)
		for n < len(left) && n < a.most {
			if bytes += weight(&left[n]); n > 0 && bytes > mostBytesAtOnce {
				break
			}
			n++
		}
		if err := a.restore(ctx, left[:n]); err != nil {
			return a.result, err
		}
		left = left[n:]
	}
	return a.result, nil
}

// applier applies one plan.
type applier struct {
	*Cluster
	past     Past // of the plan; nil: versions are read from the cluster
	result   *Result
	most     int // keys in a transaction
	progress func(*Result)
}

// found is an item with its value.
type found struct {
	*Item
	value []byte
}

// restore reads the versions of items and writes them.
func (a *applier) restore(ctx context.Context, items []Item) error {
	read := a.read
	if a.past != nil {
		read = a.readPast
	}
	values, err := read(ctx, items)
	if err == nil {
		err = a.write(ctx, values)
	}
	if a.progress != nil {
		a.progress(a.result)
	}
	return err
}

// halves does the same with both halves of a list.
func halves[T any](list []T, do func([]T) error) error {
	if err := do(list[:len(list)/2]); err != nil {
		return err
	}
	return do(list[len(list)/2:])
}

// read reads the versions of items. Those that were compacted are gone.
func (a *applier) read(ctx context.Context, items []Item) (values []found, err error) {
	if len(items) == 0 {
		return nil, nil
	}
	ask := &pb.TxnRequest{}
	for i := range items {
		ask.Success = append(ask.Success, &pb.RequestOp{Request: &pb.RequestOp_RequestRange{
			RequestRange: &pb.RangeRequest{Key: items[i].Key, Revision: items[i].Read}}})
	}
	answer, _, err := a.txn(ctx, ask)
	switch known := rpctypes.Error(err); {
	case errors.Is(known, rpctypes.ErrTooManyOps) && len(items) > 1:
		a.most = min(a.most, len(items)/2)
		err = halves(items, func(half []Item) error {
			more, err := a.read(ctx, half)
			values = append(values, more...)
			return err
		})
		return values, err
	case errors.Is(known, rpctypes.ErrCompacted):
		return a.readLeft(ctx, items, err)
	case err != nil:
		return nil, err
	}
	for i := range items {
		if i >= len(answer.Responses) {
			return nil, errors.New("the member answered a part of a transaction only")
		}
		kvs := answer.Responses[i].GetResponseRange().GetKvs()
		if len(kvs) != 1 || kvs[0].ModRevision != items[i].ModRevision {
			return nil, fmt.Errorf("the key %q was not at revision %d what the plan says: plan again", items[i].Key,
				items[i].Read)
		}
		values = append(values, found{&items[i], kvs[0].Value})
	}
	return values, nil
}

// readLeft reads the items that are not compacted; refused is the error of reading all of them.
func (a *applier) readLeft(ctx context.Context, items []Item, refused error) ([]found, error) {
	now, err := a.now(ctx, items[0].Key)
	if err != nil {
		return nil, err
	}
	var left []Item
	for _, one := range items {
		if one.Read < now.GetFirstRevision() {
			a.result.Gone = append(a.result.Gone, one)
		} else {
			left = append(left, one)
		}
	}
	if len(left) == len(items) {
		return nil, refused
	}
	return a.read(ctx, left)
}

// write writes the keys that do not exist, each in a transaction of its own within one.
func (a *applier) write(ctx context.Context, values []found) error {
	if len(values) == 0 {
		return nil
	}
	answers, again, revision, err := a.each(ctx, values, func(f *found) *pb.TxnRequest {
		return &pb.TxnRequest{
			Compare: []*pb.Compare{{Key: f.Key, Target: pb.Compare_CREATE, Result: pb.Compare_EQUAL,
				TargetUnion: &pb.Compare_CreateRevision{}}},
			Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestPut{
				RequestPut: &pb.PutRequest{Key: f.Key, Value: f.value}}}},
			Failure: []*pb.RequestOp{bare(f.Key)},
		}
	})
	switch known := rpctypes.Error(err); {
	case errors.Is(known, rpctypes.ErrTooManyOps) && len(values) > 1:
		a.most = min(a.most, len(values)/2)
		return halves(values, func(half []found) error { return a.write(ctx, half) })
	case errors.Is(known, rpctypes.ErrRequestTooLarge) && len(values) > 1:
		return halves(values, func(half []found) error { return a.write(ctx, half) })
	case errors.Is(known, rpctypes.ErrRequestTooLarge):
		a.result.TooLarge = append(a.result.TooLarge, *values[0].Item)
		return nil
	case err != nil:
		return err
	}
	var came []found
	for i := range values {
		if answers[i].GetSucceeded() {
			a.restored(&values[i])
			a.result.Revision = revision
		} else {
			came = append(came, values[i])
		}
	}
	return a.compare(ctx, came, again)
}

func (a *applier) restored(f *found) {
	a.result.Restored++
	a.result.Bytes += int64(len(f.Key) + len(f.value))
}

// bare reads a key without its value.
func bare(key []byte) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: key, KeysOnly: true}}}
}

// compare finds out with which values keys exist that came meanwhile. If the write was sent again, the first one may have made
// them: a key that is as this write would have made it, without a lease, counts as restored.
func (a *applier) compare(ctx context.Context, came []found, again bool) error {
	if len(came) == 0 {
		return nil
	}
	answers, _, _, err := a.each(ctx, came, func(f *found) *pb.TxnRequest { return compareValue(f.Key, f.value) })
	known := rpctypes.Error(err)
	if len(came) > 1 && (errors.Is(known, rpctypes.ErrRequestTooLarge) || errors.Is(known, rpctypes.ErrTooManyOps)) {
		return halves(came, func(half []found) error { return a.compare(ctx, half, again) })
	}
	if err != nil {
		return err
	}
	for i := range came {
		one := Kept{Key: came[i].Key, Same: answers[i].GetSucceeded()}
		written := false // as by write
		for _, r := range answers[i].GetResponses() {
			for _, pair := range r.GetResponseRange().GetKvs() {
				one.ModRevision, written = pair.ModRevision, one.Same && pair.Version == 1 && pair.Lease == 0
			}
		}
		if again && written {
			a.restored(&came[i])
			a.result.Revision = max(a.result.Revision, one.ModRevision)
			continue
		}
		a.result.Came.add(one)
	}
	return nil
}

// each makes one transaction of those of several keys, and returns the answer to each. again says that it was sent more than
// once.
func (a *applier) each(ctx context.Context, values []found, of func(*found) *pb.TxnRequest) (
	answers []*pb.TxnResponse, again bool, revision int64, err error) {
	ask := of(&values[0])
	if len(values) > 1 {
		all := &pb.TxnRequest{}
		for i := range values {
			all.Success = append(all.Success, &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: of(&values[i])}})
		}
		ask = all
	}
	answer, again, err := a.txn(ctx, ask)
	if err != nil {
		return nil, again, 0, err
	}
	if len(values) == 1 {
		return []*pb.TxnResponse{answer}, again, answer.GetHeader().GetRevision(), nil
	}
	for _, r := range answer.GetResponses() {
		answers = append(answers, r.GetResponseTxn())
	}
	if len(answers) != len(values) {
		return nil, again, 0, errors.New("the member answered a part of a transaction only")
	}
	return answers, again, answer.GetHeader().GetRevision(), nil
}

func (a *applier) txn(ctx context.Context, ask *pb.TxnRequest) (answer *pb.TxnResponse, again bool, err error) {
	again, err = a.repeat(ctx, func(ctx context.Context) error {
		answer, err = pb.NewKVClient(a.Conn).Txn(ctx, ask)
		return err
	})
	return answer, again, err
}
