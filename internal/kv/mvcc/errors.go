package mvcc

import (
	"errors"
	"fmt"

	"github.com/quorate/quorate/internal/kv"
)

// ErrCorruptRow means that a row of the engine does not decode: the store is damaged.
var ErrCorruptRow = errors.New("mvcc: corrupt row")

// ErrEnded means that long work was cut short because the store is being closed, or replaced by a snapshot.
var ErrEnded = errors.New("mvcc: the store is being closed or replaced by a snapshot: try again")

// LargeRevisionError means that the events of one revision, with their previous pairs, have more bytes than
// EventQuery.MaxRevisionBytes.
type LargeRevisionError struct{ Revision kv.Revision }

// Error implements error.
func (e *LargeRevisionError) Error() string {
	return fmt.Sprintf("mvcc: the events of revision %d are too large to be read at once", e.Revision)
}
