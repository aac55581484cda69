package member

import (
	"context"

	"github.com/quorate/quorate/internal/member/proposals"
)

// PassageKey is the key under which a context may have a PassageTaker.
type PassageKey struct{}

// PassageTaker is told by which passage the outcome of a request came that was made with its context.
type PassageTaker interface {
	Passed(p proposals.Passage)
}

func notePassage(ctx context.Context, p proposals.Passage) {
	if taker, ok := ctx.Value(PassageKey{}).(PassageTaker); ok {
		taker.Passed(p)
	}
}
