package transport

import (
	"errors"

	"github.com/quorate/quorate/internal/base/level"
)

// Errors of the handshake, beside those of identity.Refusal. Both sides see them: the one that refuses, and as a grpc status
// the one that is refused.
var (
	ErrNewerVersion = level.Later("transport: peer speaks a later version of the protocol")
	ErrWrongMember  = errors.New("transport: another member answers at this address")
	ErrHandshake    = errors.New("transport: peer does not speak this protocol")
)

// Errors of use.
var (
	ErrClosed      = errors.New("transport: closed")
	ErrUnknownPeer = errors.New("transport: no such peer")
	ErrNoAddress   = errors.New("transport: peer has no usable URL")
	ErrNeedsTLS    = errors.New("transport: https URL needs TLS options")
	ErrBadURL      = errors.New("transport: bad URL")
	ErrAddressUsed = errors.New("transport: address already in use")
)

// Errors of what arrives.
var (
	ErrCorruptFrame = errors.New("transport: corrupt frame")
	ErrSilentPeer   = errors.New("transport: peer stopped answering")
	ErrLargeAnswer  = errors.New("transport: a false answer: it is larger than an honest one")
	ErrCut          = errors.New("transport: cut off by a fault hook")
)

// errOrderly ends a stream that one side closed on purpose: no member died.
var errOrderly = errors.New("transport: stream closed on purpose")
