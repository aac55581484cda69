package rpc

import (
	"context"

	"google.golang.org/grpc"

	"github.com/quorate/quorate/internal/kv"
)

// kvDesc describes the KV service with methods that read requests straight into kv's words.
func (s *Services) kvDesc() *grpc.ServiceDesc {
	return &grpc.ServiceDesc{
		ServiceName: "etcdserverpb.KV",
		Methods: []grpc.MethodDesc{
			{MethodName: "Range", Handler: s.serveRange},
			{MethodName: "Put", Handler: direct(s, s.stats.put, s.put)},
			{MethodName: "DeleteRange", Handler: direct(s, s.stats.deletes, s.deleteRange)},
			{MethodName: "Txn", Handler: direct(s, s.stats.txn, s.txn)},
			{MethodName: "Compact", Handler: direct(s, s.stats.compact, s.compact)},
		},
		Streams:  []grpc.StreamDesc{{StreamName: "RangeStream", Handler: s.serveRangeStream, ServerStreams: true}},
		Metadata: "rpc.proto",
	}
}

// direct makes a gRPC handler of a method. It passes the gate itself, so no interceptor is called.
func direct[Call, Response any](
	s *Services, stats *methodStats, serve func(context.Context, *Call) (Response, error),
) grpc.MethodHandler {
	return func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		call := new(Call)
		if err := decode(call); err != nil {
			return nil, err
		}
		return pass(s, ctx, stats, false, func() (Response, error) { return serve(ctx, call) })
	}
}

// serveRange is apart because a learner serves it if it is serializable.
func (s *Services) serveRange(
	_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor,
) (any, error) {
	call := new(rangeCall)
	if err := decode(call); err != nil {
		return nil, err
	}
	return pass(s, ctx, s.stats.ranges, call.serializable, func() (*rangeResponse, error) {
		return s.rangeKeys(ctx, call)
	})
}

func (s *Services) rangeKeys(ctx context.Context, call *rangeCall) (*rangeResponse, error) {
	if err := checkRange(&call.op); err != nil {
		return nil, err
	}
	if !call.serializable {
		if err := s.readIndex(ctx); err != nil {
			return nil, err
		}
	}
	response := &rangeResponse{}
	err := s.options.Answers.Build(ctx, 0, func(room kv.Room) error {
		machine, release := s.options.Member.Machine()
		defer release()
		result, revision, err := machine.Store().RangeWithin(&call.op, room)
		response.result, response.header, response.room = result, s.headerAt(revision), room
		return err
	})
	if err != nil {
		return nil, s.unanswered(err)
	}
	s.stats.ranged.Add(1)
	return response, nil
}

func (s *Services) put(ctx context.Context, call *putCall) (*putResponse, error) {
	if err := call.admit(ctx, s, s.quota.check); err != nil {
		return nil, err
	}
	result, err := s.propose(ctx, &call.command)
	if err != nil {
		return nil, err
	}
	return s.putResponse(&result), nil
}

// quotaCheck is quota.check, or what stands for it.
type quotaCheck func(ctx context.Context, s *Services, command *kv.Command) error

// admit refuses a put that may not be proposed, and makes its command.
func (c *putCall) admit(ctx context.Context, s *Services, quota quotaCheck) error {
	c.command.Put = &c.op
	if err := quota(ctx, s, &c.command); err != nil {
		return err
	}
	if err := checkPut(&c.op); err != nil {
		return err
	}
	return s.options.checkSize(c.size)
}

// putResponse answers a put that was applied.
func (s *Services) putResponse(result *kv.Result) *putResponse {
	s.stats.puts.Add(1)
	return s.putReply(result)
}

func (s *Services) putReply(result *kv.Result) *putResponse {
	response := &putResponse{header: s.headerAt(result.Revision), room: result.Room}
	if result.Put != nil {
		response.prev = result.Put.Prev
	}
	return response
}

func (s *Services) deleteRange(ctx context.Context, call *deleteCall) (*deleteResponse, error) {
	if err := call.admit(s); err != nil {
		return nil, err
	}
	result, err := s.propose(ctx, &call.command)
	if err != nil {
		return nil, err
	}
	return s.deleteResponse(&result), nil
}

// admit refuses a delete that may not be proposed, and makes its command.
func (c *deleteCall) admit(s *Services) error {
	c.command.Delete = &c.op
	if err := checkDelete(&c.op); err != nil {
		return err
	}
	return s.options.checkSize(c.size)
}

// deleteResponse answers a delete that was applied.
func (s *Services) deleteResponse(result *kv.Result) *deleteResponse {
	response := s.deleteReply(result)
	s.stats.deleted.Add(uint64(response.result.Deleted))
	return response
}

func (s *Services) deleteReply(result *kv.Result) *deleteResponse {
	response := &deleteResponse{header: s.headerAt(result.Revision), result: result.Delete, room: result.Room}
	if response.result == nil {
		response.result = &kv.DeleteResult{}
	}
	return response
}

func (s *Services) compact(ctx context.Context, call *compactCall) (*headerResponse, error) {
	call.command.Compact = &call.op
	if _, err := s.propose(ctx, &call.command); err != nil {
		return nil, err
	}
	if call.physical {
		if err := s.awaitCompaction(ctx, call.op.Revision); err != nil {
			return nil, err
		}
	}
	return &headerResponse{header: s.headerNow()}, nil
}

// propose replicates a command and makes its rejection an error.
func (s *Services) propose(ctx context.Context, command *kv.Command) (kv.Result, error) {
	if kv.AsksForPairs(command) { // what is executed can not be taken back if there is no room for the answer
		if err := s.options.Answers.Ready(ctx); err != nil {
			return kv.Result{}, s.unanswered(err)
		}
	}
	s.stats.pending.Add(1)
	ctx, tell := s.routed(ctx)
	result, err := s.options.Member.Propose(ctx, command)
	s.stats.pending.Add(-1)
	tell()
	if err != nil {
		s.stats.failedProposals.Add(1)
		return result, writeTimeout(err)
	}
	if result.Err != nil {
		return result, result.Err
	}
	return result, s.complete(ctx, command, &result)
}
