package census

import (
	"bytes"

	"github.com/quorate/quorate/internal/kv"
)

// Survey is one step of a walk that divides an interval:
//
//	s, due := c.Begin()
//	take an iterator, and then s.Floor = the compact revision
//	for each key of s.Span, in order { if s.Add(key, versions, ...) { break } }
//	c.Finish(s, the end of the span was reached)
type Survey struct {
	Span     Span
	Revision kv.Revision // versions after it are not counted
	Floor    kv.Revision // versions before it, but for the newest, are not needed

	target  int
	parts   []found // the last is not complete
	lastKey []byte
	cut     string // where the walk ended, if it did not reach the end of the span

	journal      []Change // applied since Begin
	journalBytes int
	void         bool
}

// Bounds of a step.
const (
	partsAtOnce     = 2
	rowsOfKey       = 8 // an interval of keys with more versions has fewer keys
	maxBoundLen     = 1 << 10
	maxJournal      = 4096
	maxJournalBytes = 1 << 20
)

// Version is a state of a key from a revision on: it exists, or it does not.
type Version struct {
	Revision kv.Revision
	Live     bool
}

// note keeps a change that the walk does not see.
func (s *Survey) note(change *Change) {
	key := change.Key
	if s.void || string(key) < string(s.Span.Key) || !isOpen(s.Span.End) && string(key) >= string(s.Span.End) {
		return
	}
	s.journalBytes += len(key)
	if len(s.journal) == maxJournal || s.journalBytes > maxJournalBytes {
		s.void, s.journal = true, nil
		return
	}
	s.journal = append(s.journal, Change{Key: bytes.Clone(key), Revision: change.Revision, Born: change.Born})
}

// Add adds the next key with its versions, newest first, none of them after s.Revision. The first one at or below s.Floor is
// the last; whole is false if there are older ones that were not read. It returns true, and does not add the key, if the step
// is done.
func (s *Survey) Add(key []byte, versions []Version, whole bool) (enough bool) {
	part := &s.parts[len(s.parts)-1]
	if part.keys >= s.target || part.rows >= rowsOfKey*s.target {
		if bound := separator(s.lastKey, key); len(bound) <= maxBoundLen {
			if len(s.parts) == partsAtOnce {
				s.cut = string(bound)
				return true
			}
			s.parts = append(s.parts, found{bound: string(bound)})
			part = &s.parts[len(s.parts)-1]
		}
	}
	s.lastKey = append(s.lastKey[:0], key...)
	part.keys++
	part.rows += len(versions)
	part.floor = max(part.floor, s.Floor)
	part.add(versions, whole, s.Floor)
	return false
}

// add counts a key and finds its creations and deletions.
func (f *found) add(versions []Version, whole bool, floor kv.Revision) {
	for i, v := range versions {
		if i == 0 && v.Live {
			f.count++
		}
		if i > 0 && v.Revision == versions[i-1].Revision {
			continue // one command changed the key more than once: the last change counts
		}
		if v.Revision <= floor {
			return
		}
		before := i + 1
		for before < len(versions) && versions[before].Revision == v.Revision {
			before++
		}
		lived := before < len(versions) && versions[before].Live
		if before == len(versions) && !whole {
			f.floor = max(f.floor, v.Revision)
			return
		}
		if lived != v.Live {
			f.changes = append(f.changes, change{v.Revision, v.Live})
		}
	}
}

// separator returns the shortest key that is above a and not above b.
func separator(a, b []byte) []byte {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return b[:min(n+1, len(b))]
}
