package doctor_test

import (
	"testing"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/doctor"
)

// linked lets a member have collected, over links between members.
func (h hospital) linked(by int) {
	h.ByMember = uint64(by)
	for _, m := range h.Members {
		m.Endpoint = m.Name + ":2380"
		if m.Id == uint64(by) {
			m.AskedMs, m.RoundTripUs = m.Observation.NowMs, 0
		}
	}
}

// untold takes away what a member says, which the others hear.
func (h hospital) untold(n int, fault string) {
	h.Members[n-1].Observation, h.Members[n-1].Fault, h.Members[n-1].FaultText = nil, fault, "the reason"
}

var faultsOverLinks = []fault{
	{"over links: a follower is killed", 0, func(h hospital) {
		h.gone(3, doctor.FaultRefused)
		h.linked(1)
	}, doctor.MemberDown, 2, "m3 is down, for 65 s: m3:2380 says connection refused, and the leader does not hear it", nil},
	{"over links: a follower is stopped", 0, func(h hospital) {
		h.gone(3, doctor.FaultSilent)
		h.linked(2)
	}, doctor.MemberHangs, 2, "m3 hangs, for 65 s: its process accepts connections and does not answer", nil},
	{"over links: the loop of a follower hangs", 0, func(h hospital) {
		h.gone(3, doctor.FaultBusy)
		h.linked(2)
	}, doctor.MemberHangs, 2, "m3 hangs, for 65 s: its process answers at m3:2380, and neither says what it observes nor is heard", nil},
	{"over links: a follower is cut off", 0, func(h hospital) {
		h.gone(3, doctor.FaultUnreachable)
		h.linked(1)
	}, doctor.Unreached, 2, "m3 does not answer m1 over the link between members, and the leader has not heard it for 65 s: it is down, " +
		"hangs, or the way to it is closed (m3:2380 says connection refused)", nil},
	{"over links: one of five behind a proxy is gone", 5, func(h hospital) {
		h.gone(3, doctor.FaultClosed)
		h.linked(2)
	}, doctor.Unreached, 3, "m3 does not answer m2 over the link between members", nil},
	{"over links: one connects to none", 0, func(h hospital) {
		h.gone(3, doctor.FaultUnlinked)
		h.linked(1)
	}, doctor.Unreached, 2, "m3 does not answer m1", nil},
	{"over links: two of three are killed", 0, func(h hospital) {
		h.gone(2, doctor.FaultRefused)
		h.gone(3, doctor.FaultRefused)
		h.unled()
		h.linked(1)
	}, doctor.NoQuorum, 1, "2 of 3 voters are down (m2, m3), and 2 must be up", []doctor.Code{doctor.CutOff, doctor.MemberDown}},
	{"over links: the member that collects is cut off", 0, func(h hospital) {
		h.gone(2, doctor.FaultUnreachable)
		h.gone(3, doctor.FaultUnreachable)
		h.unled()
		h.linked(1)
	}, doctor.Unreached, 1, "m2 does not answer m1 over the link between members: it is down, hangs, or the way to it is closed",
		[]doctor.Code{doctor.CutOff}},
	{"over links: three of five answer, and none leads", 5, func(h hospital) {
		h.gone(4, doctor.FaultUnreachable)
		h.gone(5, doctor.FaultUnreachable)
		h.unled()
		h.linked(1)
	}, doctor.Unreached, 1, "m4 does not answer m1", []doctor.Code{doctor.NoLeader}},
	{"over links: the link of the member that collects is down", 0, func(h hospital) {
		h.cut(2, 3, "unreachable")
		h.untold(3, doctor.FaultClosed)
		h.linked(2)
	}, doctor.LinkDown, 3, "m2 has no connection to m3 (unreachable, 40 attempts of the window failed), though other members hear m3", nil},
	{"over links: one is slow", 0, func(h hospital) {
		h.untold(3, doctor.FaultBusy)
		h.linked(2)
	}, doctor.NotObserved, 4, "m3 did not tell m2 in time what it observes", nil},
	{"over links: an older build", 0, func(h hospital) {
		h.untold(3, doctor.FaultUnsupported)
		h.linked(1)
	}, doctor.NotObserved, 4, "m3 runs a build that other members cannot ask what it observes", nil},
	{"over links: one refuses", 0, func(h hospital) {
		h.untold(3, doctor.FaultDenied)
		h.linked(1)
	}, doctor.NotObserved, 4, "m3 does not tell m1 what it observes (the reason)", nil},
	{"over links: a long answer", 0, func(h hospital) {
		h.untold(3, doctor.FaultLong)
		h.linked(1)
	}, doctor.NotObserved, 4, "m3 is judged by the others alone: the reason", nil},
	{"over links: a liar", 0, func(h hospital) {
		h.untold(3, doctor.FaultOther)
		h.linked(1)
	}, doctor.NotObserved, 4, "what m3 answers does not count: the reason", nil},
	{"over links: the clock of the member that collects is off", 0, func(h hospital) {
		h.of(1).NowMs += 10_000
		for _, m := range h.Members {
			m.AskedMs += 10_000
		}
		h.linked(1)
	}, doctor.ClockOff, 3, "the clock of m1 is 10 s ahead of those of the others", nil},
	{"over links: a voter that never started", 0, func(h hospital) {
		h.gone(3, doctor.FaultRefused)
		h.known(3, func(m *quoratepb.ObservedMember) { m.Started = false })
		h.linked(1)
	}, doctor.VoterNotStarted, 2, "m3 votes and has never started", nil},
}

// Ensure that nothing is found of a healthy cluster whose members were asked over links, nor of a member that just stops, or
// starts; and that no finding speaks of client ports, which were not looked at.
func TestJudge_linked(t *testing.T) {
	for n := 3; n <= 7; n += 2 {
		h := hospital{healthy(n)}
		h.linked(2)
		if got := doctor.Judge(h.Collected); len(got) > 0 {
			t.Errorf("%d voters: %v", n, got)
		}
	}
	for _, fault := range []string{doctor.FaultSilent, doctor.FaultClosed, doctor.FaultUnlinked, doctor.FaultUnreachable} {
		h := hospital{healthy(3)}
		h.gone(3, fault)
		h.peer(1, 3).SilentMs = 260
		h.linked(1)
		if got := doctor.Judge(h.Collected); len(got) > 0 {
			t.Errorf("%s, for less than an election timeout: %v", fault, got)
		}
	}
	for _, fault := range []string{doctor.FaultRefused, doctor.FaultUnreachable, doctor.FaultSilent, doctor.FaultClosed, doctor.FaultUnlinked,
		doctor.FaultBusy, doctor.FaultUnsupported, doctor.FaultDenied, doctor.FaultLong, doctor.FaultOther} {
		for _, away := range []bool{false, true} {
			h := hospital{healthy(3)}
			if h.untold(3, fault); away {
				h.gone(3, fault)
			}
			h.linked(2)
			for _, f := range doctor.Judge(h.Collected) {
				if f.Code == doctor.ClientURLWrong || f.Code == doctor.ClientsRefused || f.Code == doctor.ClustersMixed {
					t.Errorf("%s, away %v: %v", fault, away, f)
				}
			}
		}
	}
}
