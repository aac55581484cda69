package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	keyCount  = 10000
	valueSize = 256
	ownKeys   = 8 // txn: so many keys each worker has for itself
)

// chooser draws keys and values. Values are random bytes, so that nobody gains by compressing them.
type chooser struct {
	random *rand.Rand
	pool   string
}

func newChooser(seed uint64) chooser {
	source := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), 1})
	pool := make([]byte, 64*valueSize)
	_, _ = source.Read(pool) // never fails
	return chooser{random: rand.New(source), pool: string(pool)}
}

func keyAt(i int) string { return fmt.Sprintf("k%07d", i) }

func (c chooser) key() string { return keyAt(c.random.IntN(keyCount)) }

func (c chooser) value() string {
	at := c.random.IntN(len(c.pool) - valueSize)
	return c.pool[at : at+valueSize]
}

// operations are the closed-loop workloads.
var operations = map[string]func(context.Context, *worker) error{
	"put":   put,
	"range": get,
	"txn":   compareAndSet,
	"mixed": func(ctx context.Context, w *worker) error {
		if w.keys.random.IntN(2) == 0 {
			return put(ctx, w)
		}
		return get(ctx, w)
	},
	"lease-grant":   grantLease,
	"keepalive":     keepAlive(1),
	"keepalive-100": keepAlive(manyLeases),
}

func put(ctx context.Context, w *worker) error {
	_, err := w.client.Put(ctx, w.keys.key(), w.keys.value())
	return err
}

// get is a linearizable read of one key.
func get(ctx context.Context, w *worker) error {
	_, err := w.client.Get(ctx, w.keys.key())
	return err
}

// compareAndSet writes a key of the worker's own if nobody wrote it since, and else learns its revision.
func compareAndSet(ctx context.Context, w *worker) error {
	key := fmt.Sprintf("t%05d-%d", w.number, w.keys.random.IntN(ownKeys))
	answer, err := w.client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(key), "=", w.seen[key])).
		Then(clientv3.OpPut(key, w.keys.value())).
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

// fill writes n keys under names, a hundred in a transaction, from 16 clients.
func fill(ctx context.Context, c *cluster, n int, name func(int) string) error {
	const batch, writers = 100, 16
	workers, err := openWorkers(ctx, c, writers)
	if err != nil {
		return err
	}
	defer func() { _ = closeWorkers(workers) }() // everything was answered
	var next atomic.Int64
	return eachWorker(workers, func(w *worker) error {
		for {
			from := int(next.Add(batch)) - batch
			if from >= n {
				return nil
			}
			var puts []clientv3.Op
			for i := from; i < min(from+batch, n); i++ {
				puts = append(puts, clientv3.OpPut(name(i), w.keys.value()))
			}
			if _, err := w.client.Txn(ctx).Then(puts...).Commit(); err != nil {
				return fmt.Errorf("fill from %d: %w", from, err)
			}
		}
	})
}
