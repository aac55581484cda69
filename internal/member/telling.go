package member

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/member/peercall"
)

// Subject is what a member tells others of itself, for people. Questions and answers are messages of the client API.
type Subject string

// The subjects.
const (
	SubjectObservation Subject = "doctor.observation" // quoratepb.ObserveRequest, quoratepb.Observation
	SubjectTop         Subject = "top.counts"         // quoratepb.TopRequest, quoratepb.TopAnswer
)

// MostTold is how many bytes a member tells of one subject at most.
const MostTold = 256 << 10

// subjects are the calls to any member, which answers them itself.
var subjects = map[Subject]*peercall.Method[[]byte, []byte]{
	SubjectObservation: telling(SubjectObservation), SubjectTop: telling(SubjectTop),
}

func telling(about Subject) *peercall.Method[[]byte, []byte] {
	const mostQuestion = 1 << 10
	return &peercall.Method[[]byte, []byte]{
		Name: string(about), Question: peercall.Bytes(mostQuestion), Answer: peercall.Bytes(MostTold), MostAnswer: 1 + MostTold,
	}
}

// serveTelling adds the calls by which others ask this member for what it tells of itself.
func serveTelling(
	t *peercall.Table, tell func(ctx context.Context, about Subject, question []byte) ([]byte, error),
) {
	for about, method := range subjects {
		peercall.Serve(t, method, func(ctx context.Context, question []byte) ([]byte, error) {
			if tell == nil {
				return nil, status.Error(codes.Unimplemented, "member: this process tells nothing of itself")
			}
			return tell(ctx, about, question)
		})
	}
}
