package autopilot_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/membership/autopilot"
)

// Ensure that a process asks one member after the other, pauses when it has asked all, and ends with the first answer or the
// first refusal that no repetition cures.
func TestJoiner_Heard(t *testing.T) {
	down, busy, final := errors.New("down"), errors.New("busy"), errors.New("started before")
	j := autopilot.NewJoiner(2)
	hear := func(member int, err error, passing bool, want autopilot.JoinMove) {
		t.Helper()
		if j.Asks() != member {
			t.Fatalf("asks member %d, want %d", j.Asks(), member)
		}
		if got := j.Heard(err, passing); got != want {
			t.Fatalf("told %v, passing %t: got %v, want %v", err, passing, got, want)
		}
	}
	hear(0, down, true, autopilot.JoinAsk)
	hear(1, busy, true, autopilot.JoinPause)
	if text := j.Failure().Error(); !strings.Contains(text, "down") || !strings.Contains(text, "busy") {
		t.Errorf("the round gave %q", text)
	}
	hear(0, busy, true, autopilot.JoinAsk)
	if errors.Is(j.Failure(), down) {
		t.Errorf("the round before is remembered: %v", j.Failure())
	}
	hear(1, nil, false, autopilot.JoinDone)

	j = autopilot.NewJoiner(2)
	hear(0, down, true, autopilot.JoinAsk)
	hear(1, final, false, autopilot.JoinEnd)
	if err := j.Failure(); !errors.Is(err, final) || errors.Is(err, down) {
		t.Errorf("it ends with %v", err)
	}
}

// Ensure that a job is waited for once the leader has named it.
func TestJoinQuestion_Heard(t *testing.T) {
	var q autopilot.JoinQuestion
	waits := &autopilot.JoinStep{JoinAnswer: autopilot.JoinAnswer{Job: 7}}
	if q.Heard(waits, nil) || q.Job != 7 {
		t.Errorf("waits for job %v", q.Job)
	}
	if !q.Heard(&autopilot.JoinStep{Ready: true}, nil) || !q.Heard(waits, membership.ErrJobFailed) {
		t.Error("it goes on after an answer, or after an error")
	}
}

func TestJoinPasses(t *testing.T) {
	refused := func(reason consensus.RefusalReason) error { return &membership.RefusedError{Reason: reason} }
	for _, row := range []struct {
		err    error
		passes bool
	}{
		{refused(consensus.ReasonChangePending), true},
		{fmt.Errorf("told: %w", refused(consensus.ReasonQuorumLost)), true},
		{refused(consensus.ReasonTooManyLearners), false},
		{membership.ErrTooManyJobs, true},
		{context.DeadlineExceeded, true},
		{membership.ErrAlreadyStarted, false},
		{membership.ErrJobFailed, false},
		{&membership.SpecError{Text: "nobody to replace"}, false},
	} {
		if got := autopilot.JoinPasses(row.err); got != row.passes {
			t.Errorf("%v passes: %t, want %t", row.err, got, row.passes)
		}
	}
}
