package snapshot

import "errors"

var (
	// ErrCorrupt means that bytes do not agree with their checksum or that the stream ended early.
	ErrCorrupt = errors.New("snapshot: corrupt")
	// ErrForeign means that this is no snapshot, or one of a format that this program does not know.
	ErrForeign = errors.New("snapshot: foreign format")
	// ErrNoSpace means that the disk has less room than the snapshot needs.
	ErrNoSpace = errors.New("snapshot: not enough disk space")
	// ErrStoreMissing means that files were removed by hand.
	ErrStoreMissing = errors.New("snapshot: the store is missing: replace this member")
)
