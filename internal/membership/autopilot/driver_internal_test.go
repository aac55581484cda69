package autopilot

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/membership"
)

// A job that attempts the same again and again says why it did not work, and only then.
func TestDriver_words_obstacle(t *testing.T) {
	transfer := &membership.Action{Message: "hands over", Transfer: 2}
	change := &membership.Action{Message: "removes m1", Change: &consensus.ChangeRequest{}}
	wait := &membership.Action{Message: "waits", Wait: true}
	for _, row := range []struct {
		name   string
		action *membership.Action
		turned bool
		want   string
	}{
		{"the hand-over again", transfer, false, "hands over; the last attempt failed: too slow"},
		{"the change again", change, false, "removes m1; the last attempt failed: too slow"},
		{"another phase", change, true, "removes m1"},
		{"nothing is attempted", wait, false, "waits"},
	} {
		d := Driver{obstacle: "too slow"}
		if got := d.words(0, row.action, row.turned); got != row.want {
			t.Errorf("%s: got %q, want %q", row.name, got, row.want)
		}
	}
}

// The largest job that is accepted can still be written when it has the longest message.
func TestDriver_words_bounded(t *testing.T) {
	d := Driver{obstacle: "too slow"}
	job := membership.Job{ID: 1, Message: d.words(0, &membership.Action{Message: strings.Repeat("<ü", 40_000), Transfer: 2}, false)}
	if n := len(job.Encode()); n > kv.MaxJobBytes-maxNewJobBytes || !utf8.ValidString(job.Message) {
		t.Errorf("the row has %d bytes, and is to leave %d", n, maxNewJobBytes)
	}
}

func TestQueueWarnings(t *testing.T) {
	spec := func(id consensus.MemberID) membership.Spec {
		return membership.Spec{Kind: membership.KindChange, Remove: []consensus.MemberID{id}}
	}
	stored := []Row{
		{Job: membership.Job{ID: 0x1, Spec: spec(1), State: membership.StateDone}},
		{Job: membership.Job{ID: 0x2a, Spec: spec(2), State: membership.StateRunning}},
	}
	for _, row := range []struct {
		name string
		spec membership.Spec
		want string
	}{
		{"the same", spec(2), "job 2a is this change already: asking for it again only shows that one"},
		{"another", spec(1), "job 2a has not ended: this change waits for it, and is checked again at its turn"},
	} {
		if got := queueWarnings(stored, &row.spec); len(got) != 1 || got[0] != row.want {
			t.Errorf("%s: got %q, want %q", row.name, got, row.want)
		}
	}
	if got := queueWarnings(stored[:1], &stored[1].Spec); got != nil {
		t.Errorf("nothing is waiting: got %q", got)
	}
}

// Ensure that a start command with another member's address is news: the one that it named may be dead.
func TestSameClass_commands(t *testing.T) {
	const before = "m4 has not started yet: run `quorate --join http://10.0.0.1:2380` on its machine"
	if sameClass(before, strings.Replace(before, "10.0.0.1", "10.0.0.2", 1)) {
		t.Error("another address in a command seems to be the same")
	}
	if !sameClass("m4 is 12 entries behind", "m4 is 7 entries behind") {
		t.Error("another number outside of a command seems to be news")
	}
}
