package rpc

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/rpc/wire"
)

// countedFromBytes is the size from which on an answer is counted here that is not counted elsewhere: lists of users and
// permissions, and the values of leaders.
const countedFromBytes = 32 << 10

// countedStream counts the messages sent on a stream.
type countedStream struct {
	grpc.ServerStream
	shared *shared
}

// SendMsg implements grpc.ServerStream.
func (c countedStream) SendMsg(m any) error {
	counted, err := c.shared.counted(c.Context(), m)
	if err != nil {
		return err
	}
	return c.ServerStream.SendMsg(counted)
}

// counted counts the memory of a large answer until it was sent, or refuses the answer.
func (s *shared) counted(ctx context.Context, response any) (any, error) {
	message, ok := response.(proto.Message)
	if !ok {
		return response, nil // it is counted elsewhere
	}
	size := proto.Size(message)
	if size <= countedFromBytes {
		return response, nil
	}
	counted := &wire.Counted{Message: message}
	err := s.options.Answers.Build(ctx, 0, func(account kv.Account) error {
		counted.Memory = account
		return account.Take(size)
	})
	if err != nil {
		return nil, s.unanswered(err)
	}
	uncompressed(ctx, counted.Memory)
	return counted, nil
}
