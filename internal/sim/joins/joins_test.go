package joins_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/membership/autopilot"
	"github.com/quorate/quorate/internal/sim/joins"
	"github.com/quorate/quorate/internal/sim/kernel"
	"github.com/quorate/quorate/internal/sim/routines"
)

// Ensure that a process asks again after a lost answer and after a temporary error, and ends with a refusal.
func TestProcess_Run(t *testing.T) {
	var clock kernel.Schedule
	var all routines.Set
	defer all.End()
	var asked []int
	var refused error
	p := &joins.Process{Members: 2, After: clock.After, Joined: func(autopilot.JoinAnswer) { t.Error("it has joined") }}
	p.Refused = func(err error) { refused = err }
	p.Ask = func(member int, answered func(autopilot.JoinAnswer, error)) {
		asked = append(asked, member)
		switch len(asked) {
		case 1: // the answer is lost
		case 2:
			answered(autopilot.JoinAnswer{}, errors.New("nobody there"))
		default:
			answered(autopilot.JoinAnswer{}, membership.ErrAlreadyStarted)
		}
	}
	all.Go(p.Run)
	for do := clock.Next(time.Minute); do != nil; do = clock.Next(time.Minute) {
		do()
	}
	if !slices.Equal(asked, []int{0, 1, 0}) || !errors.Is(refused, membership.ErrAlreadyStarted) {
		t.Errorf("it asked %v and ended with %v", asked, refused)
	}
}

func TestLaws(t *testing.T) {
	var found []string
	l := joins.Laws{Report: func(property, detail string) { found = append(found, property+": "+detail) }}
	none := func(consensus.MemberID) bool { return false }
	disk, other := consensus.StorageID{1}, consensus.StorageID{2}
	first, recovered := consensus.FoundingEpoch, consensus.Epoch{Number: 1}
	l.Answered(disk, first, 7, none)
	l.Answered(disk, first, 7, none)
	l.Answered(disk, recovered, 9, none)
	l.Began(7, disk)
	l.Began(7, disk)
	l.Answered(other, first, 8, none)
	l.Answered(other, first, 9, func(consensus.MemberID) bool { return true })
	l.Replaces(1, false)
	if len(found) > 0 {
		t.Fatalf("false alarms: %v", found)
	}
	l.Answered(disk, first, 9, none)
	l.Began(7, other)
	l.Replaces(1, true)
	for i, want := range []string{"and then 9", "begins on", "1 works"} {
		if i >= len(found) || !strings.Contains(found[i], want) {
			t.Errorf("finding %d of %v: want %q", i, found, want)
		}
	}
}
