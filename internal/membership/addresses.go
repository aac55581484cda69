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

// Accepts reports whether the peer URLs may be changed though the member was not found there; another says that somebody else
// was.
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

// Former are the URLs at which a member may still be, beside new ones: those at which it was found last, so that the list does
// not grow by updates that nobody confirms. there says that it answers at its present peer URLs.
func Former(known *consensus.Member, there bool, urls []string) []string {
	last := known.FormerURLs
	if len(last) == 0 || there {
		last = known.PeerURLs
	}
	return slices.DeleteFunc(slices.Clone(last), func(url string) bool { return slices.Contains(urls, url) })
}
