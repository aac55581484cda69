package undelete

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// Past is a former state of the cluster's keys, such as one of a backup. It does not change.
type Past interface {
	// Page returns the versions of the keys of a range as etcd writes it, in the order of keys, and whether there are more:
	// at most limit of them, and fewer if they are large.
	Page(ctx context.Context, key, end []byte, limit int) (versions []Version, more bool, err error)
}

// Version is a key as it was.
type Version struct {
	Key, Value         []byte
	ModRevision, Lease int64
}

// After is the first key behind one.
func After(key []byte) []byte { return append(bytes.Clone(key), 0) }

// PlanFrom is Plan for keys that the former state has and the cluster has not. Request.At is not looked at.
func (c *Cluster) PlanFrom(
	ctx context.Context, past Past, r Request, progress func(keys int, looked int64),
) (*Plan, error) {
	if r.Limit <= 0 || r.Limit > MostKeys {
		r.Limit = MostKeys
	}
	now, err := c.now(ctx, r.Key)
	if err != nil {
		return nil, err
	}
	p := &planning{
		Plan: &Plan{Request: r, Revision: now.GetRevision(), First: now.GetFirstRevision(), past: past},
		with: &applier{Cluster: c, result: &Result{}, most: mostAtOnce},
	}
	key, looked := r.Key, int64(0)
	if bytes.Compare(r.From, key) > 0 {
		if key = r.From; len(r.End) == 0 || !bytes.Equal(r.End, []byte{0}) && bytes.Compare(key, r.End) >= 0 {
			return p.Plan, nil // no key of the range is left
		}
	}
	for more := true; more && p.More == nil; {
		var versions []Version
		if versions, more, err = past.Page(ctx, key, r.End, mostAtOnce); err != nil {
			return nil, err
		}
		if len(versions) == 0 {
			break
		}
		if err := p.take(ctx, versions); err != nil {
			return nil, err
		}
		key = After(versions[len(versions)-1].Key)
		if more = more && len(r.End) > 0; progress != nil {
			looked += int64(len(versions))
			progress(len(p.Items), looked)
		}
	}
	return p.Plan, nil
}

// planning is a Plan of a former state under way.
type planning struct {
	*Plan
	with *applier // asks the cluster; its result is not used
}

// take compares versions with what the cluster has, and adds them to the plan.
func (p *planning) take(ctx context.Context, versions []Version) error {
	for len(versions) > 0 && p.More == nil {
		n, size := 0, int64(0)
		for n < len(versions) && n < p.with.most {
			one := &versions[n]
			if size += int64(len(one.Key)+len(one.Value)) + itemOverhead; n > 0 && size > mostBytesAtOnce {
				break
			}
			n++
		}
		if err := p.compare(ctx, versions[:n]); err != nil {
			return err
		}
		versions = versions[n:]
	}
	return nil
}

func (p *planning) compare(ctx context.Context, versions []Version) error {
	values := make([]found, len(versions))
	for i := range versions {
		one := &versions[i]
		values[i] = found{&Item{Key: one.Key, ModRevision: one.ModRevision, Size: int64(len(one.Value)), Lease: one.Lease},
			one.Value}
	}
	answers, _, _, err := p.with.each(ctx, values, func(f *found) *pb.TxnRequest { return compareValue(f.Key, f.value) })
	known := rpctypes.Error(err)
	switch {
	case len(values) > 1 && (errors.Is(known, rpctypes.ErrRequestTooLarge) || errors.Is(known, rpctypes.ErrTooManyOps)):
		return halves(versions, func(half []Version) error { return p.compare(ctx, half) })
	case errors.Is(known, rpctypes.ErrRequestTooLarge): // then the cluster has another value, or none
		answers, _, _, err = p.with.each(ctx, values, func(f *found) *pb.TxnRequest {
			return &pb.TxnRequest{Success: []*pb.RequestOp{bare(f.Key)}}
		})
		if len(answers) == 1 {
			answers[0].Succeeded = false
		}
	}
	if err != nil {
		return err
	}
	for i := range values {
		p.settle(values[i].Item, answers[i])
	}
	return nil
}

// compareValue reads a key without its value, and compares that.
func compareValue(key, value []byte) *pb.TxnRequest {
	return &pb.TxnRequest{
		Compare: []*pb.Compare{{Key: key, Target: pb.Compare_VALUE, Result: pb.Compare_EQUAL,
			TargetUnion: &pb.Compare_Value{Value: value}}},
		Success: []*pb.RequestOp{bare(key)}, Failure: []*pb.RequestOp{bare(key)},
	}
}

// settle adds a key to the plan, by what the cluster answered of it.
func (p *planning) settle(item *Item, answer *pb.TxnResponse) {
	if p.More != nil {
		return
	}
	for _, r := range answer.GetResponses() {
		for _, pair := range r.GetResponseRange().GetKvs() {
			p.Kept.add(Kept{Key: item.Key, ModRevision: pair.ModRevision, Same: answer.GetSucceeded()})
			return
		}
	}
	switch {
	case item.Lease != 0 && !p.Request.Leased:
		p.LeftOut++
		return
	case len(p.Items) == p.Limit:
		p.More = item.Key
		return
	case item.Lease != 0:
		p.Plan.Leased++
	}
	p.Items = append(p.Items, *item)
	p.Bytes += int64(len(item.Key)) + item.Size
}

// readPast is read for a plan of a former state.
func (a *applier) readPast(ctx context.Context, items []Item) ([]found, error) {
	values := make([]found, 0, len(items))
	for i := range items {
		versions, _, err := a.past.Page(ctx, items[i].Key, nil, 1)
		if err != nil {
			return nil, err
		}
		if len(versions) != 1 || versions[0].ModRevision != items[i].ModRevision {
			return nil, fmt.Errorf("the key %q is not what the plan says: plan again", items[i].Key)
		}
		values = append(values, found{&items[i], versions[0].Value})
	}
	return values, nil
}
