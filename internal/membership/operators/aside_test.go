package operators

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
)

// pass lets hours go by, in which the leader drives the jobs and newcomers are started, except those that lag.
func (w *world) pass(hours int) {
	for range hours {
		w.drive()
		w.anHour()
		for i := range w.jobs {
			for _, n := range w.jobs[i].Spec.Add {
				w.run(n.ID)
			}
		}
	}
}

// Ensure that a newcomer that was started and never catches up does not hold the replacement of a dead voter for ever.
func TestWorld_drive_newcomerLags(t *testing.T) {
	w := begin(3, &Rules{})
	w.start(add("m4", "http://host4:2380"), -1, 0)
	w.drive()
	w.run(4)
	w.process(4).old = true
	w.drive()
	w.process(2).up = false
	w.start(replace(2, "new2", "http://new2:2380"), -1, 0)
	w.pass(4)
	if len(w.jobs) != 2 || w.jobs[1].State != membership.StateDone {
		t.Errorf("the dead voter is not replaced after four hours: %s", w.titles())
	}
}

// Ensure that a drain that finds no successor does not hold the jobs that would give it one.
func TestWorld_drive_drainWithoutSuccessor(t *testing.T) {
	w := begin(3, &Rules{})
	w.start(membership.Spec{Cordon: []consensus.MemberID{3}}, -1, 0)
	w.drive()
	w.start(membership.Spec{Kind: membership.KindDrain, Drain: []consensus.MemberID{1}}, -1, 0)
	w.process(2).up = false // before the driver's turn
	w.drive()
	w.start(membership.Spec{Uncordon: []consensus.MemberID{3}}, -1, 0)
	w.pass(1)
	if m, ok := w.config.Member(3); !ok || m.Cordoned { // the transfer that follows is not played here
		t.Errorf("the mark is still there: %s", w.titles())
	}
}

// Ensure that a job that is cancelled half way says which marks of cordon stay.
func TestWorld_cancel_namesMarks(t *testing.T) {
	w := begin(3, &Rules{})
	w.start(membership.Spec{Cordon: []consensus.MemberID{3}, Remove: []consensus.MemberID{2}}, -1, 0)
	w.process(3).old = true // after the job was accepted
	w.drive()
	w.cancel(0)
	action := membership.Next(&w.jobs[0].Job, w.view())
	if action.End != membership.StateCancelled || !strings.Contains(action.Message, "uncordon m3") {
		t.Errorf("ends as %q: %q", action.End, action.Message)
	}
}
