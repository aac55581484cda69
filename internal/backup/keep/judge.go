package keep

import (
	"fmt"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// knows reports whether members reported a base.
func (in *Input) knows(b *backup.BaseName) bool {
	for i := range in.Known {
		if k := &in.Known[i]; k.Hash == [32]byte(b.Hash) && consensus.Index(k.Index) == b.Index {
			return true
		}
	}
	return false
}

// since is the entry of the oldest base that is known: of bases before it nobody knows who made them.
func since(known []kv.BackupBase) consensus.Index {
	oldest := known[0].Index
	for i := range known {
		oldest = min(oldest, known[i].Index)
	}
	return consensus.Index(oldest)
}

// judge gives a base that members are not known to have made a state in which it replaces no other. A process that can write
// to the place can put a base there that looks whole.
func (in *Input) judge(b *Base) {
	switch {
	case len(in.Known) == 0 || b.State == Unreadable || in.knows(&b.BaseName):
	case b.Index >= since(in.Known):
		b.State = Strange
	case b.State == Whole && b.Taken != 0 && b.Taken > b.Time+late.Milliseconds():
		b.State = Late
	}
}

// intruder names a base that comes after the newest one that members made.
func (in *Input) intruder(fates []Fate) string {
	for i := range fates {
		f := &fates[i]
		if in.Newest == 0 || f.Epoch < in.Epoch || f.Epoch == in.Epoch && f.Index <= in.Newest {
			continue
		}
		return fmt.Sprintf("%v is of entry %d, and the newest base that this member knows of is of entry %d: unless another "+
			"member has just made it, somebody else writes to the place. Nothing is removed while it is there", &f.BaseName,
			f.Index, in.Newest)
	}
	return ""
}

// disorder names a base whose time does not fit those before it. Of two that members made, it was a clock that jumped.
func (in *Input) disorder(fates []Fate) string {
	var last *Fate // the one with the latest time, in this epoch
	for i := range fates {
		f := &fates[i]
		if f.State != Whole {
			continue
		}
		if last != nil && last.Epoch == f.Epoch && last.Index < f.Index && last.Time > f.Time+ahead.Milliseconds() &&
			!(in.knows(&last.BaseName) && in.knows(&f.BaseName)) {
			return fmt.Sprintf("%v is of %s, and %v, of an earlier entry, of %s: a clock was wrong, or somebody else wrote to "+
				"the place. Nothing is removed while both are there", &f.BaseName, backup.Time(f.Time), &last.BaseName,
				backup.Time(last.Time))
		}
		if last == nil || last.Epoch != f.Epoch || f.Time >= last.Time {
			last = f
		}
	}
	return ""
}
