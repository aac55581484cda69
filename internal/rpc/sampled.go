package rpc

import (
	"bytes"
	"context"
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/base/heavy"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/watch"
	"github.com/quorate/quorate/internal/limits/admission"
	"github.com/quorate/quorate/internal/rpc/h2"
	"github.com/quorate/quorate/internal/rpc/top"
)

// Calls are counted for the Top service as samples: one call of oneOf, which counts as so many, and each call that is large. A
// large call would be a matter of luck, and costs so much itself that counting it is nothing beside it.
const (
	oneOf = 16
	// largeBytes is from when on a request, or the answer to a read, is large.
	largeBytes = 64 << 10
	// largeTime is the same of the time that a read took in the store.
	largeTime = time.Millisecond
)

// note is what is counted of a call.
type note struct {
	top.Call
	times    uint64 // how many calls it stands for
	parts    int
	received int
}

// drawn reports whether a call is a sample. It is drawn, not counted off: clients that make their calls in turns would always
// have the same one counted.
func drawn() bool { return rand.Uint32()%oneOf == 0 }

// timesOf returns for how many calls one counts; 0: it is not counted.
func timesOf(large bool) uint64 {
	switch {
	case large:
		return 1
	case drawn():
		return oneOf
	}
	return 0
}

// noteWrite begins to count a write; nil: it is not counted. It copies what it keeps of the command.
func noteWrite(command *kv.Command, received int) *note {
	times := timesOf(received >= largeBytes)
	if times == 0 {
		return nil
	}
	n := &note{times: times, received: received}
	var key []byte
	switch {
	case command.Put != nil:
		n.Op, key = top.Put, command.Put.Key
	case command.Delete != nil:
		n.Op, key = top.Delete, command.Delete.Key
	case command.Txn != nil:
		n.Op, key, n.parts = top.Txn, firstKey(command.Txn), partsOf(command.Txn)
	}
	n.Prefix = bytes.Clone(top.Prefix(key))
	return n
}

// firstKey is the key for which a transaction counts.
func firstKey(op *kv.TxnOp) []byte {
	if len(op.Compares) > 0 {
		return op.Compares[0].Key
	}
	for _, list := range [2][]kv.Op{op.Then, op.Else} {
		for i := range list {
			switch one := &list[i]; {
			case one.Put != nil:
				return one.Put.Key
			case one.Delete != nil:
				return one.Delete.Key
			case one.Range != nil:
				return one.Range.Key
			case one.Txn != nil && len(one.Txn.Compares) > 0:
				return one.Txn.Compares[0].Key
			}
		}
	}
	return nil
}

// partsOf counts comparisons and operations, also those of the transactions in it.
func partsOf(op *kv.TxnOp) int {
	parts := len(op.Compares) + len(op.Then) + len(op.Else)
	for _, list := range [2][]kv.Op{op.Then, op.Else} {
		for i := range list {
			if list[i].Txn != nil {
				parts += partsOf(list[i].Txn)
			}
		}
	}
	return parts
}

// took counts a write that was answered, by so many bytes.
func (s *shared) took(ctx context.Context, n *note, by string, sent int) {
	if n != nil {
		n.User = by
		s.count(admission.CallerOf(ctx).Host, n, n.received+sent, top.CostOfWrite(n.parts, n.received, sent))
	}
}

// tookRead counts a read, which was so long in the store, and is answered by so many bytes. by is asked only for what is
// counted.
func (s *shared) tookRead(ctx context.Context, op top.Op, key []byte, in time.Duration, sent int, by func() string) {
	times := timesOf(sent >= largeBytes || in >= largeTime)
	if times == 0 {
		return
	}
	n := &note{Call: top.Call{Op: op, Prefix: top.Prefix(key), User: by()}, times: times}
	s.count(admission.CallerOf(ctx).Host, n, len(key)+sent, top.CostOfRead(in, sent))
}

// tookWatch counts a message of events to a watcher of a host, by the prefix of the first one.
func (s *shared) tookWatch(host string, batch *watch.Batch, sent int, by string) {
	times := timesOf(sent >= largeBytes)
	if times == 0 || len(batch.Events) == 0 {
		return
	}
	n := &note{Call: top.Call{Op: top.Watch, Prefix: top.Prefix(batch.Events[0].KV.Key), User: by}, times: times}
	s.count(host, n, sent, top.CostOfMessage(sent))
}

// count counts a call as often as its note stands for.
func (s *shared) count(host string, n *note, moved int, cost time.Duration) {
	n.Host = host
	n.Weights = heavy.Weights{top.Operations: 1, top.Bytes: uint64(moved), top.Processor: uint64(cost)}.Times(n.times)
	s.top.Take(s.options.Clock.Now(), &n.Call)
}

// sizeOf is the size of an answer, of which there may be none.
func sizeOf(message h2.Message, err error) int {
	if err != nil || message == nil {
		return 0
	}
	return message.SizeWire()
}
