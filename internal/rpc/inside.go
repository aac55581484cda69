package rpc

import (
	"context"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/rpc/inproc"
)

// insideCopies is the number of copies of an answer: the encoded one, the message, and what the service makes of it.
const insideCopies = 3

// insidePatience is the longest wait of a service for memory for another service's answer.
const insidePatience = 5 * time.Second

// insideAnswers are the answers of other services to the services for locks and elections, which copy them: the memory of the
// last one is counted until the next one, or the call's own answer.
type insideAnswers struct {
	shared   *shared
	caller   inproc.Caller
	giveBack func()
}

// inside counts answers to a service that calls others. It returns nil for all other services.
func (s *shared) inside(ctx context.Context, method string) (context.Context, *insideAnswers) {
	if !strings.HasPrefix(method, electionPrefix) && !strings.HasPrefix(method, lockPrefix) {
		return ctx, nil
	}
	a := &insideAnswers{shared: s}
	a.caller.Take = a.makeRoom
	return inproc.With(ctx, &a.caller), a
}

const (
	electionPrefix = "/v3electionpb.Election/"
	lockPrefix     = "/v3lockpb.Lock/"
)

// makeRoom waits for memory for a copy of the next answer. The one before it is no longer used.
func (a *insideAnswers) makeRoom(ctx context.Context, size int) error {
	a.forget()
	if size <= countedFromBytes {
		return nil
	}
	giveBack, err := a.shared.options.Answers.Lend(ctx, insideCopies*int64(size), insidePatience)
	if err != nil {
		return a.shared.unanswered(err)
	}
	a.giveBack = giveBack
	return nil
}

func (a *insideAnswers) forget() {
	if a == nil {
		return
	}
	a.caller.Release()
	if a.giveBack != nil {
		a.giveBack()
		a.giveBack = nil
	}
}
