package doctor

import (
	"slices"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/doctor"
)

// correct asks members that were not reached, or not asked, at the client URLs that others know: the member that gave the list
// may be behind, and not know where a member serves, or that there is one.
func correct(c *quoratepb.Collected, ask func([]target) []*quoratepb.CollectedMember) {
	targets := misled(c)
	if len(targets) == 0 {
		return
	}
	for _, m := range ask(targets) {
		at := slices.IndexFunc(c.Members, func(old *quoratepb.CollectedMember) bool { return old.GetId() == m.GetId() })
		switch {
		case at < 0:
			c.Members = append(c.Members, m)
		case m.GetFault() == "" || c.Members[at].GetFault() == doctor.FaultNoEndpoint:
			c.Members[at] = m
		}
	}
}

// elsewhere are the faults of a member that may be at another client URL.
var elsewhere = []string{doctor.FaultNoEndpoint, doctor.FaultRefused, doctor.FaultUnreachable, doctor.FaultUnresolved,
	doctor.FaultSilent, doctor.FaultClosed, doctor.FaultOther}

// misled are the members of the latest configuration that were asked in vain, or not at all, with the client URLs that they
// have published. No more members are asked than a list may have.
func misled(c *quoratepb.Collected) (all []target) {
	left := mostMembers - len(c.GetMembers())
	for _, known := range doctor.Latest(c).GetMembers() {
		if len(known.GetClientUrls()) == 0 || known.GetId() == 0 {
			continue
		}
		t := target{id: known.GetId(), name: known.GetName(), endpoint: command.Bare(known.GetClientUrls()[0])}
		if t.name == "" {
			t.name = command.HexID(t.id)
		}
		at := slices.IndexFunc(c.GetMembers(), func(m *quoratepb.CollectedMember) bool { return m.GetId() == t.id })
		switch {
		case at < 0 && left > 0:
			left--
			all = append(all, t)
		case at >= 0 && c.Members[at].GetEndpoint() != t.endpoint && slices.Contains(elsewhere, c.Members[at].GetFault()):
			all = append(all, t)
		}
	}
	return all[:min(len(all), mostMembers)]
}
