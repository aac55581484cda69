package objects_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// written is a transaction that the recorder knows to have happened.
type written struct {
	revision      int64
	key, value    string // value is empty: the key was deleted
	mark          string // what the key of marks has
	leases, users int    // that there were before it
	lease         clientv3.LeaseID
	asked, acked  time.Time
	hash          uint32 // of a member's store at the revision, if it has one
	hashed        bool
}

// recorder is one client that writes one transaction after another, and notes what there is at each revision.
type recorder struct {
	f      *fleet
	rng    *rand.Rand
	pace   time.Duration
	mu     sync.Mutex
	all    []written
	leases int // with the ids 1 to leases
	users  int // u1 to u…
	count  int
	guard  string
	stop   context.CancelFunc
	done   chan struct{}
}

// Each transaction writes the mark, by which it is known whether one whose answer was lost has happened, and asks for the guard.
const (
	markKey  = "mark"
	guardKey = "guard"
)

func (f *fleet) record(pace time.Duration) *recorder {
	ctx, stop := context.WithCancel(f.ctx)
	r := &recorder{f: f, rng: rand.New(rand.NewPCG(7, 9)), pace: pace, stop: stop, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.transact(ctx, &written{key: "k0"}) // fails, since there is no guard, and writes one
		for ctx.Err() == nil {
			r.write(ctx)
			f.pause(r.pace)
		}
	}()
	return r
}

// end ends the load and returns the last revision.
func (r *recorder) end() int64 {
	r.stop()
	<-r.done
	return r.last().revision
}

func (r *recorder) last() written {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.all) == 0 {
		return written{}
	}
	return r.all[len(r.all)-1]
}

// again calls until it succeeds, or the test has no time left: what it calls is there for sure afterwards.
func (r *recorder) again(call func(ctx context.Context) error) bool {
	for r.f.ctx.Err() == nil {
		limited, cancel := context.WithTimeout(r.f.ctx, 3*time.Second)
		err := call(limited)
		cancel()
		if err == nil || errors.Is(err, rpctypes.ErrLeaseExist) || errors.Is(err, rpctypes.ErrUserAlreadyExist) {
			return true
		}
		r.f.pause(20 * time.Millisecond)
	}
	return false
}

// write makes one step. A grant or a user is there for sure, or the load ends.
func (r *recorder) write(ctx context.Context) {
	r.count++
	switch {
	case r.count%40 == 0:
		id := clientv3.LeaseID(r.leases + 1)
		if r.again(func(ctx context.Context) error { return r.grant(ctx, id) }) {
			r.leases++
		}
		return
	case r.count%150 == 0:
		if r.again(func(ctx context.Context) error {
			_, err := r.f.client.UserAdd(ctx, fmt.Sprint("u", r.users+1), "password")
			return err
		}) {
			r.users++
		}
		return
	}
	w := written{key: fmt.Sprint("k", r.rng.IntN(300)), leases: r.leases, users: r.users}
	if r.count%9 != 0 {
		w.value = fmt.Sprint(r.count, strings.Repeat("v", r.rng.IntN(200)))
		if r.leases > 0 && r.count%7 == 0 {
			w.lease = clientv3.LeaseID(1 + r.rng.IntN(r.leases))
		}
	}
	r.transact(ctx, &w)
}

// add notes what is known to have happened.
func (r *recorder) add(w written) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, w)
}

// grant grants a lease of an hour. The client of etcd lets servers choose the id; here it is the next number.
func (r *recorder) grant(ctx context.Context, id clientv3.LeaseID) error {
	_, err := pb.NewLeaseClient(r.f.client.ActiveConnection()).LeaseGrant(ctx, &pb.LeaseGrantRequest{TTL: 3600, ID: int64(id)})
	return err
}

// transact writes, if the guard is as it was. When no answer comes it changes the guard, so that the transaction either has
// happened or never will, and finds out which.
func (r *recorder) transact(ctx context.Context, w *written) {
	mark := fmt.Sprint(r.count)
	op := clientv3.OpDelete(w.key)
	if w.value != "" {
		op = clientv3.OpPut(w.key, w.value, clientv3.WithLease(w.lease))
	}
	w.mark, w.asked = mark, time.Now()
	limited, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	done, err := r.f.client.Txn(limited).If(clientv3.Compare(clientv3.Value(guardKey), "=", r.guard)).Then(op,
		clientv3.OpPut(markKey, mark)).Commit()
	if err == nil && done.Succeeded {
		w.revision, w.acked = done.Header.Revision, time.Now()
		if r.count%10 == 0 {
			r.hash(ctx, w)
		}
		r.add(*w)
		return
	}
	settled := written{key: guardKey, value: mark, mark: r.last().mark, leases: r.leases, users: r.users}
	r.again(func(ctx context.Context) error {
		settled.asked = time.Now()
		put, err := r.f.client.Put(ctx, guardKey, mark)
		if err != nil {
			return err
		}
		settled.revision, settled.acked = put.Header.Revision, time.Now()
		got, err := r.f.client.Get(ctx, markKey)
		if err == nil && len(got.Kvs) == 1 && string(got.Kvs[0].Value) == mark {
			w.revision, w.acked = got.Kvs[0].ModRevision, time.Now()
		}
		return err
	})
	r.guard = mark
	if w.revision != 0 {
		r.add(*w)
		settled.mark = mark
	}
	r.add(settled)
}

// hash notes what a member says of its store at the revision.
func (r *recorder) hash(ctx context.Context, w *written) {
	limited, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	for _, n := range r.f.nodes {
		if got, err := r.f.client.HashKV(limited, n.client, w.revision); err == nil && got.HashRevision == w.revision {
			w.hash, w.hashed = got.Hash, true
			return
		}
	}
}

// times are those of the writes that were asked for since a moment.
func (r *recorder) times(since time.Time) (all []time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.all {
		if w.asked.After(since) {
			all = append(all, w.acked.Sub(w.asked))
		}
	}
	return all
}

// quantile returns a quantile of times; zero if there are none.
func quantile(times []time.Duration, q float64) time.Duration {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(times))
	return sorted[int(float64(len(sorted)-1)*q)].Round(100 * time.Microsecond)
}

// at returns all keys and values at the revision of the n-th write, and the leases and users until the next one.
func (r *recorder) at(n int) (keys map[string]string, leases, users int) {
	keys = map[string]string{}
	for _, w := range r.all[:n+1] {
		if w.value == "" {
			delete(keys, w.key)
		} else {
			keys[w.key] = w.value
		}
		if w.mark != "" {
			keys[markKey] = w.mark
		}
	}
	if n+1 < len(r.all) {
		return keys, r.all[n+1].leases, r.all[n+1].users
	}
	return keys, r.leases, r.users
}
