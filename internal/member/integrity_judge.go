package member

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
)

// stateSample is what a member says its state hashes to. Samples can be compared if they are of the same base and place: the
// chain of entries since Base up to At, or the contents at revision At that were compacted at Base.
type stateSample struct {
	Member   consensus.MemberID
	Base, At uint64
	Sum      uint64
}

// verdict is what samples say about the members that gave them.
type verdict struct {
	compared  int                  // members whose samples could be compared
	corrupt   []consensus.MemberID // they differ from most voters that answered
	undecided bool                 // voters differ, and no sum has most of them
}

// judge compares the samples that most voters can be compared by. A sum is right if more than half of the voters among
// these, and at least two, have it; who has another one, learners included, is corrupt. If no sum is right, nobody knows.
func judge(voters []consensus.MemberID, samples []stateSample) verdict {
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
	var v verdict
	bySum := map[uint64]int{}
	var right uint64
	for _, s := range samples {
		if (place{s.Base, s.At}) != best {
			continue
		}
		v.compared++
		if slices.Contains(voters, s.Member) {
			if bySum[s.Sum]++; bySum[s.Sum] > bySum[right] {
				right = s.Sum
			}
		}
	}
	if bySum[right] < 2 || 2*bySum[right] <= votes[best] {
		v.undecided = len(bySum) > 1
		return v
	}
	for _, s := range samples {
		if (place{s.Base, s.At}) == best && s.Sum != right {
			v.corrupt = append(v.corrupt, s.Member)
		}
	}
	slices.Sort(v.corrupt)
	return v
}
