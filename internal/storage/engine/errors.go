package engine

import (
	"errors"

	"github.com/quorate/quorate/internal/base/level"
)

// Errors that the operator or the caller can act upon; Open wraps them with a sentence that says what to do.
var (
	ErrCorrupt = errors.New("engine: store is corrupt")
	ErrNewer   = level.Later("engine: store was written by a later or different build")
	ErrNoSpace = errors.New("engine: disk is full")
	ErrClosed  = errors.New("engine: closed")
	ErrLocked  = errors.New("engine: store is in use by another process")
)
