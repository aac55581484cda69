package rpc

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/limits/answers"
)

// Ensure that answers to the services for locks and elections are counted until the next answer, or the end of the call, and
// that no copy is made where there is no room.
func TestShared_inside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const large = 1 << 20
		s := &shared{}
		s.options.Answers = answers.New(4*large*insideCopies, 0)
		if ctx, inside := s.inside(context.Background(), "/etcdserverpb.KV/Range"); inside != nil || ctx != context.Background() {
			t.Error("other services have such answers")
		}
		for _, method := range []string{"/v3electionpb.Election/Leader", "/v3lockpb.Lock/Lock"} {
			ctx, inside := s.inside(context.Background(), method)
			for _, c := range []struct{ size, want int }{{100, 0}, {large, large}, {2 * large, 2 * large}, {100, 0}, {large, large}} {
				if err := inside.makeRoom(ctx, c.size); err != nil || s.options.Answers.UsedBytes() != int64(insideCopies*c.want) {
					t.Errorf("%s, an answer of %d: %v, %d bytes are counted", method, c.size, err, s.options.Answers.UsedBytes())
				}
			}
			_, other := s.inside(context.Background(), method)
			if err := other.makeRoom(ctx, 3*large); status.Code(err) != codes.ResourceExhausted {
				t.Errorf("%s, without room: %v", method, err)
			}
			over, cancel := context.WithCancel(ctx)
			cancel()
			if err := other.makeRoom(over, 3*large); !errors.Is(err, context.Canceled) {
				t.Errorf("%s, without room and over: %v", method, err)
			}
			other.forget()
			inside.forget()
			if used := s.options.Answers.UsedBytes(); used != 0 {
				t.Errorf("%s: %d bytes are counted at the end", method, used)
			}
		}
	})
}
