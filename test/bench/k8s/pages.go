package k8s

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	pageLimit  = 500    // of kube-controller-manager and kubectl
	checkLimit = 10_000 // of kube-apiserver, which compares its cache with the store
)

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

// pager returns how to get pages of a resource from a server, as k8s.io/apiserver does without RangeStream.
func pager(kv clientv3.KV, r resource, limit int64) getPage {
	end := clientv3.GetPrefixRangeEnd(prefixes[r])
	return func(ctx context.Context, start string, revision int64) (*clientv3.GetResponse, error) {
		return kv.Get(ctx, start, clientv3.WithRange(end), clientv3.WithLimit(limit), clientv3.WithRev(revision))
	}
}

// pages says of what walk and stream make a list.
type pages struct {
	resource resource
	revision int64 // zero: the latest
	limit    int64 // keys in a page; zero: all of them, which only stream can
}

// each, if not nil, gets the keys of a page, or of a part of one that is streamed, and how long it took.
type each func(kvs []*mvccpb.KeyValue, took time.Duration)

// walk lists a resource page by page: the first at a revision or the latest, the others at the first one's.
func walk(ctx context.Context, p pages, get getPage, do each) (*listing, error) {
	l := &listing{resource: p.resource, revision: p.revision}
	start := prefixes[p.resource]
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
		if do != nil {
			do(answer.Kvs, time.Since(begun))
		}
		if err := l.judge(listed, p.limit, answer.Count, answer.More); err != nil || !answer.More {
			return l, err
		}
		start = l.last + "\x00"
	}
}

// judge says what is wrong with how a page ended, before which the list had some keys.
func (l *listing) judge(before int, limit, count int64, more bool) error {
	got := int64(l.count - before)
	switch {
	case limit > 0 && got > limit:
		return fmt.Errorf("%w at %d: a page of %d keys, asked for %d", errWrong, l.revision, got, limit)
	case count < got || more != (got < count):
		return fmt.Errorf("%w at %d: %d of %d keys in a page, more: %v", errWrong, l.revision, got, count, more)
	case more && limit == 0:
		return fmt.Errorf("%w at %d: %d of %d keys, asked for all", errWrong, l.revision, got, count)
	case more && got == 0:
		return fmt.Errorf("%w at %d: no keys in a page, and more are said to follow", errWrong, l.revision)
	}
	return nil
}

// states lists a resource with the states of its keys, as an API server that starts does.
func states(ctx context.Context, kv clientv3.KV, r resource) (map[string]state, int64, error) {
	listed := map[string]state{}
	keep := func(kvs []*mvccpb.KeyValue, _ time.Duration) {
		for _, kv := range kvs {
			listed[string(kv.Key)] = stateOf(kv)
		}
	}
	l, err := stream(ctx, pages{resource: r}, kv, keep)
	if status.Code(err) == codes.Unimplemented {
		l, err = walk(ctx, pages{resource: r, limit: pageLimit}, pager(kv, r, pageLimit), keep)
	}
	if err != nil {
		return nil, 0, err
	}
	return listed, l.revision, nil
}

// stream lists a resource by RangeStream, as k8s.io/apiserver does from 1.37 on: all of it at once, or page by page, each by a
// stream of its own.
func stream(ctx context.Context, p pages, kv clientv3.KV, do each) (*listing, error) {
	l := &listing{resource: p.resource, revision: p.revision}
	for start := prefixes[p.resource]; ; start = l.last + "\x00" {
		more, err := l.stream(ctx, start, p.limit, kv, do)
		if err != nil || !more {
			return l, err
		}
	}
}

// stream takes the next keys of a list from a stream. Its last message alone has a revision, a count and whether there are
// more: the revision is that of the list if it asked for none, and else one that the store had reached meanwhile.
func (l *listing) stream(ctx context.Context, start string, limit int64, kv clientv3.KV, do each) (more bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	begun := time.Now()
	answers, err := kv.GetStream(ctx, start, clientv3.WithRange(clientv3.GetPrefixRangeEnd(prefixes[l.resource])),
		clientv3.WithLimit(limit), clientv3.WithRev(l.revision))
	if err != nil {
		return false, err
	}
	listed, latest, at, count := l.count, int64(0), int64(0), int64(0)
	for answer := range answers {
		if err := answer.Err(); err != nil {
			return false, err
		}
		part := answer.RangeResponse
		for _, kv := range part.Kvs {
			latest = max(latest, kv.ModRevision)
		}
		if err := l.add(part.Kvs); err != nil {
			return false, err
		}
		if do != nil {
			do(part.Kvs, time.Since(begun))
		}
		if part.Header != nil {
			at, count, more = part.Header.Revision, part.Count, part.More
		}
	}
	if l.revision == 0 {
		l.revision = at
	}
	switch {
	case at == 0:
		return false, fmt.Errorf("%w, streamed: it ended without a revision", errWrong)
	case at < l.revision:
		return false, fmt.Errorf("%w, streamed, at %d: the store is said to be at %d", errWrong, l.revision, at)
	case latest > l.revision:
		return false, fmt.Errorf("%w, streamed, at %d: has a key of revision %d", errWrong, l.revision, latest)
	}
	return more, l.judge(listed, limit, count, more)
}

// lists are those whose content is still to be compared.
type lists struct {
	mu  sync.Mutex
	all []*listing
}

func (l *lists) keep(one *listing) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, one)
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
