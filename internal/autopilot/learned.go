package autopilot

import (
	"slices"
	"time"

	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/membership"
)

// A member that was down while another one moved does not find that one, and nobody answers for it where the own configuration
// has it. If it leads, it is not heard, so the log that says where it is never comes. Those that are found at addresses of the
// own configuration know that already, and are asked: rule 4 of the rule of evidence in package identity.

// Whereabouts are where the members are by the committed configuration of the member that says so.
type Whereabouts struct {
	Cluster consensus.ClusterID `json:"cluster"`
	Epoch   consensus.Epoch     `json:"epoch"`
	Member  consensus.MemberID  `json:"member"` // who says so
	Config  consensus.ConfigID  `json:"config"`
	Members []Whereabout        `json:"members"`
}

// Whereabout is where one member is: its present URLs come first.
type Whereabout struct {
	Member consensus.MemberID `json:"member"`
	URLs   []string           `json:"urls"`
}

// NewWhereabouts returns what a member, own, says by its committed configuration.
func NewWhereabouts(own *identity.Claim, committed *consensus.Config, id consensus.ConfigID) Whereabouts {
	w := Whereabouts{Cluster: own.Cluster, Epoch: own.Epoch, Member: own.Member, Config: id}
	for i := range committed.Members {
		m := &committed.Members[i]
		w.Members = append(w.Members, Whereabout{Member: m.ID, URLs: m.DialURLs()})
	}
	return w
}

// Learned is what a member that hears no leader has learned so of where the others are: a newer committed configuration than
// its own. It has no clock and asks nobody itself, it is in memory only, and it ends as soon as the own configuration is as
// new. The zero value has learned nothing. It belongs to one goroutine at a time.
type Learned struct {
	config consensus.ConfigID
	places []Whereabout // of members of the own configuration

	alone bool          // no leader is heard
	due   time.Duration // when the next round of questions is, while alone
	pause time.Duration // before the one after that
}

// mostLearnPauses bounds the pause between two rounds of questions, in election timeouts.
const mostLearnPauses = 4

// Look takes whether a leader is heard, and tells whether to ask now: for the first time an election timeout after none was
// heard, and more rarely from then on.
func (l *Learned) Look(now, electionTimeout time.Duration, led bool) (ask bool) {
	switch {
	case led:
		l.alone = false
	case !l.alone:
		l.alone, l.due, l.pause = true, now+electionTimeout, 2*electionTimeout
	case now >= l.due:
		l.due, l.pause = now+l.pause, min(2*l.pause, mostLearnPauses*electionTimeout)
		return true
	}
	return false
}

// Take takes what somebody said who was found at an address of the own configuration or of the operator's word, and reports
// whether it is news. Who is of another cluster or epoch, or no member, is not believed. The own configuration is that in
// force.
func (l *Learned) Take(own *identity.Claim, inForce *consensus.Config, id consensus.ConfigID, said *Whereabouts) (news bool) {
	if said.Cluster != own.Cluster || said.Epoch != own.Epoch || said.Member == own.Member || !inForce.Contains(said.Member) ||
		!older(id, said.Config) || len(l.places) > 0 && !older(l.config, said.Config) {
		return false
	}
	var places []Whereabout
	for i := range inForce.Members {
		m := &inForce.Members[i]
		at := slices.IndexFunc(said.Members, func(w Whereabout) bool { return w.Member == m.ID })
		if at < 0 || m.ID == own.Member {
			continue
		}
		if urls := usable(said.Members[at].URLs); len(urls) > 0 {
			places = append(places, Whereabout{Member: m.ID, URLs: urls})
		}
	}
	if len(places) == 0 {
		return false
	}
	l.config, l.places = said.Config, places
	return true
}

// usable returns those of some URLs that may be dialled, as many as a member may have.
func usable(urls []string) (good []string) {
	for _, url := range urls[:min(len(urls), membership.MaxURLs+membership.MaxFormer)] {
		if _, err := config.ParseURL(url); err == nil && membership.FitsURL(url) && !slices.Contains(good, url) {
			good = append(good, url)
		}
	}
	return good[:min(len(good), membership.MaxURLs)]
}

// Beside adds what was learned to the peer URLs of the members of the configuration id, as they are dialled without it. What is
// new is dialled first, because it is of a newer configuration.
func (l *Learned) Beside(members []consensus.Member, id consensus.ConfigID) []consensus.Member {
	if !older(id, l.config) {
		return members
	}
	all := slices.Clone(members)
	for i := range all {
		at := slices.IndexFunc(l.places, func(w Whereabout) bool { return w.Member == all[i].ID })
		if at < 0 {
			continue
		}
		known := all[i].PeerURLs
		news := slices.DeleteFunc(slices.Clone(l.places[at].URLs), func(url string) bool { return slices.Contains(known, url) })
		all[i].PeerURLs = slices.Concat(news, known)
	}
	return all
}

// Outlived forgets what was learned once the own committed configuration is as new, and reports whether it did.
func (l *Learned) Outlived(committed consensus.ConfigID) bool {
	if len(l.places) == 0 || older(committed, l.config) {
		return false
	}
	l.config, l.places = consensus.ConfigID{}, nil
	return true
}

// older reports whether one configuration comes before another one in the log. A log that has the entry of a later term has all
// that was committed in terms before.
func older(one, other consensus.ConfigID) bool {
	return consensus.Position{Index: one.Index, Term: one.Term}.Before(
		consensus.Position{Index: other.Index, Term: other.Term})
}
