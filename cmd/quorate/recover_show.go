package main

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/member/recovery"
	"github.com/quorate/quorate/internal/transport"
)

const timeLayout = "2006-01-02 15:04:05 MST"

// showSurvivor tells what the data says, and of several who is most advanced.
func (r *recovering) showSurvivor() {
	s := r.survivor
	fmt.Fprintf(r.Out, "%s (%v) of cluster %v, in %s\n\n", r.name(), s.Identity.Member, s.Identity.Cluster, r.dataDir)
	w := tabwriter.NewWriter(r.Out, 0, 0, 2, ' ', 0)
	ago := time.Since(s.Written).Round(time.Second)
	fmt.Fprintf(w, "  last write\t%s, %v ago\n", s.Written.Format(timeLayout), ago)
	fmt.Fprintf(w, "  log\tends at entry %d of term %d\n", s.Last.Index, s.Last.Term)
	fmt.Fprintf(w, "  committed\tto entry %d, as far as this member knows; %s\n", s.Commit, beyond(s))
	fmt.Fprintf(w, "  store\trevision %d at entry %d; the %d after it are applied at the next start\n", s.Revision,
		s.Applied.Index, s.Last.Index-s.Applied.Index)
	fmt.Fprintf(w, "  configuration\t%v, %s: %s\n", s.ConfigID, state(s), r.roles(&s.Config))
	_ = w.Flush()
	if len(r.others) == 0 {
		return
	}
	all := append([]*recovery.Survivor{s}, r.others...)
	slices.SortStableFunc(all, func(a, b *recovery.Survivor) int {
		switch {
		case b.Last.Before(a.Last):
			return -1
		case a.Last.Before(b.Last):
			return 1
		}
		return 0
	})
	fmt.Fprint(r.Out, "\nSurvivors, the most advanced first:\n")
	w = tabwriter.NewWriter(r.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  MEMBER\tLAST TERM\tLAST ENTRY\tCOMMITTED\tREVISION\tLAST WRITE\tDIRECTORY")
	for _, o := range all {
		fmt.Fprintf(w, "  %s\t%d\t%d\t%d\t%d\t%s\t%s\n", s.NameOf(o.Identity.Member), o.Last.Term, o.Last.Index, o.Commit,
			o.Revision, o.Written.Format(timeLayout), strings.TrimSuffix(o.Dir, "/member"))
	}
	_ = w.Flush()
}

func beyond(s *recovery.Survivor) string {
	switch n := s.Last.Index - s.Commit; n {
	case 0:
		return "that is all"
	case 1:
		return "the one after it is kept: it may have been acknowledged"
	default:
		return fmt.Sprintf("the %d after it are kept: they may have been acknowledged", n)
	}
}

func state(s *recovery.Survivor) string {
	text := "committed"
	if s.ConfigID.Index > s.Commit {
		text = "not known to be committed"
	}
	if s.Config.IsJoint() {
		text += ", joint"
	}
	return text
}

// roles lists the members by what they are.
func (r *recovering) roles(c *consensus.Config) string {
	var parts []string
	add := func(title string, ids []consensus.MemberID) {
		if len(ids) > 0 {
			parts = append(parts, title+" "+r.names(ids))
		}
	}
	add("voters", c.Voters)
	add("outgoing voters", c.Outgoing)
	add("learners", c.Learners)
	add("to be learners", c.LearnersNext)
	return strings.Join(parts, ", ")
}

func (r *recovering) names(ids []consensus.MemberID) string {
	var names []string
	for _, id := range ids {
		names = append(names, r.survivor.NameOf(id))
	}
	return strings.Join(names, " ")
}

// showPlan tells what will be, and what will be lost.
func (r *recovering) showPlan(plan *recovery.Plan) {
	fmt.Fprintf(r.Out, "\nAfter the recovery:\n  %s is the only voter, under its id and with all of its log.\n", r.name())
	fmt.Fprintf(r.Out, "  The cluster goes from epoch %v to epoch %v: members of other epochs are not obeyed, nor served.\n",
		plan.Before, plan.Epoch)
	if len(plan.Config.Learners) > 0 {
		fmt.Fprintf(r.Out, "  %s may stay, learning from it.\n", r.names(plan.Config.Learners))
	}
	if plan.Adopted > 0 {
		fmt.Fprintf(r.Out, "  %s in no log yet %s kept: %s may have been acknowledged on the fast path.\n",
			plural.Of(plan.Adopted, "write that is", "writes that are"), plural.Word(plan.Adopted, "is", "are"),
			plural.Word(plan.Adopted, "it", "they"))
	}
	if plan.Conflicting > 0 {
		fmt.Fprintf(r.Out, "  %s with those and %s given up. Show more survivors with --compare to know "+
			"better which were acknowledged.\n", plural.Of(plan.Conflicting, "other conflicts", "others conflict"),
			plural.Word(plan.Conflicting, "is", "are"))
	}
	if plan.Undone > 0 {
		fmt.Fprintf(r.Out, "  The change in entry %d, not known to be committed, would remove this member: it is undone.\n",
			plan.Undone)
	}
	var removed []string
	for _, id := range plan.Tombs {
		text := r.survivor.NameOf(id)
		if text != id.String() {
			text += " (" + id.String() + ")"
		}
		removed = append(removed, text)
	}
	fmt.Fprintf(r.Out, "  Removed for ever: %s. They must not be started again; those that are, and find no quorum, serve "+
		"nothing once they meet %s, and say so.\n", strings.Join(removed, ", "), r.name())
	fmt.Fprintln(r.Out, "  Lost: whatever they acknowledged that is not in this log. Nobody can know what that is. Keep what "+
		"is left of their data directories.")
}

// showFound tells who of the other voters was found.
func (r *recovering) showFound(found []recovery.Voter) {
	words := map[transport.Presence]string{
		transport.Silent: "does not answer", transport.Present: "answers", transport.Unsure: "may be there",
		transport.NoPeerPort: "may be elsewhere: its URL is wrong",
		transport.Another:    "is not there, somebody else answers",
	}
	fmt.Fprintln(r.Out)
	for _, f := range found {
		switch lost := slices.Contains(r.lostIDs, f.ID); {
		case f.Presence == transport.Empty && lost:
			fmt.Fprintf(r.Out, "  %s is lost, as you say; %s.\n", f.Name, transport.EmptyAt(f.Name, f.URL))
		case f.Presence == transport.Empty:
			fmt.Fprintf(r.Out, "  %s is not there: %s.\n", f.Name, transport.EmptyAt(f.Name, f.URL))
		case lost && f.Presence != transport.Present:
			fmt.Fprintf(r.Out, "  %s is lost, as you say.\n", f.Name)
		default:
			fmt.Fprintf(r.Out, "  %s %s (%s).\n", f.Name, words[f.Presence], f.URL)
		}
	}
}
