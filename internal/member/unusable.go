package member

import (
	"errors"

	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/kv/mvcc"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/snapshot"
	"github.com/quorate/quorate/internal/storage/wal"
)

// ErrDamaged means that a part of a data directory is missing, or does not fit the rest.
var ErrDamaged = errors.New("this data directory is damaged")

// Unusable reports whether err says that a data directory is damaged, incomplete or too old for its member to run on it. Only
// a new member cures that. A single file that is put back from a copy may hide what the member acknowledged since.
func Unusable(err error) bool {
	for _, damage := range []error{
		ErrDamaged, ErrRolledBack, wal.ErrCorrupt, wal.ErrNoLog, snapshot.ErrStoreMissing, snapshot.ErrCorrupt,
		engine.ErrCorrupt, apply.ErrCorruptRow, mvcc.ErrCorruptRow,
	} {
		if errors.Is(err, damage) {
			return true
		}
	}
	return false
}
