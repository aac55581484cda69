package rpc_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/limits/admission"
	"github.com/quorate/quorate/internal/member/proposals"
	"github.com/quorate/quorate/internal/rpc"
)

// heavyBackend answers no write, and tells what the decoded transactions take that wait for it.
type heavyBackend struct {
	*machineBackend
	bytes chan int
}

func (b *heavyBackend) ProposeAsync(command *kv.Command, _ proposals.Completion) (func() bool, error) {
	b.bytes <- command.Txn.Bytes()
	return func() bool { return true }, nil
}

func (b *heavyBackend) Propose(ctx context.Context, command *kv.Command) (kv.Result, error) {
	b.bytes <- command.Txn.Bytes()
	<-ctx.Done()
	return kv.Result{}, ctx.Err()
}

// Ensure that the parts of decoded transactions count with what their client host holds, until they are answered: two bytes of a
// request make a hundred in memory. Those that ask for previous pairs are served by a goroutine, others by none.
func TestServices_txn_partsAreHeld(t *testing.T) {
	if *library {
		t.Skip("the library counts no requests")
	}
	const total = 4 << 20
	for _, cell := range []struct {
		name   string
		prevKV bool
	}{{"without a goroutine", false}, {"with a goroutine", true}} {
		t.Run(cell.name, func(t *testing.T) {
			backend := &heavyBackend{newMachineBackend(t), make(chan int, 4096)}
			s := serve(t, backend, func(o *rpc.Options) { o.Held = admission.NewLedger(total) })
			client := pb.NewKVClient(s.conn(t))
			ctx, cancel := context.WithTimeout(t.Context(), testWait)
			defer cancel()
			refused := make(chan error, 4096)
			const calls, ops = 200, 100
			for i := range calls {
				r := &pb.TxnRequest{Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{
					Key: fmt.Appendf(nil, "k%d", i), PrevKv: cell.prevKV}}}}}
				for n := range ops {
					read := &pb.RangeRequest{Key: fmt.Appendf(nil, "r%d", n)}
					r.Success = append(r.Success, &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: read}})
				}
				go func() {
					_, err := client.Txn(ctx, r)
					refused <- err
				}()
			}
			held, taken, sentAway := 0, 0, 0
			for taken+sentAway < calls {
				select {
				case n := <-backend.bytes:
					held += n
					taken++
				case err := <-refused:
					if status.Code(err) != codes.ResourceExhausted {
						t.Fatal(err)
					}
					sentAway++
				case <-time.After(testWait):
					t.Fatalf("%d calls are proposed and %d refused of %d", taken, sentAway, calls)
				}
			}
			if held > total/2 || taken == 0 || sentAway == 0 {
				t.Errorf("%d calls are under way whose transactions take %d bytes, where a host may have %d; %d were refused",
					taken, held, total/2, sentAway)
			}
		})
	}
}
