package rpc

import (
	"context"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/rpc/inproc"
)

// insideCopies is how many are made of an answer: in one piece, as a message, and as what is made of that.
const insideCopies = 3

// insidePatience is how long a service waits for memory for what another service has answered it.
const insidePatience = 5 * time.Second

// insideAnswers are what the services for locks and elections are answered by the others, of which they make a copy: the memory
// of the last one is counted until there is another, or the call has its own answer.
type insideAnswers struct {
	shared   *shared
	caller   inproc.Caller
	giveBack func()
}

// inside has answers to a service counted that calls others. It returns nil for all other services.
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

// makeRoom waits for memory for a copy of the next answer. The one before it is used no more.
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
