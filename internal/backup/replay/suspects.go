package replay

import (
	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/history"
)

// suspect is a segment whose entries did not have the cluster's sums on a base, while others have the same entries: the base is
// tried without the segment first. Somebody who can write to the place may have put it.
type suspect struct {
	base, segment backup.Hash
	err           error
	cleared       bool
}

type suspects []suspect

// add leaves a segment out; false: it was left out for this base before, or nothing else leads on from that to the target.
func (all *suspects) add(look *history.Search, base *backup.Base, segment backup.Hash, err error) bool {
	for _, one := range *all {
		if one.base == base.Hash && one.segment == segment {
			return false
		}
	}
	if !look.Suspect(base, segment) {
		return false
	}
	*all = append(*all, suspect{base: base.Hash, segment: segment, err: err})
	return true
}

// judge takes the suspects into the search as damaged: the base led to the target without them.
func (all suspects) judge(look *history.Search, base *backup.Base) {
	for _, one := range all {
		if one.base == base.Hash && !one.cleared {
			look.Leave(one.segment, one.err)
		}
	}
}

// clear takes the suspects back, if there are any.
func (all suspects) clear(look *history.Search) (any bool) {
	for i := range all {
		if one := &all[i]; !one.cleared {
			look.Clear(one.segment)
			one.cleared, any = true, true
		}
	}
	return any
}

// settled keeps a segment out, whatever is cleared later.
func (all suspects) settled(segment backup.Hash) {
	for i := range all {
		all[i].cleared = all[i].cleared || all[i].segment == segment
	}
}
