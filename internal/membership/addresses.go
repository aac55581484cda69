package membership

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/quorum"
)

// Caution is what is demanded of new peer URLs at which the member is not found.
type Caution uint8

const (
	// Cautious: the member must answer there.
	Cautious Caution = iota
	// Lenient: it may be silent as long as the others are a quorum without it. etcd's way to move a member is to tell the
	// cluster first.
	Lenient
	// Forced: whatever is found there.
	Forced
)

// Accepts reports whether the peer URLs may be changed though the member was not found there; another says that another
// process was.
func (c Caution) Accepts(another bool) bool { return c == Forced || c == Lenient && !another }

// EnoughWithout reports whether a majority of voters is left without some. A lone voter needs no address to vote.
func EnoughWithout(v *View, doubtful []consensus.MemberID) bool {
	fit := slices.DeleteFunc(v.Fit(), func(id consensus.MemberID) bool {
		known, _ := v.Config.Member(id)
		return slices.Contains(doubtful, id) || len(known.FormerURLs) > 0
	})
	most := func(voters []consensus.MemberID) bool {
		return len(voters) == 0 || among(voters, fit) >= quorum.Majority(len(voters))
	}
	return len(v.Config.Voters) == 1 && len(v.Config.Outgoing) == 0 || most(v.Config.Voters) && most(v.Config.Outgoing)
}

// MaxFormer is how many former URLs a member may have: two updates of as many as it may have at once, which were not
// confirmed.
const MaxFormer = 2 * MaxURLs

// Former are the URLs at which a member may still be, beside new ones: its present ones, and, unless there says that it
// answers at these, all before that were not confirmed, oldest first. That it does not answer now does not show that it is
// not there.
func Former(known *consensus.Member, there bool, urls []string) []string {
	var may []string
	add := func(more []string) {
		for _, url := range more {
			if !slices.Contains(urls, url) && !slices.Contains(may, url) {
				may = append(may, url)
			}
		}
	}
	if !there {
		add(known.FormerURLs)
	}
	add(known.PeerURLs)
	return may
}
