package fetch

import (
	"errors"

	"github.com/quorate/quorate/internal/backup"
)

// Verdict reports whether an error says, in each of its parts, that a backup is damaged or does not lead to a state. An error
// that has another part, too, as where the place went away after damage was found, says nothing of what the place holds
// otherwise. also, if set, says which further errors are of the backup.
func Verdict(err error, also func(error) bool) bool {
	for _, part := range Parts(err) {
		damage, unreachable := (*DamageError)(nil), (*backup.UnreachableError)(nil)
		if !errors.As(part, &damage) && !errors.As(part, &unreachable) && (also == nil || !also(part)) {
			return false
		}
	}
	return err != nil
}

// Parts returns the errors that were joined to one, with what a DamageError wraps as its part.
func Parts(err error) (parts []error) {
	switch e := err.(type) {
	case nil:
		return nil
	case *DamageError:
	case interface{ Unwrap() []error }:
		for _, part := range e.Unwrap() {
			parts = append(parts, Parts(part)...)
		}
		return parts
	case interface{ Unwrap() error }:
		if parts = Parts(e.Unwrap()); len(parts) > 1 {
			return parts
		}
	}
	return []error{err}
}
