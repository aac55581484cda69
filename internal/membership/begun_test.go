package membership_test

import (
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/membership"
)

// Ensure that a job notes when each of its phases began first, that a phase which a leader of 1.0 has begun gets no time when
// something else is noted, and that the row as it was does not change.
func TestJob_Note_begun(t *testing.T) {
	job := membership.Job{ID: 1, State: membership.StateQueued}
	view := &membership.View{}
	note := func(now int64, phase membership.Phase) {
		before := job
		was := slices.Clone(before.Begun)
		view.Now = now
		job.Note(&membership.Action{Phase: phase}, view)
		if !slices.Equal(before.Begun, was) {
			t.Fatalf("%s: the row before has %v now", phase, before.Begun)
		}
	}
	note(10, membership.PhaseJoin)
	note(11, membership.PhaseJoin)
	note(12, membership.PhaseSnapshot)
	note(13, membership.PhaseCatchUp)
	note(14, membership.PhaseSnapshot)
	note(15, "")
	want := []membership.PhaseTime{{Phase: membership.PhaseJoin, At: 10}, {Phase: membership.PhaseSnapshot, At: 12},
		{Phase: membership.PhaseCatchUp, At: 13}}
	if !slices.Equal(job.Begun, want) {
		t.Errorf("got %v, want %v", job.Begun, want)
	}
	read, err := membership.DecodeJob(job.Encode())
	if err != nil || !slices.Equal(read.Begun, want) {
		t.Errorf("read back: %v, %v", read.Begun, err)
	}
	job = membership.Job{ID: 1, State: membership.StateRunning, Phase: membership.PhaseSwap}
	note(20, membership.PhaseSwap)
	note(21, membership.PhaseSettle)
	if want := []membership.PhaseTime{{Phase: membership.PhaseSettle, At: 21}}; !slices.Equal(job.Begun, want) {
		t.Errorf("after a leader of 1.0: got %v, want %v", job.Begun, want)
	}
}
