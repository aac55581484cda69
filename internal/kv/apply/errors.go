package apply

import "errors"

// Operating errors.
var (
	ErrNotBootstrapped = errors.New("apply: the store belongs to no cluster yet")
	ErrBootstrapped    = errors.New("apply: the store belongs to a cluster already")
	ErrNewer           = errors.New("apply: the store was written by a newer version")
	ErrOlder           = errors.New("apply: the store was written by a pre-release that this version cannot read; " +
		"start the version that wrote it, or replace this member")
	ErrCorruptRow = errors.New("apply: row does not decode")
	ErrBadEntry   = errors.New("apply: entry does not decode")
)
