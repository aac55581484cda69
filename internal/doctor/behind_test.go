package doctor_test

import (
	"fmt"
	"testing"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/doctor"
)

// Ensure that a member that has just started and has not applied what the others have is no proof of what it does not know yet:
// nothing above advice follows from records that it lacks, whether the members that they are of were asked or not.
func TestJudge_behind(t *testing.T) {
	for _, voters := range []int{3, 5} {
		for behind := 2; behind <= voters; behind++ {
			for lacks := 1; lacks <= voters; lacks++ {
				for _, unasked := range []bool{false, true} {
					if lacks == behind {
						continue
					}
					h := hospital{healthy(voters)}
					o := h.of(behind)
					o.UpMs, o.WindowMs, o.HistoryMs = 400, 0, 0
					o.Core.Applied, o.Core.Commit, o.Core.Committed, o.Core.LeaderChanges = 60_000, 60_000, 0, 0
					o.Config.Level = 2
					o.Store.Revision, o.Store.Keys, o.Store.Versions = 50_000, 10, 10
					o.Alarms = []*quoratepb.ObservedAlarm{{Kind: "NOSPACE", Member: uint64(lacks)}} // that was disarmed since
					o.Jobs = []*quoratepb.ObservedJob{{Id: 5, Kind: "replace", State: "running", Phase: "start", QuietMs: 9 * day, Turn: true}}
					m := o.Config.Members[lacks-1]
					m.Started, m.Build, m.Level, m.Zone, m.ClientUrls = false, "", 0, "", nil
					if unasked { // the list of members was the one of the member that is behind
						c := h.Members[lacks-1]
						c.Observation, c.Endpoint, c.Fault = nil, "", doctor.FaultNoEndpoint
						c.FaultText = "it never said where it serves clients"
					}
					for _, first := range []bool{false, true} { // the order of the answers says nothing
						if first {
							all := append([]*quoratepb.CollectedMember{h.Members[behind-1]}, h.Members[:behind-1]...)
							h.Members = append(all, h.Members[behind:]...)
						}
						for _, f := range doctor.Judge(h.Collected) {
							if f.Severity < doctor.Advice {
								t.Errorf("%s: %s: %s", fmt.Sprintf("of %d, m%d lacks m%d (asked: %v)", voters, behind, lacks, !unasked),
									f.Code, f.Sentence)
							}
						}
					}
				}
			}
		}
	}
}
