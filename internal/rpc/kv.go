package rpc

import (
	"context"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/rpc/gate"
	"github.com/quorate/quorate/internal/rpc/timings"
	"github.com/quorate/quorate/internal/rpc/validate"
	"github.com/quorate/quorate/internal/rpc/wire"
)

// kvService is etcd's KV service.
type kvService struct {
	*shared
	gate *gate.Gate
}

// desc describes the service with methods that read requests straight into kv's words.
func (s *kvService) desc() *grpc.ServiceDesc {
	return &grpc.ServiceDesc{
		ServiceName: "etcdserverpb.KV",
		Methods: []grpc.MethodDesc{
			{MethodName: "Range", Handler: s.rangeHandler()},
			{MethodName: "Put", Handler: direct(s, pb.KV_Put_FullMethodName, s.put)},
			{MethodName: "DeleteRange", Handler: direct(s, pb.KV_DeleteRange_FullMethodName, s.deleteRange)},
			{MethodName: "Txn", Handler: direct(s, pb.KV_Txn_FullMethodName, s.txn)},
			{MethodName: "Compact", Handler: direct(s, pb.KV_Compact_FullMethodName, s.compact)},
		},
		Streams:  []grpc.StreamDesc{{StreamName: "RangeStream", Handler: s.serveRangeStream, ServerStreams: true}},
		Metadata: "rpc.proto",
	}
}

// direct makes a gRPC handler of a method. It passes the gate itself, so no interceptor is called.
func direct[Call, Response any](
	s *kvService, name string, serve func(context.Context, *Call) (Response, error),
) grpc.MethodHandler {
	method := s.gate.Method(name)
	return func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		call := new(Call)
		s.limitParts(call)
		if err := decode(call); err != nil {
			return nil, err
		}
		return gate.Pass(s.gate, ctx, method, false, func() (Response, error) { return serve(ctx, call) })
	}
}

// rangeHandler is apart because a learner serves a range if it is serializable.
func (s *kvService) rangeHandler() grpc.MethodHandler {
	method := s.gate.Method(pb.KV_Range_FullMethodName)
	return func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		call := new(wire.RangeCall)
		if err := decode(call); err != nil {
			return nil, err
		}
		return gate.Pass(s.gate, ctx, method, call.Serializable, func() (*wire.RangeResponse, error) {
			return s.rangeKeys(ctx, call)
		})
	}
}

func (s *kvService) rangeKeys(ctx context.Context, call *wire.RangeCall) (_ *wire.RangeResponse, err error) {
	defer s.timings.Request(timings.Range, s.timings.Now(), &err)
	if err := validate.Range(&call.Op); err != nil {
		return nil, err
	}
	if err := s.awaitState(ctx, call.Serializable); err != nil {
		return nil, err
	}
	return s.readKeys(ctx, call)
}

// readKeys answers a range with what this member shows now.
func (s *kvService) readKeys(ctx context.Context, call *wire.RangeCall) (*wire.RangeResponse, error) {
	users, err := s.access.Read(ctx, call.Op.Key, call.Op.End)
	if err != nil {
		return nil, err
	}
	response := &wire.RangeResponse{}
	err = s.options.Answers.Build(ctx, 0, func(account kv.Account) error {
		return s.readInto(response, call, account)
	})
	if err != nil {
		return nil, s.unanswered(err)
	}
	if !s.access.Unchanged(users) {
		if _, err := s.access.Read(ctx, call.Op.Key, call.Op.End); err != nil {
			drop(response)
			return nil, err
		}
	}
	uncompressed(ctx, response.Memory)
	return response, nil
}

// readInto reads a range from the store.
func (s *kvService) readInto(response *wire.RangeResponse, call *wire.RangeCall, account kv.Account) error {
	machine, release := s.options.Member.Machine()
	defer release()
	begun := s.timings.Now()
	page, err := fill(response, account, machine.Store(), &call.Op, true)
	s.timings.Range(begun, err)
	machine.Counts().Ranges.Add(1)
	response.Header = s.headerAt(page.Revision)
	return err
}

func (s *kvService) put(ctx context.Context, call *wire.PutCall) (*wire.PutResponse, error) {
	if err := s.admitPut(ctx, call, s.firstCheck()); err != nil {
		return nil, err
	}
	result, err := s.propose(ctx, &call.Command)
	if err != nil {
		return nil, err
	}
	return s.putResponse(&result), nil
}

// admitPut refuses a put that may not be proposed, and makes its command.
func (s *kvService) admitPut(ctx context.Context, c *wire.PutCall, check growthCheck) error {
	c.Command.Put = &c.Op
	if err := check.quota(ctx, &c.Command); err != nil {
		return err
	}
	if err := validate.Put(&c.Op); err != nil {
		return err
	}
	if err := validate.Size(c.Size, s.options.MaxRequestBytes); err != nil {
		return err
	}
	return s.checkKeys(ctx, &c.Command, check)
}

// putResponse answers a put that was applied.
func (s *kvService) putResponse(result *kv.Result) *wire.PutResponse {
	response := &wire.PutResponse{Header: s.headerAt(result.Revision), Memory: result.Memory}
	if result.Put != nil {
		response.Prev = result.Put.Prev
	}
	return response
}

func (s *kvService) deleteRange(ctx context.Context, call *wire.DeleteCall) (*wire.DeleteResponse, error) {
	if err := s.admitDelete(ctx, call, s.firstCheck()); err != nil {
		return nil, err
	}
	result, err := s.propose(ctx, &call.Command)
	if err != nil {
		return nil, err
	}
	return s.deleteResponse(&result), nil
}

// admitDelete refuses a delete that may not be proposed, and makes its command.
func (s *kvService) admitDelete(ctx context.Context, c *wire.DeleteCall, check growthCheck) error {
	c.Command.Delete = &c.Op
	if err := validate.Delete(&c.Op); err != nil {
		return err
	}
	if err := validate.Size(c.Size, s.options.MaxRequestBytes); err != nil {
		return err
	}
	return s.checkKeys(ctx, &c.Command, check)
}

// deleteResponse answers a delete that was applied.
func (s *kvService) deleteResponse(result *kv.Result) *wire.DeleteResponse {
	response := &wire.DeleteResponse{Header: s.headerAt(result.Revision), Result: result.Delete, Memory: result.Memory}
	if response.Result == nil {
		response.Result = &kv.DeleteResult{}
	}
	return response
}

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

// compactionPoll is how often a physical compaction looks whether it is done.
const compactionPoll = 10 * time.Millisecond

// awaitCompaction waits until what a compaction made superfluous is deleted from this member's store.
func (s *kvService) awaitCompaction(ctx context.Context, revision kv.Revision) error {
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
