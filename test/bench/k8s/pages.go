package k8s

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const pageLimit = 500 // of kube-controller-manager and kubectl

// listing is what a list returned: keys at a revision, and a digest of keys and their revisions in any order.
type listing struct {
	resource resource
	revision int64
	count    int
	digest   uint64
	last     string // the last key that was added
}

// digest of one key; those of a list are added up.
func digest(key string, modified int64) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key)) // never fails
	x := h.Sum64() ^ uint64(modified)*0x9e3779b97f4a7c15
	x ^= x >> 31
	return x * 0xbf58476d1ce4e5b9
}

// errWrong says that a list cannot be what the store held at any time.
var errWrong = errors.New("wrong list")

// add takes the next keys of a list, which must come in order and be of the list's revision or an earlier one.
func (l *listing) add(kvs []*mvccpb.KeyValue) error {
	for _, kv := range kvs {
		key := string(kv.Key)
		if key <= l.last {
			return fmt.Errorf("%w at %d: %s comes after %s", errWrong, l.revision, key, l.last)
		}
		if l.revision != 0 && kv.ModRevision > l.revision {
			return fmt.Errorf("%w at %d: %s has revision %d", errWrong, l.revision, key, kv.ModRevision)
		}
		l.last = key
		l.count++
		l.digest += digest(key, kv.ModRevision)
	}
	return nil
}

// getPage asks for keys from start on, at a revision or, if that is zero, the latest.
type getPage func(ctx context.Context, start string, revision int64) (*clientv3.GetResponse, error)

// pager returns how to get pages of a resource from a server, as k8s.io/apiserver does.
func pager(kv clientv3.KV, r resource) getPage {
	end := clientv3.GetPrefixRangeEnd(prefixes[r])
	return func(ctx context.Context, start string, revision int64) (*clientv3.GetResponse, error) {
		return kv.Get(ctx, start, clientv3.WithRange(end), clientv3.WithLimit(pageLimit), clientv3.WithRev(revision))
	}
}

// walk lists a resource page by page: the first at the latest revision, the others at the first one's. each, if not nil, gets
// the keys and how long their page took.
func walk(
	ctx context.Context, r resource, get getPage, each func(kvs []*mvccpb.KeyValue, took time.Duration),
) (*listing, error) {
	l := &listing{resource: r}
	start := prefixes[r]
	for {
		begun := time.Now()
		answer, err := get(ctx, start, l.revision)
		if err != nil {
			return nil, err
		}
		if l.revision == 0 {
			l.revision = answer.Header.Revision
		}
		listed := l.count
		if err := l.add(answer.Kvs); err != nil {
			return nil, err
		}
		if each != nil {
			each(answer.Kvs, time.Since(begun))
		}
		got := int64(l.count - listed)
		switch {
		case got > pageLimit:
			return nil, fmt.Errorf("%w at %d: a page of %d keys, asked for %d", errWrong, l.revision, got, pageLimit)
		case answer.Count < got || answer.More != (got < answer.Count):
			return nil, fmt.Errorf("%w at %d: %d of %d keys in a page, more: %v", errWrong, l.revision, got, answer.Count,
				answer.More)
		case !answer.More:
			return l, nil
		case got == 0:
			return nil, fmt.Errorf("%w at %d: no keys in a page, and more are said to follow", errWrong, l.revision)
		}
		start = l.last + "\x00"
	}
}

// states lists a resource with the states of its keys.
func states(ctx context.Context, kv clientv3.KV, r resource) (map[string]state, int64, error) {
	listed := map[string]state{}
	l, err := walk(ctx, r, pager(kv, r), func(kvs []*mvccpb.KeyValue, _ time.Duration) {
		for _, kv := range kvs {
			listed[string(kv.Key)] = stateOf(kv)
		}
	})
	if err != nil {
		return nil, 0, err
	}
	return listed, l.revision, nil
}

// stream lists a resource by RangeStream.
func stream(ctx context.Context, r resource, kv clientv3.KV) (*listing, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers, err := kv.GetStream(ctx, prefixes[r], clientv3.WithRange(clientv3.GetPrefixRangeEnd(prefixes[r])))
	if err != nil {
		return nil, err
	}
	l := &listing{resource: r}
	latest := int64(0)
	for answer := range answers {
		if err := answer.Err(); err != nil {
			return nil, err
		}
		if h := answer.RangeResponse.Header; l.revision == 0 && h != nil {
			l.revision = h.Revision
		}
		for _, kv := range answer.RangeResponse.Kvs {
			latest = max(latest, kv.ModRevision)
		}
		if err := l.add(answer.RangeResponse.Kvs); err != nil {
			return nil, err
		}
	}
	if l.revision == 0 || latest > l.revision {
		return nil, fmt.Errorf("%w, streamed, at %d: has a key of revision %d", errWrong, l.revision, latest)
	}
	return l, nil
}

// replay compares lists, in the order of their revisions, with what a watch was told up to each. The watch began with the
// states of its first list.
func replay(c *Checker, first map[string]state, lists []*listing) {
	alive := map[string]int64{}
	total := uint64(0)
	for key, s := range first {
		alive[key] = s.modified
		total += digest(key, s.modified)
	}
	next := 0
	for _, l := range lists {
		for ; next < len(c.told) && c.told[next].revision <= l.revision; next++ {
			e := c.told[next]
			if modified, there := alive[e.key]; there {
				total -= digest(e.key, modified)
			}
			delete(alive, e.key)
			if !e.deleted {
				alive[e.key] = e.revision
				total += digest(e.key, e.revision)
			}
		}
		if l.count != len(alive) || l.digest != total {
			c.violations.addf("%s: a list at revision %d has %d keys, the watch told of %d, digests %x and %x", c.name,
				l.revision, l.count, len(alive), l.digest, total)
		}
	}
}
