package mirror

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// How many keys are asked for at once, so that an answer is some MiB.
const (
	fewKeys       = 20
	manyKeys      = 1000
	pageBytesGoal = 2 << 20
)

// pages reads all keys of a cluster at one revision, in order.
type pages struct {
	client   *clientv3.Client
	revision int64
	limit    int64
	page     []*mvccpb.KeyValue
	from     string
	more     bool
}

func newPages(client *clientv3.Client, revision int64) *pages {
	return &pages{client: client, revision: revision, limit: fewKeys, from: "\x00", more: true}
}

// next returns the next key but the mirror's own, nil at the end. It returns errAgain if the revision was compacted.
func (p *pages) next(ctx context.Context) (*mvccpb.KeyValue, error) {
	for {
		if len(p.page) == 0 {
			if !p.more {
				return nil, nil
			}
			if err := p.read(ctx); err != nil {
				return nil, err
			}
			continue
		}
		kv := p.page[0]
		p.page = p.page[1:]
		if string(kv.Key) != positionKey {
			return kv, nil
		}
	}
}

func (p *pages) read(ctx context.Context) error {
	answer, err := p.client.Get(ctx, p.from, clientv3.WithFromKey(), clientv3.WithRev(p.revision), clientv3.WithLimit(p.limit))
	switch {
	case errors.Is(err, rpctypes.ErrCompacted):
		return errAgain
	case err != nil:
		return fmt.Errorf("read keys from %q: %w", p.from, err)
	}
	p.page, p.more = answer.Kvs, answer.More
	size := 0
	for _, kv := range p.page {
		size += len(kv.Key) + len(kv.Value)
	}
	if len(p.page) > 0 {
		p.from = string(p.page[len(p.page)-1].Key) + "\x00"
		p.limit = min(max(int64(len(p.page))*pageBytesGoal/int64(size+1), fewKeys), manyKeys)
	}
	return nil
}

// merge visits the keys of both clusters together, in order: what one side lacks is nil there.
func merge(ctx context.Context, source, target *pages, visit func(from, to *mvccpb.KeyValue) error) error {
	from, err := source.next(ctx)
	if err != nil {
		return err
	}
	to, err := target.next(ctx)
	for err == nil && (from != nil || to != nil) {
		order := 0
		switch {
		case from == nil:
			order = 1
		case to == nil:
			order = -1
		default:
			order = bytes.Compare(from.Key, to.Key)
		}
		left, right := from, to
		if order > 0 {
			left = nil
		}
		if order < 0 {
			right = nil
		}
		if err = visit(left, right); err == nil && left != nil {
			from, err = source.next(ctx)
		}
		if err == nil && right != nil {
			to, err = target.next(ctx)
		}
	}
	return err
}

// equal compares what a client reads of a key; exact with its revisions.
func equal(a, b *mvccpb.KeyValue, exact bool) bool {
	if a == nil || b == nil || !bytes.Equal(a.Value, b.Value) || a.Lease != b.Lease {
		return false
	}
	return !exact || a.CreateRevision == b.CreateRevision && a.ModRevision == b.ModRevision && a.Version == b.Version
}
