package witness

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/internal/consensus"
)

// Blame counts, for each proposer, the records that this voter gave up because they were never proposed to the leader. A
// proposer with many strikes is barred for a time: the voter records nothing of it. Its ordinary proposals are not affected.
// Times are in ticks. The zero value is ready.
//
// Records that are given up within one episode are one strike: a crash of a proposer leaves many at once.
type Blame struct {
	owners []blamed // sorted by owner
}

// blamed is what is remembered of one proposer.
type blamed struct {
	owner   consensus.MemberID
	strikes int
	last    uint64 // time of the last strike
	until   uint64 // the end of its bar
}

const (
	// MaxBlamed is how many proposers are remembered; beyond, the one whose last strike is longest ago is forgotten.
	MaxBlamed = 256
	// The first freeStrikes strikes have no effect. The next bars for barredEpisodes episodes, and each further one for twice
	// as long, up to maxDoubled doublings.
	freeStrikes    = 2
	barredEpisodes = 8
	maxDoubled     = 8
	// After forgivenAfter times the longest bar without a strike, the strikes of a proposer are forgotten.
	forgivenAfter = 2
)

// Strike notes that a record of owner was given up. episode is how long the records of one crash take to be given up.
func (b *Blame) Strike(owner consensus.MemberID, now, episode uint64) {
	at, found := b.find(owner)
	if !found {
		if len(b.owners) >= MaxBlamed {
			b.forgetOne()
			at, _ = b.find(owner)
		}
		b.owners = slices.Insert(b.owners, at, blamed{owner: owner, strikes: 1, last: now})
		return
	}
	one := &b.owners[at]
	longest := episode * barredEpisodes << maxDoubled
	switch {
	case now < max(one.last+episode, one.until):
		return // the same episode, or a record from before the bar
	case now > one.last+forgivenAfter*longest:
		one.strikes = 0
	}
	one.strikes++
	one.last = now
	if over := one.strikes - freeStrikes; over > 0 {
		one.until = now + episode*barredEpisodes<<min(over-1, maxDoubled)
	}
}

// Bars reports whether owner is barred now.
func (b *Blame) Bars(owner consensus.MemberID, now uint64) bool {
	at, found := b.find(owner)
	return found && now < b.owners[at].until
}

// Len returns how many proposers are remembered.
func (b *Blame) Len() int { return len(b.owners) }

func (b *Blame) find(owner consensus.MemberID) (at int, found bool) {
	return slices.BinarySearchFunc(b.owners, owner, func(o blamed, id consensus.MemberID) int {
		return cmp.Compare(o.owner, id)
	})
}

func (b *Blame) forgetOne() {
	oldest := 0
	for i := range b.owners {
		if b.owners[i].last < b.owners[oldest].last {
			oldest = i
		}
	}
	b.owners = slices.Delete(b.owners, oldest, oldest+1)
}
