package backup

import "errors"

// Errors of the decoders.
var (
	// ErrDamaged means that an object is not what its name says, or contradicts itself.
	ErrDamaged = errors.New("damaged")
	// ErrLater means that a later build wrote an object, in a form that this one does not know.
	ErrLater = errors.New("written by a later build: use that build")
	// ErrSealed means that an object is encrypted, and that no identity was given.
	ErrSealed = errors.New("it is encrypted: give the identity of one of its recipients")
	// ErrRecipients means that an object is encrypted to others than the identities that were given.
	ErrRecipients = errors.New("it is encrypted to other recipients: give the identity of one of those that it was written for")
)
