package apply

import (
	"errors"

	"github.com/quorate/quorate/internal/base/level"
)

// Operating errors.
var (
	ErrNotBootstrapped = errors.New("apply: the store belongs to no cluster yet")
	ErrBootstrapped    = errors.New("apply: the store belongs to a cluster already")
	ErrNewer           = level.Later("apply: the store was written by a later build")
	ErrCorruptRow      = errors.New("apply: row does not decode")
	ErrBadEntry        = errors.New("apply: entry does not decode")
	// ErrLaterEntry stops a member, as ErrUnknownCommand does.
	ErrLaterEntry = level.Later("apply: a member of a later build has put an entry into the log that this build does not " +
		"know, and passing over it would make this member differ from the others: start this member with their build")
	// ErrUnknownCommand stops a member. Nothing of the entry is applied on it.
	ErrUnknownCommand = level.Later("apply: a member of a later build has put a command into the log that this build does " +
		"not know, and passing over it would make this member differ from the others: start this member with their build")
)
