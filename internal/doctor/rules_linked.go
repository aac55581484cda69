package doctor

import (
	"slices"
	"strings"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/plural"
)

// overLinks is a member that did not answer the member that collects. That member looks at peer ports, not at those of
// clients, and what it does not reach may be cut off from it alone.
func (p *patient) overLinks(s *seat, peer *quoratepb.ObservedPeer, unheard bool, since string) []Finding {
	one := []string{s.name()}
	switch fault := s.GetFault(); {
	case fault == FaultUnsupported, fault == FaultDenied, fault == FaultLong, fault == FaultOther: // it answered: see untold
		return nil
	case fault == FaultRefused && unheard && p.heardByNone(s):
		return []Finding{found(MemberDown, p.weight(s), one, cureList,
			"%s is down%s: %s; its log says why, start it again with its data", s.name(), since, p.downText(s))}
	case unheard && peer != nil && peer.GetSilentMs() <= p.clocked: // it stops, or starts
		return nil
	case fault == FaultSilent && unheard:
		return []Finding{found(MemberHangs, p.weight(s), one, cureList, "%s hangs%s: its process accepts connections and "+
			"does not answer; see whether it is stopped, swapped out, or waits for its disk", s.name(), since)}
	case fault == FaultBusy && unheard && p.leader != nil:
		return []Finding{found(MemberHangs, p.weight(s), one, cureList, "%s hangs%s: its process answers at %s, and neither "+
			"says what it observes nor is heard by the leader; see whether it waits for its disk or lacks a processor",
			s.name(), since, s.GetEndpoint())}
	case fault == FaultBusy:
		return nil // see untold
	case unheard:
		return []Finding{p.unreachedByAll(s, peer)}
	case p.by != nil && !p.by.peer(s.Id).GetConnected() && p.reachedByOther(s):
		return []Finding{found(LinkDown, SlowerThanIs, []string{p.by.name(), s.name()}, cureList, "%s has no connection to "+
			"%s%s, though other members hear %s; see the network between the two", p.by.name(), s.name(),
			faultText(p.by.peer(s.Id)), s.name())}
	}
	return nil
}

// reachedByOther reports whether a member that answered, other than the one that collects, has a connection to a member.
func (p *patient) reachedByOther(s *seat) bool {
	return slices.ContainsFunc(p.answered(), func(other *seat) bool { return other != p.by && other.peer(s.Id).GetConnected() })
}

// unreachedByAll is a member that may be down, hang, or be cut off.
func (p *patient) unreachedByAll(s *seat, peer *quoratepb.ObservedPeer) Finding {
	leader := ""
	if peer != nil {
		leader = ", and the leader has not heard it for " + span(peer.GetSilentMs())
	}
	return found(Unreached, p.weight(s), []string{s.name()}, cureList, "%s does not answer %s over the link between "+
		"members%s: it is down, hangs, or the way to it is closed (%s says %s); see whether its process runs, and the network "+
		"to its peer URL",
		s.name(), p.collector(), leader, s.GetEndpoint(), s.GetFaultText())
}

// collector is the name of the member that collects.
func (p *patient) collector() string {
	if p.by == nil {
		return "the member that was asked"
	}
	return p.by.name()
}

// voices is how many voters answered.
func (p *patient) voices() (n int) {
	for _, s := range p.voters {
		if s.o != nil {
			n++
		}
	}
	return n
}

// noMajority is that the members which answered know no leader and are too few to elect one: the others are down, or have one.
func (p *patient) noMajority(seeking []*seat) Finding {
	longest, members := int64(0), names(seeking)
	for _, s := range seeking {
		longest = max(longest, s.o.GetCore().GetLeaderlessMs())
	}
	for _, s := range p.voters {
		if s.o == nil {
			members = append(members, s.name())
		}
	}
	return found(CutOff, CannotWrite, members, cureStatus, "%s %s known no leader for %s, and %d of %s answered %s, where %d "+
		"elect one: no write is served here; whether the others have a leader is not known here", list(names(seeking)),
		plural.Word(len(seeking), "has", "have"), span(longest), p.voices(), plural.Of(len(p.voters), "voter"), p.collector(),
		p.quorum)
}

// untold are members that answer over links and do not say what they observe.
func (p *patient) untold() (all []Finding) {
	const judged = ", so that it is judged by the others alone"
	for _, s := range p.seats {
		text := ""
		switch s.GetFault() {
		case FaultUnsupported:
			text = s.name() + " runs a build that other members cannot ask what it observes" + judged
		case FaultDenied:
			text = s.name() + " does not tell " + p.collector() + " what it observes (" + s.GetFaultText() + ")" + judged
		case FaultLong:
			text = s.name() + " is judged by the others alone: " + s.GetFaultText() +
				", which is more than any member has to say"
		case FaultOther:
			text = "what " + s.name() + " answers does not count: " + strings.TrimSpace(s.GetFaultText())
		case FaultBusy:
			if p.follows(s) {
				text = s.name() + " did not tell " + p.collector() +
					" in time what it observes: it may lack a processor" + judged
			}
		}
		if text != "" {
			all = append(all, found(NotObserved, Advice, []string{s.name()}, cureList, "%s", text))
		}
	}
	return all
}

// follows reports whether the leader hears a member, or no member says otherwise.
func (p *patient) follows(s *seat) bool {
	peer := p.followed(s)
	return p.leader == nil || peer.GetActive() || p.follow(s)
}
