package kv

import (
	"encoding/binary"
	"sort"
)

// MomentOp ties revisions to a time. The leader proposes one now and then, since the state machine has no clock.
type MomentOp struct {
	Time   int64 // the fields of a Moment
	Member uint64
	Seen   Revision
}

// Moment is what a member's clock showed. Clocks are not believed: a Moment says which one told it, and those that follow each
// other may go back.
type Moment struct {
	Time   int64  // in milliseconds of Unix time, by the clock of Member
	Member uint64 // the leader that told it
	// Seen is the newest revision that Member had applied then: it, and all before it, were written before Time.
	Seen Revision
	// Noted is the newest revision when the state machine noted the Moment: all after it were written after Time.
	Noted Revision
}

// MostMomentTime is the latest time that a MomentOp may have, the end of the year 9999.
const MostMomentTime = 253402300799999

func (op *MomentOp) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, op.Member)
	dst = binary.AppendUvarint(dst, uint64(op.Time))
	return appendRevision(dst, op.Seen)
}

func (r *reader) moment() *MomentOp {
	op := &MomentOp{Member: r.uvarint()}
	time := r.uvarint()
	if time > MostMomentTime {
		r.fail()
		return nil
	}
	op.Time, op.Seen = int64(time), r.revision()
	return op
}

// Moments are in the order of the log. Seen rises from one to the next, Noted does not fall, and Time may be anything.
type Moments []Moment

// Of returns the last moment after which a revision was written, and the first one before which it was written; nil: there is
// none.
func (m Moments) Of(rev Revision) (after, before *Moment) {
	if i := sort.Search(len(m), func(i int) bool { return m[i].Noted >= rev }); i > 0 {
		after = &m[i-1]
	}
	if i := sort.Search(len(m), func(i int) bool { return m[i].Seen >= rev }); i < len(m) {
		before = &m[i]
	}
	return after, before
}

// UpTo returns the moments that have seen no later revision.
func (m Moments) UpTo(rev Revision) Moments {
	return m[:sort.Search(len(m), func(i int) bool { return m[i].Seen > rev })]
}

// At returns the last moment before the first one that shows a later time than this, and that first one; nil: there is none. By
// the clocks that told them, all revisions up to after.Seen were written before the time, and none beyond before.Noted. Of
// moments behind them, again is the last that shows no later time, which happens when clocks go back; nil: no clock did.
func (m Moments) At(time int64) (after, before, again *Moment) {
	i := 0
	for i < len(m) && m[i].Time <= time {
		i++
	}
	if i > 0 {
		after = &m[i-1]
	}
	if i == len(m) {
		return after, nil, nil
	}
	for j := len(m) - 1; j > i; j-- {
		if m[j].Time <= time {
			return after, &m[i], &m[j]
		}
	}
	return after, &m[i], nil
}
