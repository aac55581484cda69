package load

import (
	"github.com/quorate/quorate/test/bench/cluster"

	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	KeyCount  = 10000
	valueSize = 256
	ownKeys   = 8 // txn: so many keys each worker has for itself
)

// Chooser draws keys and values. Values are random bytes, so that no server gains by compressing them.
type Chooser struct {
	Random *rand.Rand
	pool   string
}

func NewChooser(seed uint64) Chooser {
	source := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), 1})
	pool := make([]byte, 64*valueSize)
	_, _ = source.Read(pool) // never fails
	return Chooser{Random: rand.New(source), pool: string(pool)}
}

func KeyAt(i int) string { return fmt.Sprintf("k%07d", i) }

func (c Chooser) Key() string { return KeyAt(c.Random.IntN(KeyCount)) }

func (c Chooser) Value() string {
	at := c.Random.IntN(len(c.pool) - valueSize)
	return c.pool[at : at+valueSize]
}

// Operations are the closed-loop workloads.
var Operations = map[string]func(context.Context, *Worker) error{
	"put":   Put,
	"range": Get,
	"txn":   compareAndSet,
	"mixed": func(ctx context.Context, w *Worker) error {
		if w.Keys.Random.IntN(2) == 0 {
			return Put(ctx, w)
		}
		return Get(ctx, w)
	},
	"lease-grant":   grantLease,
	"keepalive":     keepAlive(1),
	"keepalive-100": keepAlive(manyLeases),
}

func Put(ctx context.Context, w *Worker) error {
	_, err := w.Client.Put(ctx, w.Keys.Key(), w.Keys.Value())
	return err
}

// PutNew puts a key that no worker of another number has put, and that this one did not put before.
func PutNew(ctx context.Context, w *Worker) error {
	_, err := w.Client.Put(ctx, w.newKey(), "value")
	return err
}

// GetNew is a linearizable read of such a key.
func GetNew(ctx context.Context, w *Worker) error {
	_, err := w.Client.Get(ctx, w.newKey())
	return err
}

func (w *Worker) newKey() string {
	w.made++
	return fmt.Sprintf("new/%d/%d", w.Number, w.made)
}

// Get is a linearizable read of one key.
func Get(ctx context.Context, w *Worker) error {
	_, err := w.Client.Get(ctx, w.Keys.Key())
	return err
}

// compareAndSet writes a key of the worker's own if no other client wrote it since, and else learns its revision.
func compareAndSet(ctx context.Context, w *Worker) error {
	key := fmt.Sprintf("t%05d-%d", w.Number, w.Keys.Random.IntN(ownKeys))
	answer, err := w.Client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(key), "=", w.seen[key])).
		Then(clientv3.OpPut(key, w.Keys.Value())).
		Else(clientv3.OpGet(key)).Commit()
	if err != nil {
		return err
	}
	if w.seen == nil {
		w.seen = map[string]int64{}
	}
	w.seen[key] = answer.Header.Revision
	if !answer.Succeeded {
		w.seen[key] = 0
		for _, found := range answer.Responses[0].GetResponseRange().Kvs {
			w.seen[key] = found.ModRevision
		}
	}
	return nil
}

// Fill writes n keys under names, a hundred in a transaction, from 16 clients.
func Fill(ctx context.Context, c *cluster.Cluster, n int, name func(int) string) error {
	const batch, writers = 100, 16
	workers, err := Open(ctx, c, writers)
	if err != nil {
		return err
	}
	defer func() { _ = Close(workers) }() // everything was answered
	var next atomic.Int64
	return Each(workers, func(w *Worker) error {
		for {
			from := int(next.Add(batch)) - batch
			if from >= n {
				return nil
			}
			var puts []clientv3.Op
			for i := from; i < min(from+batch, n); i++ {
				puts = append(puts, clientv3.OpPut(name(i), w.Keys.Value()))
			}
			if _, err := w.Client.Txn(ctx).Then(puts...).Commit(); err != nil {
				return fmt.Errorf("fill from %d: %w", from, err)
			}
		}
	})
}
