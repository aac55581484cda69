package membership

import (
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/consensus"
)

// Same reports whether other asks for the same, in whatever order and from whatever configuration: then a command that
// is given again is about the job that is there already. The ids of newcomers do not count, for each command draws its own.
func (s *Spec) Same(other *Spec) bool {
	return s.kind() == other.kind() && s.Protocol == other.Protocol &&
		slices.Equal(sorted(s.Remove), sorted(other.Remove)) &&
		slices.Equal(sorted(s.Promote), sorted(other.Promote)) &&
		slices.Equal(sorted(s.Demote), sorted(other.Demote)) &&
		slices.Equal(sorted(s.Drain), sorted(other.Drain)) &&
		slices.Equal(sorted(s.Cordon), sorted(other.Cordon)) &&
		slices.Equal(sorted(s.Uncordon), sorted(other.Uncordon)) &&
		slices.EqualFunc(newcomers(s), newcomers(other), func(a, b Newcomer) bool {
			return a.Name == b.Name && a.Learner == b.Learner && a.Cordoned == b.Cordoned &&
				slices.Equal(a.PeerURLs, b.PeerURLs)
		}) &&
		slices.EqualFunc(updates(s), updates(other), func(a, b consensus.Member) bool {
			return a.ID == b.ID && a.Name == b.Name && slices.Equal(a.PeerURLs, b.PeerURLs)
		})
}

// kind is the Kind with its default filled in. A change that only drains is a drain.
func (s *Spec) kind() Kind {
	switch {
	case len(s.Drain) > 0:
		return KindDrain
	case s.Kind == "":
		return KindChange
	}
	return s.Kind
}

func sorted[T ~uint64 | ~string](list []T) []T { return slices.Sorted(slices.Values(list)) }

// newcomers returns those to add, with sorted URLs, sorted by them: no URL occurs twice.
func newcomers(s *Spec) []Newcomer {
	list := slices.Clone(s.Add)
	for i := range list {
		list[i].PeerURLs = sorted(list[i].PeerURLs)
	}
	slices.SortFunc(list, func(a, b Newcomer) int { return slices.Compare(a.PeerURLs, b.PeerURLs) })
	return list
}

func updates(s *Spec) []consensus.Member {
	list := slices.Clone(s.Update)
	for i := range list {
		list[i].PeerURLs = sorted(list[i].PeerURLs)
	}
	slices.SortFunc(list, func(a, b consensus.Member) int { return strings.Compare(a.ID.String(), b.ID.String()) })
	return list
}

func pick(ids []consensus.MemberID, which func(consensus.MemberID) bool) []consensus.MemberID {
	var picked []consensus.MemberID
	for _, id := range ids {
		if which(id) {
			picked = append(picked, id)
		}
	}
	return picked
}

// SameURLs reports whether two lists hold the same URLs, in any order.
func SameURLs(a, b []string) bool { return slices.Equal(sorted(a), sorted(b)) }

func sharedURL(a, b []string) string {
	for _, url := range a {
		if slices.Contains(b, url) {
			return url
		}
	}
	return ""
}
