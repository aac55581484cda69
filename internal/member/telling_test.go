package member_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/member"
)

// Ensure that a member gets another one's answer about itself, over the link between them, and a clear error where the other one
// tells nothing, says too much, or is asked too much; and that it waits no longer than its context.
func TestMember_AskMember(t *testing.T) {
	long := member.MostTold + 1
	c := startWith(t, 3, &cluster{tell: func(ctx context.Context, about member.Subject, question []byte) ([]byte, error) {
		switch string(question) {
		case "long":
			return make([]byte, long), nil
		case "longest":
			return make([]byte, member.MostTold), nil
		case "none":
			return nil, status.Error(codes.Unimplemented, "never heard of it")
		case "wait":
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return append([]byte(about+" "), question...), nil
	}})
	one, other := c.nodes[0], c.nodes[1]
	for _, row := range []struct {
		about    member.Subject
		question string
		want     string
		code     codes.Code
	}{
		{member.SubjectObservation, "q", "doctor.observation q", codes.OK},
		{member.SubjectTop, "q", "top.counts q", codes.OK},
		{member.SubjectTop, "longest", string(make([]byte, member.MostTold)), codes.OK},
		{member.SubjectTop, "long", "", codes.ResourceExhausted},
		{member.SubjectTop, "none", "", codes.Unimplemented},
		{member.SubjectTop, string(bytes.Repeat([]byte{'x'}, 2<<10)), "", codes.InvalidArgument},
	} {
		got, err := one.AskMember(c.ctx, other.id, row.about, []byte(row.question))
		if status.Code(err) != row.code || string(got) != row.want {
			t.Errorf("%s, %.10q: %.30q, %v", row.about, row.question, got, err)
		}
	}
	short, cancel := context.WithTimeout(c.ctx, 50*time.Millisecond)
	defer cancel()
	if _, err := one.AskMember(short, other.id, member.SubjectTop, []byte("wait")); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("one that does not answer: %v", err)
	}
	other.stop()
	c.await("the loss of a link", func(n *node) bool {
		_, err := n.AskMember(c.ctx, other.id, member.SubjectTop, nil)
		return status.Code(err) == codes.Unavailable
	}, one)
}

// Ensure that a member which tells nothing of itself answers as an older build does.
func TestMember_AskMember_tellsNothing(t *testing.T) {
	c := startCluster(t, 2)
	if _, err := c.nodes[0].AskMember(c.ctx, c.nodes[1].id, member.SubjectObservation, nil); status.Code(err) != codes.Unimplemented {
		t.Errorf("got %v", err)
	}
}
