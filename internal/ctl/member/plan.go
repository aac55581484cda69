package member

import (
	"fmt"
	"io"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/wording"
)

// writePlan writes what a change will do: a line about the cluster, a row for each step with what it takes to write
// while it is under way and after it, and what speaks against it.
func writePlan(w io.Writer, cluster *quoratepb.Cluster, plan *quoratepb.PlanResponse) {
	command.Say(w, "PLAN  "+wording.PlanLine(cluster, plan))
	t := &command.Table{}
	t.Add("", "", "QUORUM", "SUPERQUORUM", "TOLERATES")
	details := map[int]string{} // below which row of the table
	for _, row := range wording.PlanRows(plan) {
		title := ""
		switch {
		case row.Step == 0:
			title = "  " + row.Title
		case row.Title != "":
			title = fmt.Sprintf("  %d %s", row.Step, row.Title)
		}
		t.Add(title, row.When, wording.Quorum(row.Now), wording.Superquorum(row.Now), wording.Tolerance(row.Now))
		if row.Detail != "" {
			details[t.Len()-1] = row.Detail
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

// printUndo prints the command that takes a change back, and what belongs to it if it brings a member back.
func printUndo(w io.Writer, undo string) {
	undo = wording.Undo(undo)
	if undo == "" {
		return
	}
	fmt.Fprintln(w, "undo: "+undo)
	if note := wording.UndoNote(undo); note != "" {
		fmt.Fprintln(w, "      "+note)
	}
}
