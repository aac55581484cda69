package history

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Registers is how many keys RunClient uses.
const Registers = 5

const opPause = 3 * time.Millisecond

// RunClient puts, gets and compares-and-sets registers, one after another, until ctx ends.
func RunClient(ctx context.Context, client *clientv3.Client, id int, random *rand.Rand, record *Recorder) {
	for n := 0; ctx.Err() == nil; n++ {
		op := Operation{Key: fmt.Sprintf("key%d", random.IntN(Registers)), Value: fmt.Sprintf("%d-%d", id, n)}
		switch roll := random.IntN(10); {
		case roll < 5:
			op.Kind = 'p'
		case roll < 8:
			op.Kind = 'g'
		default:
			op.Kind = 'c'
		}
		one(client, id, op, record)
		select {
		case <-ctx.Done():
		case <-time.After(opPause):
		}
	}
}

// one does an operation that is not cut short by the end of the test, so that few answers are lost.
func one(client *clientv3.Client, id int, op Operation, record *Recorder) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	if op.Kind == 'c' {
		got, err := client.Get(ctx, op.Key)
		if err != nil {
			record.Fail(err)
		}
		if err != nil || len(got.Kvs) == 0 {
			return
		}
		op.Mod = got.Kvs[0].ModRevision
	}
	call := record.Since()
	a, err := do(ctx, client, op)
	if err != nil {
		record.Fail(err)
		if errors.Is(err, rpctypes.ErrNoLeader) {
			return // nothing happened
		}
		a = Answer{Unknown: true}
	}
	record.Add(id, call, op, a)
}

func do(ctx context.Context, client *clientv3.Client, op Operation) (Answer, error) {
	switch op.Kind {
	case 'p':
		put, err := client.Put(ctx, op.Key, op.Value)
		if err != nil {
			return Answer{}, err
		}
		return Answer{Revision: put.Header.Revision}, nil
	case 'g':
		got, err := client.Get(ctx, op.Key)
		if err != nil {
			return Answer{}, err
		}
		if len(got.Kvs) == 0 {
			return Answer{}, nil
		}
		return Answer{Found: true, Value: string(got.Kvs[0].Value), Revision: got.Kvs[0].ModRevision}, nil
	}
	txn, err := client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(op.Key), "=", op.Mod)).
		Then(clientv3.OpPut(op.Key, op.Value)).Commit()
	if err != nil {
		return Answer{}, err
	}
	return Answer{Swapped: txn.Succeeded, Revision: txn.Header.Revision}, nil
}
