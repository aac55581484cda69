package rpc_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/limits/admission"
	"github.com/quorate/quorate/internal/limits/answers"
	"github.com/quorate/quorate/internal/member/proposals"
	"github.com/quorate/quorate/internal/rpc"
)

// watchedBackend counts the uses of the state machine.
type watchedBackend struct {
	*machineBackend
	reading atomic.Int64
}

func (b *watchedBackend) Machine() (*apply.Machine, func()) {
	b.reading.Add(1)
	return b.machine, func() { b.reading.Add(-1) }
}

// gatedBackend answers proposals when enough of them wait.
type gatedBackend struct {
	*machineBackend
	calls   int
	mu      sync.Mutex
	pending []func()
	full    func() // called before they are answered
}

func (b *gatedBackend) ProposeAsync(command *kv.Command, done proposals.Completion) (func() bool, error) {
	result, err := b.Propose(context.Background(), command)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pending = append(b.pending, func() { done.Complete(result, err) })
	if len(b.pending) == b.calls {
		b.full()
		for _, complete := range b.pending {
			complete()
		}
	}
	return func() bool { return false }, nil
}

func (b *watchedBackend) putMany(t testing.TB, n int) {
	t.Helper()
	for i := 0; i < n; {
		txn := &kv.TxnOp{}
		for range 1000 {
			txn.Then = append(txn.Then, kv.Op{Put: &kv.PutOp{Key: fmt.Appendf(nil, "key%08d", i)}})
			i++
		}
		if result, err := b.Propose(context.Background(), &kv.Command{Txn: txn}); err != nil || result.Err != nil {
			t.Fatal(err, result.Err)
		}
	}
}

// await waits until ok returns true.
func await(t *testing.T, ok func() bool) {
	t.Helper()
	for ctx := waitContext(t); !ok(); <-time.After(time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatal("it did not come")
		}
	}
}

// walks is a transaction that puts a key, and reads all keys n*n times without a match.
func walks(n int) *pb.TxnRequest {
	look := &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{
		Key: []byte{0}, RangeEnd: []byte{0}, MinModRevision: 1 << 62, Limit: 1,
	}}}
	inner := &pb.TxnRequest{}
	for range n {
		inner.Success = append(inner.Success, look)
	}
	outer := &pb.TxnRequest{Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestPut{
		RequestPut: &pb.PutRequest{Key: []byte("x")},
	}}}}
	for range n {
		outer.Success = append(outer.Success, &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: inner}})
	}
	return outer
}

// Ensure that reads for the answer to a call end with the call, on every transport: the transaction here reads 119 million
// keys.
func TestKV_answer_endsWithCall(t *testing.T) {
	b := &watchedBackend{machineBackend: newMachineBackend(t)}
	b.putMany(t, 30_000)
	s := serve(t, b, nil)
	for _, road := range roads {
		*library = road.library
		s.bare = serve(t, b, nil).conn(t)
		*library = false
		t.Run(road.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(waitContext(t))
			done := make(chan error, 1)
			go func() { done <- road.invoke(ctx, t, s, "", "Txn", walks(63)) }()
			await(t, func() bool { return b.reading.Load() > 0 })
			cancel()
			if err := <-done; status.Code(err) != codes.Canceled {
				t.Errorf("a canceled call: %v", err)
			}
			await(t, func() bool { return b.reading.Load() == 0 })
			timed, end := context.WithTimeout(waitContext(t), 200*time.Millisecond)
			defer end()
			if err := road.invoke(timed, t, s, "", "Txn", walks(63)); status.Code(err) != codes.DeadlineExceeded {
				t.Errorf("a call of 200 ms: %v", err)
			}
			await(t, func() bool { return b.reading.Load() == 0 })
		})
	}
}

// gatedCalls makes transactions, each with a large answer, that are executed before full is called, and answered after it. It
// calls meanwhile when all are made, and returns their errors.
func gatedCalls(t *testing.T, calls int, held *admission.Ledger, budget *answers.Budget, full, meanwhile func()) []error {
	t.Helper()
	b := &gatedBackend{machineBackend: newMachineBackend(t), calls: calls, full: full}
	large := &kv.PutOp{Key: []byte("k"), Value: make([]byte, 100<<10)}
	if _, err := b.Propose(context.Background(), &kv.Command{Put: large}); err != nil {
		t.Fatal(err)
	}
	s := serve(t, b, func(o *rpc.Options) { o.Held, o.Answers = held, budget })
	client := pb.NewKVClient(s.conn(t))
	if _, err := client.Range(waitContext(t), &pb.RangeRequest{Key: []byte("none")}); err != nil {
		t.Fatal(err)
	}
	ended := make([]error, calls)
	var running sync.WaitGroup
	for i := range calls {
		running.Go(func() {
			_, ended[i] = client.Txn(waitContext(t), &pb.TxnRequest{Success: []*pb.RequestOp{
				{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte("x")}}},
				{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: []byte("k")}}},
			}})
		})
	}
	meanwhile()
	running.Wait()
	return ended
}

// Ensure that the goroutines that finish calls are counted for the clients that made them.
func TestKV_answer_goroutinesAreCounted(t *testing.T) {
	const calls, goroutine = 16, 8 << 10
	held, budget := admission.NewLedger(64<<20), answers.New(64<<20, 0)
	giveBack, before := func() {}, int64(0)
	ended := gatedCalls(t, calls, held, budget, func() {
		before = held.Stats().Bytes
		var err error
		if giveBack, err = budget.Lend(context.Background(), 64<<20, 0); err != nil {
			t.Error(err)
		}
	}, func() {
		await(t, func() bool { return budget.Stats().Waiting == calls })
		if took := held.Stats().Bytes - before; took < calls*goroutine {
			t.Errorf("%d goroutines are counted as %d bytes", calls, took)
		}
		giveBack()
	})
	for _, err := range ended {
		if err != nil {
			t.Error(err)
		}
	}
}

// Ensure that the error of a transaction for whose answer there is no room says that it was executed.
func TestKV_answer_noRoom(t *testing.T) {
	held := admission.NewLedger(16 << 20)
	ended := gatedCalls(t, 8, held, answers.New(64<<20, 0), func() {
		for others := range 100 { // whatever one of them may have
			for entered := true; entered; {
				_, entered = held.Enter(fmt.Sprint("host", others), 4<<10)
			}
		}
	}, func() {})
	refused := 0
	for _, err := range ended {
		if err == nil { // another one gave its room back
			continue
		}
		refused++
		if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "the request was executed at revision") {
			t.Errorf("got %v", err)
		}
	}
	if refused == 0 {
		t.Error("there was room for all")
	}
}

// Ensure that a RangeStream's count of keys ends with its call where it has to read keys: here in a store that was just opened,
// whose census is empty.
func TestKV_count_ends(t *testing.T) {
	b := &watchedBackend{machineBackend: newMachineBackend(t)}
	b.putMany(t, 20_000)
	s := serve(t, b, nil)
	op := &kv.RangeOp{Key: []byte{1}, End: []byte{0}, CountOnly: true}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for _, ctx := range []context.Context{ended, context.Background()} {
		machine, err := apply.Open(b.store, apply.Options{})
		if err != nil {
			t.Fatal(err)
		}
		b.machine = machine
		found, err := s.services.Count(ctx, op)
		if err != ctx.Err() || err == nil && found != 20_000 {
			t.Errorf("%d keys: %v, want %v", found, err, ctx.Err())
		}
	}
}
