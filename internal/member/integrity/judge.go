package integrity

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// Sample is one member's hash: of the chain of entries after index Base up to index At, or of the contents at revision
// At of a store that is compacted at revision Base.
type Sample struct {
	Member   consensus.MemberID
	Base, At uint64
	Sum      uint64
}

// Verdict is what the samples show about the members.
type Verdict struct {
	Corrupt   []consensus.MemberID // they differ from most voters that answered
	Undecided bool                 // voters differ, and no hash has a majority of them
}

// Judge compares the samples at the place (Base, At) that most voters answered for. A hash is right if more than half
// of these voters, and at least two, have it. A member with another hash is corrupt, learners included. If no hash is
// right, the verdict is Undecided.
func Judge(voters []consensus.MemberID, samples []Sample) Verdict {
	type place struct{ base, at uint64 }
	votes := map[place]int{}
	var best place
	for _, s := range samples {
		if slices.Contains(voters, s.Member) {
			p := place{s.Base, s.At}
			if votes[p]++; votes[p] > votes[best] {
				best = p
			}
		}
	}
	var v Verdict
	bySum := map[uint64]int{}
	var right uint64
	for _, s := range samples {
		if (place{s.Base, s.At}) == best && slices.Contains(voters, s.Member) {
			if bySum[s.Sum]++; bySum[s.Sum] > bySum[right] {
				right = s.Sum
			}
		}
	}
	if bySum[right] < 2 || 2*bySum[right] <= votes[best] {
		v.Undecided = len(bySum) > 1
		return v
	}
	for _, s := range samples {
		if (place{s.Base, s.At}) == best && s.Sum != right {
			v.Corrupt = append(v.Corrupt, s.Member)
		}
	}
	slices.Sort(v.Corrupt)
	return v
}

// lowest is the lowest place among samples, at most at. Members remember the chain at few indexes, and answer for the
// highest of them that they have applied.
func lowest(at uint64, samples []Sample) uint64 {
	for _, s := range samples {
		at = min(at, s.At)
	}
	return at
}

// CorruptMembers returns the members that alarms name. all reports whether an alarm names no member in particular: then no
// member may serve.
func CorruptMembers(alarms []kv.Alarm) (members []consensus.MemberID, all bool) {
	for _, a := range alarms {
		switch {
		case a.Kind != kv.AlarmCorrupt:
		case a.Member == 0:
			all = true
		default:
			members = append(members, consensus.MemberID(a.Member))
		}
	}
	return members, all
}

// Marked reports whether an alarm names the member, or no member in particular. Then it must not answer from its state.
func Marked(alarms []kv.Alarm, id consensus.MemberID) bool {
	members, all := CorruptMembers(alarms)
	return all || slices.Contains(members, id)
}
