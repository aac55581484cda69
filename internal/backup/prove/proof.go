package prove

import (
	"errors"
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/consensus"
)

// Proof is what a Run has found.
type Proof struct {
	At    backup.Head     // the newest state, which was restored
	Since consensus.Index // at which its chain begins: sums of chains that begin elsewhere cannot be compared
	// Base is the last one before which no base was left out: each of those after Options.After was compared, or lies behind a
	// gap of which there is a note. The next proof begins there.
	Base    backup.Base
	Bases   int     // that were compared with a replay of the log
	Entries int     // that were applied, and had the cluster's sums
	Damaged []error // objects that are missing, damaged, or differ, each once, though the newest state was restored by others
	Unknown int     // bases since Options.After that were not looked at: Options.Known
	Left    int     // bases that were not compared, since there was no memory for the log before them: Log
	Apart   int     // bases that were not compared, since the log before them leads to another state
	Holes   int     // notes of gaps that alone explain why the log before a base is not whole: no member said so
}

// UnknownError means that no base of which the cluster knows leads to the newest state, and that the place has others.
type UnknownError struct{ Bases int }

func (e *UnknownError) Error() string {
	return fmt.Sprintf("%d bases at the place are of no member of this cluster, as far as it knows, and were not looked at",
		e.Bases)
}

// LostError says that the log before a base is not whole, and that no note tells of a gap there, or of what retention removed.
type LostError struct {
	First consensus.Index // that no object has
	Base  *backup.Base
}

func (e *LostError) Error() string {
	return fmt.Sprintf("the log from entry %d on, before base %v: it was there, and no note tells that it is to be gone",
		e.First, &e.Base.BaseName)
}

// ErrContents means that a base has not the contents to which the log leads from the base before it.
var ErrContents = errors.New("its contents differ from what the log makes of the base before it")

// Verdict reports whether an error of Run says something of the backup, and nothing else: else the proof could not be tried.
func Verdict(err error) bool {
	return fetch.Verdict(err, func(part error) bool {
		unknown, lost := (*UnknownError)(nil), (*LostError)(nil)
		return errors.As(part, &unknown) || errors.As(part, &lost)
	})
}

// damaged reports whether an error is about an object that is missing, damaged, or differs.
func damaged(err error) bool {
	damage := (*fetch.DamageError)(nil)
	return errors.As(err, &damage)
}

// Add takes damage into a proof, each object once. That something does not lead to a state is left out where damage says why.
func (p *Proof) Add(found error) {
	parts := fetch.Parts(found)
	if damaged(found) {
		parts = slices.DeleteFunc(parts, func(part error) bool { return !damaged(part) })
	}
	for _, part := range parts {
		if !slices.ContainsFunc(p.Damaged, func(known error) bool { return objectOf(known) == objectOf(part) }) {
			p.Damaged = append(p.Damaged, part)
		}
	}
}

// objectOf names the object of which an error tells.
func objectOf(err error) string {
	if damage := (*fetch.DamageError)(nil); errors.As(err, &damage) {
		return damage.Name
	}
	return err.Error()
}
