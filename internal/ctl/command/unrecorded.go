package command

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/internal/base/printable"
	"github.com/quorate/quorate/internal/doctor"
)

// unrecorded keeps the last refusal of a call that a member could not record. etcd's client repeats a refused read, or a login,
// until its time is over, and then says only that it had no answer.
type unrecorded struct{ last atomic.Pointer[string] }

// mostRefusal bounds a refusal that a process at an endpoint says, in characters.
const mostRefusal = 600

// note looks at the outcome of one attempt.
func (u *unrecorded) note(err error) {
	if s, ok := status.FromError(err); ok && s.Code() == codes.Unavailable && strings.HasPrefix(s.Message(), audit.Blocked) {
		text := printable.Text(s.Message(), mostRefusal)
		u.last.Store(&text)
	}
}

// options make a client note refusals, those of each attempt.
func (u *unrecorded) options() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn,
			invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
		) error {
			err := invoke(ctx, method, request, reply, conn, opts...)
			u.note(err)
			return err
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string,
			open grpc.Streamer, opts ...grpc.CallOption,
		) (grpc.ClientStream, error) {
			stream, err := open(ctx, desc, conn, method, opts...)
			if err != nil {
				u.note(err)
				return nil, err
			}
			return notingStream{stream, u}, nil
		}),
	}
}

type notingStream struct {
	grpc.ClientStream
	to *unrecorded
}

// RecvMsg implements grpc.ClientStream.
func (s notingStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	s.to.note(err)
	return err
}

// explain says what a member has said; nil: none refused a call for its record.
func (u *unrecorded) explain() error {
	text := u.last.Load()
	if text == nil {
		return nil
	}
	return Refused(errors.New(string(doctor.AuditBlocked) + ": " + *text + "\nCalls pass again by themselves once the output " +
		"takes records. Until then calls of the user of --audit-exempt-user pass (root by default): it can change what must " +
		"be recorded with `quorate audit policy set FILE`, as anybody can while users are off. `quorate doctor` says which " +
		"members refuse calls"))
}
