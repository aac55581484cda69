package members

import (
	"fmt"

	"github.com/quorate/quorate/api/quoratepb"
)

// Apart returns a sentence for each two voters of which one has no connection to the other, and for each voter that did not
// tell. Of many it returns the first ones.
func Apart(c *quoratepb.Cluster, collected *quoratepb.Collected) (out []string) {
	reaches := map[uint64]map[uint64]bool{} // whom each member that told has a connection to
	for _, m := range collected.GetMembers() {
		if o := m.GetObservation(); o != nil {
			peers := map[uint64]bool{}
			for _, p := range o.GetPeers() {
				peers[p.GetId()] = peers[p.GetId()] || p.GetConnected()
			}
			reaches[o.GetMemberId()] = peers
		}
	}
	more := 0
	say := func(text string, names ...any) {
		if len(out) == mostAlarms {
			more++
			return
		}
		out = append(out, fmt.Sprintf(text, names...))
	}
	for _, m := range c.GetMembers() {
		if !votes(m) {
			continue
		}
		peers, told := reaches[m.GetId()]
		if !told {
			say("%s did not say whom it reaches", m.GetName())
			continue
		}
		for _, other := range c.GetMembers() {
			if votes(other) && other.GetId() != m.GetId() && !peers[other.GetId()] {
				say("%s has no connection to %s yet", m.GetName(), other.GetName())
			}
		}
	}
	if more > 0 {
		out = append(out, fmt.Sprintf("%d more connections of voters are missing", more))
	}
	return out
}
