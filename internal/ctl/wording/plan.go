package wording

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/ctl/progress"
)

// PlanRow is a row of the table of a plan: what it takes to write at a moment of the change.
type PlanRow struct {
	Step   int    // from 1; 0: before the change
	Title  string // of the step; empty: the row is of the same step as the one before
	When   string // during or after the step, where these differ
	Detail string // of the step, below the row; empty: there is none
	Now    *quoratepb.Strength
}

// PlanRows are the rows of a plan: how things are, then each step. A step has two rows if it takes something else while it is
// under way than afterwards.
func PlanRows(plan *quoratepb.PlanResponse) []PlanRow {
	rows := []PlanRow{{Title: "now", Now: plan.GetNow()}}
	for i, step := range plan.GetSteps() {
		row := PlanRow{Step: i + 1, Title: step.Title, Detail: step.Detail, Now: step.After}
		if !proto.Equal(step.During, step.After) {
			rows = append(rows, PlanRow{Step: i + 1, Title: step.Title, When: "during", Now: step.During})
			row.Title, row.When = "", "after"
		}
		rows = append(rows, row)
	}
	return rows
}

// PlanLine says in one line of which cluster a plan is, and how that is.
func PlanLine(cluster *quoratepb.Cluster, plan *quoratepb.PlanResponse) string {
	leader := "no leader"
	if plan.GetLeader() != 0 {
		leader = "leader " + MemberName(cluster, plan.Leader)
	}
	parts := []string{"cluster " + consensus.ClusterID(cluster.GetClusterId()).String(),
		"configuration " + ConfigID(plan.GetConfig()), leader}
	if plan.GetProtocol() != "" && plan.GetProtocol() != "auto" {
		parts = append(parts, "protocol "+plan.Protocol)
	}
	return strings.Join(append(parts, Electorate(cluster)), " · ")
}

// Electorate counts the members and names those that are down: 3 voters, 1 down (m2, silent for 7m12s), 1 learner.
func Electorate(cluster *quoratepb.Cluster) string {
	voters, learners := 0, 0
	var down, cordoned []string
	for _, m := range cluster.GetMembers() {
		if m.Role == quoratepb.Role_ROLE_LEARNER || m.Role == quoratepb.Role_ROLE_JOINING {
			learners++
			continue
		}
		voters++
		if m.Cordoned {
			cordoned = append(cordoned, progress.Name(m))
		}
		switch {
		case m.Active || m.Leader:
		case m.SilentMs > 0:
			down = append(down, progress.Name(m)+", silent for "+
				progress.Duration(time.Duration(m.SilentMs)*time.Millisecond))
		default:
			down = append(down, progress.Name(m)+", never heard")
		}
	}
	text := plural.Of(voters, "voter")
	if len(down) > 0 {
		text += fmt.Sprintf(", %d down (%s)", len(down), strings.Join(down, "; "))
	}
	if len(cordoned) > 0 {
		text += fmt.Sprintf(", %d cordoned (%s)", len(cordoned), strings.Join(cordoned, ", "))
	}
	if learners > 0 {
		text += ", " + plural.Of(learners, "learner")
	}
	return text
}

// Change says in a few words what a specification asks for.
func Change(spec *quoratepb.ChangeSpec, name func(uint64) string) string {
	var parts []string
	verb := func(does string, ids []uint64) {
		for _, id := range ids {
			parts = append(parts, does+" "+name(id))
		}
	}
	for _, n := range spec.GetAdd() {
		does := "add "
		if n.Learner {
			does = "add learner "
		}
		if n.Name == "" {
			parts = append(parts, does+strings.Join(n.PeerUrls, ","))
		} else {
			parts = append(parts, does+n.Name)
		}
	}
	verb("promote", spec.GetPromote())
	verb("demote", spec.GetDemote())
	verb("remove", spec.GetRemove())
	for _, u := range spec.GetUpdate() {
		parts = append(parts, "update "+name(u.Id))
	}
	verb("cordon", spec.GetCordon())
	verb("uncordon", spec.GetUncordon())
	verb("drain", spec.GetDrain())
	return strings.Join(parts, ", ")
}
