package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/base/typed"
)

// links are connections between two members that answer.
func (p *patient) links() (all []Finding) {
	if p.alone {
		return nil
	}
	seats := p.mesh
	if parts := p.parts(seats); len(parts) > 1 && !slices.ContainsFunc(seats, func(s *seat) bool { return s.missed }) {
		var words []string
		var members []string
		for _, part := range parts {
			words = append(words, list(names(part)))
			members = append(members, names(part)...)
		}
		return []Finding{found(Partition, NextFailure, members, cureList, "the members do not reach each other: %s on "+
			"one side, "+
			"%s on the other; see the network between them", words[0], strings.Join(words[1:], " and "))}
	}
	for i, a := range seats {
		for _, b := range seats[i+1:] {
			there, known1 := p.link(a, b)
			back, known2 := p.link(b, a)
			pair := []string{a.name(), b.name()}
			switch {
			case !known1 || !known2 || there && back || a.missed || b.missed:
			case !there && !back:
				all = append(all, found(LinkDown, SlowerThanIs, pair, cureList, "%s and %s have no connection%s, while "+
					"others "+
					"reach both; see the network between the two", a.name(), b.name(), faultText(a.peer(b.Id))))
			case there:
				all = append(all, p.oneWay(b, a))
			default:
				all = append(all, p.oneWay(a, b))
			}
		}
	}
	return all
}

func (p *patient) oneWay(from, to *seat) Finding {
	return found(LinkOneWay, SlowerThanIs, []string{from.name(), to.name()}, cureList, "%s does not reach %s%s, though %s "+
		"reaches %s: see the network from %s to %s", from.name(), to.name(), faultText(from.peer(to.Id)), to.name(),
		from.name(),
		from.name(), strings.Join(to.known.GetPeerUrls(), ","))
}

func faultText(peer *quoratepb.ObservedPeer) string {
	if peer.GetFault() == "" {
		return ""
	}
	return fmt.Sprintf(" (%s, %s of the window failed)", peer.GetFault(), plural.Of(peer.GetFailures(), "attempt"))
}

// parts are the sets of members that reach each other, in either direction.
func (p *patient) parts(seats []*seat) (parts [][]*seat) {
	part := make([]int, len(seats))
	for i := range part {
		part[i] = i
	}
	for i, a := range seats {
		for j, b := range seats {
			up, known := p.link(a, b)
			if from, to := part[j], part[i]; i != j && (up || !known) && from != to {
				for k := range part {
					if part[k] == from {
						part[k] = to
					}
				}
			}
		}
	}
	for i := range seats {
		var one []*seat
		for j, s := range seats {
			if part[j] == i {
				one = append(one, s)
			}
		}
		if len(one) > 0 {
			parts = append(parts, one)
		}
	}
	return parts
}

// addresses are peer URLs at which members are not found.
func (p *patient) addresses() (all []Finding) {
	for _, s := range p.seats {
		if s.known == nil {
			continue
		}
		urls := strings.Join(s.known.GetPeerUrls(), ",")
		cure := typed.Line("quorate", "member", "update", s.name(), "--peer-urls") + " URL --dry-run"
		switch {
		case s.known.GetMoved():
			all = append(all, found(PeerURLWrong, p.weight(s), []string{s.name()}, cure, "%s was not found at its new "+
				"peer URL "+
				"%s: start it there, or correct the URL", s.name(), urls))
		case !p.alone && s.missed:
			all = append(all, found(PeerURLWrong, p.weight(s), []string{s.name()}, cure, "no member reaches %s at its "+
				"peer URL "+
				"%s, though it runs and reaches others: the URL is wrong, or the way to it is closed", s.name(), urls))
		default:
			for _, other := range p.answered() {
				if fault := other.peer(s.Id).GetFault(); fault == "wrong-member" || fault == "foreign-cluster" {
					all = append(all, found(PeerURLWrong, p.weight(s), []string{s.name()}, cure, "at the peer URL of "+
						"%s, %s, %s "+
						"meets another process (%s): correct the URL", s.name(), urls, other.name(), fault))
					break
				}
			}
		}
	}
	return all
}

