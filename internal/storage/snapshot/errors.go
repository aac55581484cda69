package snapshot

import (
	"errors"

	"github.com/quorate/quorate/internal/base/level"
)

var (
	// ErrCorrupt means that bytes do not agree with their checksum or that the stream ended early.
	ErrCorrupt = errors.New("snapshot: corrupt")
	// ErrForeign means that this is no snapshot, and no file of this program.
	ErrForeign = errors.New("snapshot: foreign format")
	// ErrNewer means that a later build wrote it in a form that this build does not know.
	ErrNewer = level.Later("snapshot: written by a later build: start that build, or a later one")
	// ErrNoSpace means that the disk has less room than the snapshot needs.
	ErrNoSpace = errors.New("snapshot: not enough disk space")
	// ErrStoreMissing means that files were removed by hand.
	ErrStoreMissing = errors.New("snapshot: the store is missing: replace this member")
)
