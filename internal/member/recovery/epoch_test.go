package recovery_test

import (
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/datadir/datatest"
	"github.com/quorate/quorate/internal/member/recovery"
)

// recovered plans and does the recovery of one survivor.
func recovered(t *testing.T, options datadir.Options, keep ids, others ...*recovery.Survivor) *recovery.Plan {
	t.Helper()
	r, err := inspect(t, options).Plan(keep, others...)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Write(options); err != nil {
		t.Fatal(err)
	}
	return r
}

// Ensure that two survivors of one cluster that are recovered apart are of two epochs.
func TestPlan_Write_apart(t *testing.T) {
	a := recovered(t, survivor(t, consensus.HardState{Term: 2}), nil)
	b := recovered(t, survivor(t, consensus.HardState{Term: 2}), nil)
	if a.Epoch.Number != 1 || b.Epoch.Number != 1 || a.Epoch == b.Epoch || a.Before != consensus.FoundingEpoch {
		t.Errorf("epochs %v and %v, after %v", a.Epoch, b.Epoch, a.Before)
	}
}

// Ensure that a learner that stays is of the same epoch, and that the command, given again after a crash between the
// two directories, makes it so.
func TestPlan_AdvanceLearner(t *testing.T) {
	options := survivor(t, consensus.HardState{Term: 2},
		configEntry(4, 2, consensus.ConfigChange{
			Protocol: consensus.ProtocolSingle, Config: membersOf(ids{1, 2, 3}, ids{4}),
		}))
	learner := datatest.Options()
	datatest.Close(t, datatest.Create(t, learner, 4))

	plan, err := inspect(t, options).Plan(ids{4}, inspect(t, learner))
	if err != nil {
		t.Fatal(err)
	}
	if err := plan.AdvanceLearner(learner, inspect(t, learner)); err != nil {
		t.Fatal(err)
	}
	// The crash: the survivor was not written.
	ahead := inspect(t, learner)
	if ahead.Identity.Epoch != plan.Epoch || inspect(t, options).Identity.Epoch != consensus.FoundingEpoch {
		t.Errorf("the learner is of epoch %v, want %v", ahead.Identity.Epoch, plan.Epoch)
	}
	again, err := inspect(t, options).Plan(ids{4}, ahead)
	if err != nil {
		t.Fatal(err)
	}
	if again.Epoch.Number != plan.Epoch.Number+1 {
		t.Errorf("epoch %v after %v", again.Epoch, plan.Epoch)
	}
	if err := again.AdvanceLearner(learner, ahead); err != nil {
		t.Fatal(err)
	}
	if err := again.Write(options); err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]datadir.Options{"survivor": options, "learner": learner} {
		data := datatest.Open(t, dir)
		if data.Identity.Epoch != again.Epoch || data.Machine.Owner() != data.Identity {
			t.Errorf("the %s is of epoch %v, its store of %v, want %v", name, data.Identity.Epoch, data.Machine.Owner().Epoch,
				again.Epoch)
		}
		dropped, err := data.Dropped()
		if err != nil {
			t.Error(err)
		}
		var gone ids
		for _, m := range dropped {
			gone = append(gone, m.ID)
		}
		slices.Sort(gone)
		if want := map[string]ids{"survivor": {2, 3}}[name]; !slices.Equal(gone, want) {
			t.Errorf("the %s looks for %v, want %v", name, gone, want)
		}
		datatest.Close(t, data)
	}
	if err := again.AdvanceLearner(learner, ahead); err == nil {
		t.Error("a directory that was started meanwhile is written to")
	}
}