// unresolved are names in the URLs of members that mean no address, at other members or for the collector.
func (p *patient) unresolved() (all []Finding) {
	for _, s := range p.seats {
		if s.known == nil {
			continue
		}
		at := slices.DeleteFunc(p.answered(), func(other *seat) bool { return other.peer(s.Id).GetFault() != peerUnresolved })
		here := s.asked && s.GetFault() == FaultUnresolved
		urls := strings.Join(s.known.GetPeerUrls(), ",")
		switch {
		case len(at) > 0:
			also := ""
			if here {
				also = ", nor does that of " + s.GetEndpoint() + " here"
			}
			all = append(all, found(NameUnresolved, p.weight(s), []string{s.name()}, cureList,
				"the name in the peer URL of %s, %s, does not resolve at %s%s: see their DNS and hosts files, or correct "+
					"the URL; where names come and go with processes, start %s", s.name(), urls, list(names(at)), also,
				s.name()))
		case here:
			all = append(all, found(NameUnresolved, SlowerThanIs, []string{s.name()}, cureList,
				"the name in the client URL of %s, %s, does not resolve here (%s): see DNS, or its "+
					"--advertise-client-urls", s.name(), s.GetEndpoint(), s.GetFaultText()))
		}
	}
	return all
}

// authorities are certificates that are not taken.
func (p *patient) authorities() (all []Finding) {
	told := map[[2]string]bool{} // each end says the same
	for _, s := range p.answered() {
		for _, peer := range s.o.GetPeers() {
			if peer.GetConnected() || peer.GetFault() != PeerUntrusted && peer.GetFault() != "wrong-certificate" {
				continue
			}
			pair := []string{s.name(), p.nameOf(peer.GetId())}
			key := [2]string{min(pair[0], pair[1]), max(pair[0], pair[1])}
			if told[key] {
				continue
			}
			told[key] = true
			severity := SlowerThanIs
			if p.tolerates() <= 0 && len(p.voters) > 1 {
				severity = NextFailure
			}
			all = append(all, found(WrongAuthority, severity, pair, cureStatus, "%s and %s do not take each other's "+
				"certificates "+
				"(%s of the window failed): see --peer-trusted-ca-file and --peer-cert-file of both", pair[0],
				pair[1], plural.Of(peer.GetFailures(), "attempt")))
		}
	}
	for _, s := range p.seats {
		if s.GetFault() == FaultAuthority || s.GetFault() == FaultTLS {
			all = append(all, found(WrongAuthority, SlowerThanIs, []string{s.name()}, "quorate doctor --cacert FILE",
				"the certificate of %s is not taken here: %s", s.name(), s.GetFaultText()))
		}
	}
	return all
}

// slowLinks are round trips that leave an election timeout no room.
func (p *patient) slowLinks() (all []Finding) {
	told := map[[2]string]bool{}
	for _, s := range p.answered() {
		for _, peer := range s.o.GetPeers() {
			us, limit := peer.GetRoundTripUs(), s.o.GetElectionMs()*1000/10
			pair := [2]string{min(s.name(), p.nameOf(peer.GetId())), max(s.name(), p.nameOf(peer.GetId()))}
			if us <= limit || limit == 0 || told[pair] || !peer.GetConnected() {
				continue
			}
			if peer.GetConnectedMs() < 10*s.o.GetElectionMs() { // the mean is of one round trip, or of a few
				continue
			}
			told[pair] = true
			all = append(all, found(LinkSlow, SlowerThanIs, pair[:], "quorate latency", "the link between %s and %s is "+
				"slow: a "+
				"round trip takes %s, more than a tenth of the election timeout of %s", pair[0], pair[1], micros(us),
				span(s.o.GetElectionMs())))
		}
	}
	return all
}
