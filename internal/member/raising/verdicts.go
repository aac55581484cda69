package raising

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/base/printable"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// Verdict is what a member's doctor finds, by what that member knows alone.
type Verdict struct {
	Judged bool `json:"judged"` // false: not lately, or not since the process started
	// Finding is the worst one above advice that a build may be the cause of; empty: there is none.
	Finding string `json:"finding,omitempty"`
}

const (
	// VerdictLasts is for how long a verdict counts, from the moment when the leader asked for it.
	VerdictLasts = MostBetween
	// mostFinding bounds a finding that is kept, in characters: a member says it.
	mostFinding = 400
)

// Verdicts are the last verdicts of members, as the leader has heard them. The zero value is ready.
type Verdicts struct {
	Lasts time.Duration // zero: VerdictLasts

	heard map[consensus.MemberID]heard
}

type heard struct {
	verdict Verdict
	asked   time.Time
}

// Note keeps a verdict of a member for which the leader asked at a time, and forgets those of members that are not among ids.
// The answer may have been on its way for long: the member judged after it was asked.
func (v *Verdicts) Note(ids []consensus.MemberID, of consensus.MemberID, verdict Verdict, asked time.Time) {
	if v.heard == nil {
		v.heard = map[consensus.MemberID]heard{}
	}
	for id := range v.heard {
		if !slices.Contains(ids, id) {
			delete(v.heard, id)
		}
	}
	verdict.Finding = printable.Text(verdict.Finding, mostFinding)
	if last, known := v.heard[of]; !known || !asked.Before(last.asked) {
		v.heard[of] = heard{verdict, asked}
	}
}

// Paused says why no time counts towards a soak, as the leader of a cluster sees it; empty: time counts.
func Paused(status *raft.Status, alarms int, v *Verdicts, now time.Time, nameOf func(consensus.MemberID) string) string {
	for i := range status.Progress {
		switch p := &status.Progress[i]; {
		case p.Leaving:
		case !p.RecentActive:
			return nameOf(p.ID) + " is not there"
		case !p.CaughtUp:
			return nameOf(p.ID) + " has not caught up"
		}
	}
	if alarms > 0 {
		return fmt.Sprintf("%s %s: see `quorate alarm list`", plural.Of(alarms, "alarm"), plural.Word(alarms, "stands",
			"stand"))
	}
	for _, id := range status.Config.IDs() {
		switch said, known := v.heard[id]; {
		case !known, now.Sub(said.asked) > cmp.Or(v.Lasts, VerdictLasts):
			return nameOf(id) + " has not said lately what its doctor finds"
		case !said.verdict.Judged:
			return nameOf(id) + " has not judged itself lately, or not yet since it started"
		case said.verdict.Finding != "":
			return nameOf(id) + " finds " + said.verdict.Finding
		}
	}
	return ""
}
