package doctor_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/doctor"
)

// Ensure that a cure that compacts leaves a distance to the latest revision, and that each is what the sentence speaks of.
func TestJudge_compaction(t *testing.T) {
	for _, row := range []struct {
		name        string
		inject      func(h hospital)
		code        doctor.Code
		cure, words string
	}{
		{"a quota that is reached, without writes", func(h hospital) {
			h.of(1).Alarms = []*quoratepb.ObservedAlarm{{Kind: "NOSPACE", Member: 2}}
			h.everywhere(func(o *quoratepb.Observation) { o.Core.Committed = 0 })
		}, doctor.NoSpace, "quorate compact 79000", "this leaves the last 1000 revisions"},
		{"a quota that is near, with a few writes", func(h hospital) {
			h.of(2).Store.SizeBytes = 2 << 30
			h.of(3).Store.Revision = 79_990 // it lags
			h.everywhere(func(o *quoratepb.Observation) { o.Core.Committed = 300 })
		}, doctor.QuotaNear, "quorate compact 76990", "this leaves the last 3000 revisions"},
		{"a history that is written fast", func(h hospital) {
			h.everywhere(func(o *quoratepb.Observation) { o.Store.Versions, o.Store.CompactRevision = 75_000, 0 })
		}, doctor.HistoryKept, "quorate compact 40000", "watches and mirrors that lag"},
		{"a revision that is not known", func(h hospital) {
			h.of(1).Alarms = []*quoratepb.ObservedAlarm{{Kind: "NOSPACE", Member: 2}}
			h.everywhere(func(o *quoratepb.Observation) { o.Store.Revision, o.Store.CompactRevision = 0, 0 })
		}, doctor.NoSpace, "quorate compact REVISION", "choose a revision well behind that of `quorate endpoint status`"},
		{"a reclaim that fails", func(h hospital) { h.of(2).Store.ReclaimFailures = 4 }, doctor.ReclaimFails,
			"journalctl --grep 'garbage stays on disk'", "its log says why, in lines about garbage that stays on disk"},
	} {
		h := hospital{healthy(3)}
		row.inject(h)
		got := doctor.Judge(h.Collected)
		if len(got) == 0 || got[0].Code != row.code || got[0].Cure != row.cure ||
			!strings.Contains(got[0].Sentence, row.words) {
			t.Errorf("%s: got %+v", row.name, got)
		}
	}
}

// Ensure that in a joint configuration a majority of either set is not enough.
func TestJudgeStopped_joint(t *testing.T) {
	dir := func(id string) doctor.Stopped {
		return doctor.Stopped{Dir: "/data/" + id, Cluster: "c", ID: id, Name: id, LastTerm: 3, LastIndex: 9,
			Voters: []string{"a", "b", "c"}, Outgoing: []string{"a", "d", "e"}}
	}
	for _, row := range []struct {
		ids      string
		majority bool
		words    string
	}{
		{"bc", false, "2 of 3 voters and 0 of 3 outgoing voters are here and 2 and 2 make a majority: look for the " +
			"directories"},
		{"de", false, "0 of 3 voters and 2 of 3 outgoing voters are here"},
		{"abc", false, "3 of 3 voters and 1 of 3 outgoing voters are here"},
		{"abd", true, "2 of 3 voters and 2 of 3 outgoing voters are here, a majority: start them"},
	} {
		var all []doctor.Stopped
		for _, id := range row.ids {
			all = append(all, dir(string(id)))
		}
		if got := doctor.JudgeStopped(all); got.Majority != row.majority ||
			!strings.Contains(strings.Join(got.Sentences, "\n"), row.words) {
			t.Errorf("%s: %+v", row.ids, got)
		}
	}
}

// Ensure that a cure which writes stands behind whatever keeps all writes from being committed.
func TestJudge_writesLast(t *testing.T) {
	alarm := func(h hospital) { h.of(1).Alarms = []*quoratepb.ObservedAlarm{{Kind: "NOSPACE", Member: 1}} }
	for _, row := range []struct {
		name   string
		inject func(h hospital)
		first  doctor.Code
	}{
		{"too few voters", func(h hospital) {
			for n := 2; n <= 3; n++ {
				m := h.Members[n-1]
				m.Observation, m.Fault, m.FaultText = nil, doctor.FaultRefused, "connection refused"
				h.peer(1, n).Connected, h.peer(1, n).Active, h.peer(1, n).Received = false, false, 0
			}
		}, doctor.NoQuorum},
		{"no leader", func(h hospital) {
			h.everywhere(func(o *quoratepb.Observation) {
				o.Core.Leader, o.Core.LeaderlessMs = 0, 20_000
				for _, p := range o.Peers {
					p.Followed = false
				}
			})
		}, doctor.NoLeader},
		{"members that differ", func(h hospital) {
			h.of(1).Alarms = append(h.of(1).Alarms, &quoratepb.ObservedAlarm{Kind: "CORRUPT"})
		}, doctor.CorruptCluster},
		{"a leader whose disk hangs", func(h hospital) {
			h.of(1).Core.Stalled, h.of(1).Core.StalledMs = "writing the log", 9000
		}, doctor.DiskHangs},
	} {
		h := hospital{healthy(3)}
		alarm(h)
		row.inject(h)
		found := doctor.Judge(h.Collected)
		space := slices.IndexFunc(found, func(f doctor.Finding) bool { return f.Code == doctor.NoSpace })
		if len(found) < 2 || found[0].Code != row.first || space < 1 || found[space].Severity != doctor.CannotWrite {
			t.Errorf("%s: got %+v", row.name, found)
		}
	}
}
