package rpc

import (
	"context"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/rpc/front"
	"github.com/quorate/quorate/internal/rpc/gate"
	"github.com/quorate/quorate/internal/rpc/h2"
	"github.com/quorate/quorate/internal/rpc/split"
	"github.com/quorate/quorate/internal/rpc/validate"
	"github.com/quorate/quorate/internal/rpc/wire"
)

// desc describes the service with methods that decode requests straight into commands.
func (s *kvService) desc() *grpc.ServiceDesc {
	return &grpc.ServiceDesc{
		ServiceName: "etcdserverpb.KV",
		Methods: []grpc.MethodDesc{
			{MethodName: "Range", Handler: direct(s, pb.KV_Range_FullMethodName, (*rangeRequest).servedByLearner, s.rangeKeys)},
			{MethodName: "Put", Handler: direct(s, pb.KV_Put_FullMethodName, nil, s.put)},
			{MethodName: "DeleteRange", Handler: direct(s, pb.KV_DeleteRange_FullMethodName, nil, s.deleteRange)},
			{MethodName: "Txn", Handler: direct(s, pb.KV_Txn_FullMethodName, nil, s.txn)},
			{MethodName: "Compact", Handler: direct(s, pb.KV_Compact_FullMethodName, nil, s.compact)},
		},
		Streams:  []grpc.StreamDesc{{StreamName: "RangeStream", Handler: s.serveRangeStream, ServerStreams: true}},
		Metadata: "rpc.proto",
	}
}

// direct makes the handler of a method whose calls have a goroutine. It passes the gate itself, so no interceptor is called.
// learnersServe reports which calls learners serve; nil: none.
func direct[Call, Response any](
	s *kvService, name string, learnersServe func(*Call) bool, serve func(context.Context, *Call) (Response, error),
) grpc.MethodHandler {
	method, op := s.gate.Method(name), audit.OpOf(name)
	return func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		c := &struct { // one allocation
			split split.Call
			call  Call
		}{split: split.Call{Context: ctx}}
		call := &c.call
		s.limitParts(call)
		if err := decode(call); err != nil {
			return nil, err
		}
		byLearner := learnersServe != nil && learnersServe(call)
		r := s.audits.begin(ctx, name, op)
		if r == nil {
			return gate.Pass(s.gate, &c.split, method, byLearner, func() (Response, error) { return serve(&c.split, call) })
		}
		r.describe(call)
		refused := s.audits.admit(ctx, r)
		response, err := gate.Pass(s.gate, &c.split, method, byLearner, func() (none Response, _ error) {
			if refused != nil {
				return none, refused
			}
			return serve(&c.split, call)
		})
		s.audits.end(ctx, r, revisionOf(response), err)
		return response, err
	}
}

// promptMethods begin calls without a goroutine.
func (s *kvService) promptMethods() map[string]front.Prompt {
	prompt := func(name string, begin func(c asyncCall, message []byte) bool) front.Prompt {
		method := s.gate.Method(name)
		return func(c *front.Call, message []byte) bool {
			return begin(asyncCall{kv: s, front: c, method: method}, message)
		}
	}
	return map[string]front.Prompt{
		pb.KV_Put_FullMethodName:   prompt(pb.KV_Put_FullMethodName, beginPut),
		pb.KV_Txn_FullMethodName:   prompt(pb.KV_Txn_FullMethodName, beginTxn),
		pb.KV_Range_FullMethodName: prompt(pb.KV_Range_FullMethodName, beginRange),
	}
}

func (s *kvService) put(ctx context.Context, r *putRequest) (h2.Message, error) {
	return s.writeBlocking(ctx, r)
}

func (s *kvService) deleteRange(ctx context.Context, r *deleteRequest) (h2.Message, error) {
	return s.writeBlocking(ctx, r)
}

// putRequest is a Put request.
type putRequest struct{ wire.PutCall }

// command implements writeRequest.
func (r *putRequest) command() *kv.Command {
	r.Command.Put = &r.Op
	return &r.Command
}

// admit implements writeRequest.
func (r *putRequest) admit(ctx context.Context, s *kvService, check growthCheck) error {
	command := r.command()
	if err := s.checkGrowth(ctx, command, check); err != nil {
		return err
	}
	if err := validate.Put(&r.Op); err != nil {
		return err
	}
	if err := validate.Size(r.Size, s.options.MaxRequestBytes); err != nil {
		return err
	}
	return s.checkKeys(ctx, command, check)
}

// respond implements writeRequest.
func (*putRequest) respond(s *kvService, result *kv.Result) h2.Message {
	response := &wire.PutResponse{Header: s.headerAt(result.Revision), Memory: result.Memory}
	if result.Put != nil {
		response.Prev = result.Put.Prev
	}
	return response
}

// size implements writeRequest.
func (r *putRequest) size() int { return r.Size }

func beginPut(c asyncCall, message []byte) bool {
	w := &struct {
		asyncWrite
		putRequest
	}{asyncWrite: asyncWrite{asyncCall: c}}
	if w.DecodeWire(message) != nil || w.Op.PrevKV { // w aliases the message, which is valid until the proposal
		return false
	}
	return w.start(&w.putRequest, len(message))
}

// deleteRequest is a DeleteRange request.
type deleteRequest struct{ wire.DeleteCall }

// command implements writeRequest.
func (r *deleteRequest) command() *kv.Command {
	r.Command.Delete = &r.Op
	return &r.Command
}

// admit implements writeRequest.
func (r *deleteRequest) admit(ctx context.Context, s *kvService, check growthCheck) error {
	if err := validate.Delete(&r.Op); err != nil {
		return err
	}
	if err := validate.Size(r.Size, s.options.MaxRequestBytes); err != nil {
		return err
	}
	return s.checkKeys(ctx, r.command(), check)
}

// respond implements writeRequest.
func (*deleteRequest) respond(s *kvService, result *kv.Result) h2.Message {
	response := &wire.DeleteResponse{Header: s.headerAt(result.Revision), Result: result.Delete, Memory: result.Memory}
	if response.Result == nil {
		response.Result = &kv.DeleteResult{}
	}
	return response
}

// size implements writeRequest.
func (r *deleteRequest) size() int { return r.Size }

func (s *kvService) compact(ctx context.Context, r *pb.CompactionRequest) (*pb.CompactionResponse, error) {
	op := &kv.CompactOp{Revision: kv.Revision(r.Revision)}
	if _, err := s.propose(ctx, &kv.Command{Compact: op}); err != nil {
		return nil, err
	}
	if r.Physical {
		if err := s.awaitCompaction(ctx, op.Revision); err != nil {
			return nil, err
		}
	}
	return &pb.CompactionResponse{Header: s.headerNow().Message()}, nil
}

// compactionPoll is the time between two checks whether a physical compaction is done.
const compactionPoll = 10 * time.Millisecond

// awaitCompaction waits until the rows that a compaction made unreachable are deleted from this member's store.
func (s *shared) awaitCompaction(ctx context.Context, revision kv.Revision) error {
	ticker := time.NewTicker(compactionPoll)
	defer ticker.Stop()
	for {
		machine, release := s.options.Member.Machine()
		done := machine.Store().CompactedTo() >= revision
		release()
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}
