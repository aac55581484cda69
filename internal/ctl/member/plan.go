package member

import (
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/progress"
)

// writePlan writes what a change will do: a line about the cluster, a row for each step with what it takes to write
// while it is under way and after it, and what speaks against it.
func writePlan(w io.Writer, cluster *quoratepb.Cluster, plan *quoratepb.PlanResponse) {
	command.Say(w, planLine(cluster, plan))
	t := &command.Table{}
	t.Add("", "", "QUORUM", "SUPERQUORUM", "TOLERATES")
	t.Add("  now", "", quorumText(plan.Now), superquorumText(plan.Now), toleranceText(plan.Now))
	details := map[int]string{} // below which row of the table
	for i, step := range plan.Steps {
		title, during, after := fmt.Sprintf("  %d %s", i+1, step.Title), step.During, step.After
		if !proto.Equal(during, after) {
			t.Add(title, "during", quorumText(during), superquorumText(during), toleranceText(during))
			title = ""
		}
		when := "after"
		if title != "" {
			when = ""
		}
		t.Add(title, when, quorumText(after), superquorumText(after), toleranceText(after))
		if step.Detail != "" {
			details[t.Len()-1] = step.Detail
		}
	}
	for i, line := range t.Lines() {
		command.Say(w, line)
		if detail, some := details[i]; some {
			command.Say(w, "      "+detail)
		}
	}
	for _, blocker := range plan.Blockers {
		command.Say(w, "blocked: "+blocker)
	}
	if len(plan.Blockers) > 0 {
		return // what it would take, and how to undo it, must not be done
	}
	for _, warning := range plan.Warnings {
		command.Say(w, "warning: "+warning)
	}
	printUndo(w, plan.Undo)
}

func planLine(cluster *quoratepb.Cluster, plan *quoratepb.PlanResponse) string {
	leader := "no leader"
	if plan.Leader != 0 {
		leader = "leader " + memberName(cluster, plan.Leader)
	}
	parts := []string{"cluster " + command.HexID(cluster.ClusterId), "configuration " + configText(plan.Config), leader}
	if plan.Protocol != "" && plan.Protocol != "auto" {
		parts = append(parts, "protocol "+plan.Protocol)
	}
	return "PLAN  " + strings.Join(append(parts, electorateText(cluster)), " · ")
}

// electorateText counts the members and names those that are down: 3 voters, 1 down (m2, silent for 7m12s), 1 learner.
func electorateText(cluster *quoratepb.Cluster) string {
	voters, learners := 0, 0
	var down, cordoned []string
	for _, m := range cluster.Members {
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
	text := count(voters, "voter")
	if len(down) > 0 {
		text += fmt.Sprintf(", %d down (%s)", len(down), strings.Join(down, "; "))
	}
	if len(cordoned) > 0 {
		text += fmt.Sprintf(", %d cordoned (%s)", len(cordoned), strings.Join(cordoned, ", "))
	}
	if learners > 0 {
		text += ", " + count(learners, "learner")
	}
	return text
}

// changeText says in a few words what a specification asks for.
func changeText(spec *quoratepb.ChangeSpec, name func(uint64) string) string {
	var parts []string
	verb := func(what string, ids []uint64) {
		for _, id := range ids {
			parts = append(parts, what+" "+name(id))
		}
	}
	for _, n := range spec.GetAdd() {
		what := "add "
		if n.Learner {
			what = "add learner "
		}
		if n.Name == "" {
			parts = append(parts, what+strings.Join(n.PeerUrls, ","))
		} else {
			parts = append(parts, what+n.Name)
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
