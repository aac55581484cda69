package apply

import "errors"

// Operating errors.
var (
	ErrNotBootstrapped = errors.New("apply: the store belongs to no cluster yet")
	ErrBootstrapped    = errors.New("apply: the store belongs to a cluster already")
	ErrNewer           = errors.New("apply: the store was written by a newer version")
	ErrCorruptRow      = errors.New("apply: row does not decode")
	ErrBadEntry        = errors.New("apply: entry does not decode")
	// ErrUnknownCommand stops a member. Nothing of the entry is applied on it.
	ErrUnknownCommand = errors.New("apply: a member of a newer build has put a command into the log that this build does " +
		"not know, and passing over it would make this member differ from the others: start this member with their build")
)
