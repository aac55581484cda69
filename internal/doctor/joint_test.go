package doctor_test

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/doctor"
)

// Ensure that while a change of members is joint a majority of either set alone does not do: the old set counts, too, for what is
// lost, and for how many failures are survived.
func TestJudge_joint(t *testing.T) {
	for _, row := range []struct {
		name     string
		old, new string // numbers of members
		lost     string
		code     doctor.Code
		severity doctor.Severity
		words    string
	}{
		{"the old set is lost", "123", "345", "12", doctor.NoQuorum, doctor.CannotWrite,
			"2 of 3 voters of the old set, which must agree until the change of members is done, are down (m1, m2), and 2 must be up: " +
				"nothing can be written until 1 more runs"},
		{"the new set is lost", "123", "345", "45", doctor.NoQuorum, doctor.CannotWrite,
			"2 of 3 voters of the new set, which must agree to the change of members that is under way, are down (m4, m5)"},
		{"the old set is at its limit", "123", "2345", "1", doctor.MemberDown, doctor.NextFailure, "m1 is down"},
		{"both survive another failure", "12345", "23456", "1", doctor.MemberDown, doctor.SlowerThanIs, "m1 is down"},
	} {
		h := hospital{healthy(6)}
		lead := strings.IndexFunc("123456", func(r rune) bool { return !strings.ContainsRune(row.lost, r) }) + 1
		h.everywhere(func(o *quoratepb.Observation) {
			o.Config.Joint, o.Config.Settled, o.Core.Leader = true, false, uint64(lead)
			for i, m := range o.Config.Members {
				at := rune('1' + i)
				m.Voter, m.Outgoing = strings.ContainsRune(row.new, at), strings.ContainsRune(row.old, at)
			}
			for _, p := range o.Peers {
				lost := strings.ContainsRune(row.lost, rune('0'+p.Id))
				p.Followed, p.Active, p.CaughtUp, p.State, p.Match = o.MemberId == uint64(lead), !lost, !lost, "replicate", 89_999
				if lost {
					p.Connected, p.Received, p.Fault, p.Failures = false, 0, "unreachable", 9
				}
			}
		})
		for _, r := range row.lost {
			m := h.Members[r-'1']
			m.Observation, m.Fault, m.FaultText = nil, doctor.FaultRefused, "connection refused"
		}
		got := doctor.Judge(h.Collected)
		if len(got) == 0 || got[0].Code != row.code || got[0].Severity != row.severity || !strings.Contains(got[0].Sentence, row.words) {
			t.Errorf("%s: got %+v", row.name, got)
		}
	}
}
