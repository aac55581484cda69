package raising_test

import (
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/member/raising"
)

// three is what the leader of three members knows of them while all are there.
func three() *raft.Status {
	status := &raft.Status{Config: consensus.Config{Voters: []consensus.MemberID{1, 2, 3},
		Members: []consensus.Member{{ID: 1}, {ID: 2}, {ID: 3}}}}
	for _, id := range []consensus.MemberID{2, 3} {
		status.Progress = append(status.Progress, raft.PeerProgress{ID: id, RecentActive: true, CaughtUp: true})
	}
	return status
}

func nameOf(id consensus.MemberID) string { return "m" + id.String() }

// TestPaused goes through each reason for which no time counts, and through none.
func TestPaused(t *testing.T) {
	now := time.Unix(1000, 0)
	var verdicts raising.Verdicts
	status, alarms := three(), 0
	ids := status.Config.IDs()
	check := func(want string) {
		t.Helper()
		got := raising.Paused(status, alarms, &verdicts, now, nameOf)
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("paused because %q, want %q", got, want)
		}
	}
	check("m1 has not said lately")
	for _, id := range ids {
		verdicts.Note(ids, id, raising.Verdict{Judged: id != 3}, now)
	}
	check("m3 has not judged itself")
	verdicts.Note(ids, 3, raising.Verdict{Judged: true}, now)
	check("")
	verdicts.Note(ids, 2, raising.Verdict{Judged: true, Finding: "DISK_SLOW: \x1b[2Ja disk"}, now)
	check("m2 finds DISK_SLOW: [2Ja disk")
	verdicts.Note(ids, 2, raising.Verdict{Judged: true, Finding: strings.Repeat("long", 1<<20)}, now)
	if got := raising.Paused(status, 0, &verdicts, now, nameOf); len(got) > 1000 {
		t.Errorf("a member has %d bytes said", len(got))
	}
	verdicts.Note(ids, 2, raising.Verdict{Judged: true}, now)
	check("")
	verdicts.Note(ids, 2, raising.Verdict{Judged: true, Finding: "late"}, now.Add(-time.Second))
	check("") // an answer that was overtaken by a later one
	alarms = 1
	check("1 alarm stands")
	alarms = 0
	status.Progress[0].CaughtUp = false
	check("m2 has not caught up")
	status.Progress[0].Leaving = true
	check("")
	status.Progress[1].RecentActive = false
	check("m3 is not there")
	status.Progress[1].RecentActive = true
	now = now.Add(raising.VerdictLasts + 1)
	check("m1 has not said lately")
}

// Ensure that verdicts of members that are gone are forgotten.
func TestVerdicts_Note_forgets(t *testing.T) {
	var verdicts raising.Verdicts
	now := time.Unix(1000, 0)
	status := three()
	for _, id := range status.Config.IDs() {
		verdicts.Note(status.Config.IDs(), id, raising.Verdict{Judged: true}, now)
	}
	verdicts.Note([]consensus.MemberID{1, 2}, 1, raising.Verdict{Judged: true}, now)
	if got := raising.Paused(status, 0, &verdicts, now, nameOf); !strings.Contains(got, "m3 has not said") {
		t.Errorf("paused because %q", got)
	}
}
