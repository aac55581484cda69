package undelete

import (
	"bytes"
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/quorate/quorate/api/quoratepb"
)

// Request says which keys are meant.
type Request struct {
	Key, End []byte // as in etcd's RangeRequest
	// At restores the state of this revision; 0: of each key the value that its last deletion took.
	At    int64
	From  []byte // leave out the keys before this one; nil: none
	Limit int    // keys in the plan, at most; 0: MostKeys
	// Leased restores keys that had a lease, too. They are written without, and stay: a lock that expired is held for ever.
	Leased bool
}

// MostKeys is the most keys of one plan. Its remainder is planned once these are restored, or from Plan.More on.
const MostKeys = 100_000

// mostKept is how many keys that exist a plan, or a result, lists of each kind; beyond that they are only counted.
const mostKept = 1000

// Item is a key that is gone, and the version that is to be written.
type Item struct {
	Key         []byte
	Deleted     int64 // revision of its last deletion; 0: it is not known
	Read        int64 // revision at which the version is read
	ModRevision int64 // of the version
	Size        int64 // of its value, in bytes
	Lease       int64 // that it had, and will not have; 0: none
}

// Kept is a key that exists, and is left alone.
type Kept struct {
	Key         []byte
	ModRevision int64 // now
	Same        bool  // it has the value that would be restored
}

// Plan is what Apply would do.
type Plan struct {
	Request
	Revision int64 // of the store, as of which keys are gone
	First    int64 // the oldest revision that can be read
	Items    []Item
	Bytes    int64 // of the keys and values of all items
	Leased   int   // items that had a lease
	LeftOut  int   // keys that had a lease and are no items, because Request.Leased is not set
	Kept     Existing
	More     []byte // the first key that was not looked at, because the plan is full; nil: all were

	past Past // that the versions are of; nil: the cluster's history
}

// Existing are keys that exist: in the plan those that were deleted and written again, or, with Request.At, written since.
type Existing struct {
	Listed      []Kept // the first of them
	Same, Other int    // how many there are, with the value that would be restored and with another
}

func (e *Existing) add(k Kept) {
	count := &e.Other
	if k.Same {
		count = &e.Same
	}
	if *count++; *count <= mostKept {
		e.Listed = append(e.Listed, k)
	}
}

// Prefix returns the range of all keys that begin with a prefix; all keys, if it is empty.
func Prefix(prefix []byte) (key, end []byte) {
	key = bytes.Clone(prefix)
	if len(key) == 0 {
		key = []byte{0}
	}
	end = bytes.Clone(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i] < 0xff {
			end[i]++
			return key, end[:i+1]
		}
	}
	return key, []byte{0}
}

// Plan finds the keys that are gone. progress, unless it is nil, is told of each page: how many keys are planned, and how many
// rows of the store were looked at. The error is a RevisionError for Request.At, or that of a call.
func (c *Cluster) Plan(ctx context.Context, r Request, progress func(keys int, looked int64)) (*Plan, error) {
	if r.Limit <= 0 || r.Limit > MostKeys {
		r.Limit = MostKeys
	}
	plan := &Plan{Request: r}
	if bytes.Compare(r.From, r.Key) > 0 {
		if len(r.End) == 0 || !bytes.Equal(r.End, []byte{0}) && bytes.Compare(r.From, r.End) >= 0 {
			return plan, nil // no key of the range is left
		}
		r.Key = r.From
	}
	ask := &quoratepb.DeletedRequest{Key: r.Key, RangeEnd: r.End, AtRevision: r.At, Existing: true, Linearizable: true}
	looked := int64(0)
	for {
		page, err := c.deleted(ctx, ask)
		if err != nil {
			return nil, c.explain(ctx, ask, err)
		}
		plan.Revision, plan.First = page.GetRevision(), page.GetFirstRevision()
		for _, one := range page.GetKeys() {
			if plan.More == nil && len(plan.Items) == r.Limit && one.GetNow() == nil {
				plan.More = one.GetKey()
			}
			if plan.More == nil {
				plan.add(one)
			}
		}
		if looked += page.GetLookedAt(); progress != nil {
			progress(len(plan.Items), looked)
		}
		next := page.GetNextPage()
		switch {
		case plan.More != nil, len(next) == 0:
			return plan, nil
		case bytes.Equal(next, ask.Page):
			return nil, errors.New("the member's answers do not go on: it gave the same page twice")
		}
		ask.Page = next
	}
}

// add adds a key to the plan.
func (p *Plan) add(one *quoratepb.DeletedKey) {
	if now := one.GetNow(); now != nil {
		p.Kept.add(Kept{Key: one.GetKey(), ModRevision: now.GetModRevision(), Same: one.GetSame()})
		return
	}
	was := one.GetWas()
	if was.GetLease() != 0 && !p.Request.Leased {
		p.LeftOut++
		return
	}
	p.Items = append(p.Items, Item{Key: one.GetKey(), Deleted: one.GetDeletedRevision(), Read: one.GetReadRevision(),
		ModRevision: was.GetModRevision(), Size: was.GetSize(), Lease: was.GetLease()})
	p.Bytes += int64(len(one.GetKey())) + was.GetSize()
	if was.GetLease() != 0 {
		p.Leased++
	}
}

func (c *Cluster) deleted(ctx context.Context, ask *quoratepb.DeletedRequest) (page *quoratepb.DeletedAnswer, err error) {
	err = c.call(ctx, func(ctx context.Context) error {
		page, err = quoratepb.NewHistoryClient(c.Conn).Deleted(ctx, ask)
		return err
	})
	return page, err
}

// explain makes a RevisionError of a refusal of Request.At.
func (c *Cluster) explain(ctx context.Context, ask *quoratepb.DeletedRequest, err error) error {
	known := rpctypes.Error(err)
	if !errors.Is(known, rpctypes.ErrCompacted) && !errors.Is(known, rpctypes.ErrFutureRev) {
		return err
	}
	now, nowErr := c.now(ctx, ask.Key)
	if nowErr != nil {
		return err
	}
	return &RevisionError{At: ask.AtRevision, First: now.GetFirstRevision(), Revision: now.GetRevision()}
}

// now asks which revisions can be read.
func (c *Cluster) now(ctx context.Context, key []byte) (answer *quoratepb.VersionsAnswer, err error) {
	err = c.call(ctx, func(ctx context.Context) error {
		answer, err = quoratepb.NewHistoryClient(c.Conn).Versions(ctx,
			&quoratepb.VersionsRequest{Key: key, Limit: 1, KeysOnly: true, Linearizable: true})
		return err
	})
	return answer, err
}
