package wal

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/quorate/quorate/internal/base/level"
)

// Errors of opening and creating.
var (
	// ErrNoLog says that the directory holds no segment: this member has never run, or its log is lost.
	ErrNoLog = errors.New("wal: no log in directory")
	// ErrExists says that Create found a log.
	ErrExists = errors.New("wal: log exists already")
	// ErrCorrupt says that bytes that were durable are damaged or gone. Errors that match it are *CorruptError.
	ErrCorrupt = errors.New("wal: log is corrupt")
	// ErrNewerVersion says that a later build wrote this log. Nothing was changed.
	ErrNewerVersion = level.Later("wal: log was written by a later build: start that build, or a later one")
)

// Errors of a running log.
var (
	// ErrFailed says that an earlier write or sync failed. Only the next Open can tell what is on the disk.
	ErrFailed = errors.New("wal: failed earlier, restart the member")
	// ErrNoSpace says that the disk is full.
	ErrNoSpace = errors.New("wal: no space left")
	// ErrTooLarge says that one Append is larger than a record can be. Nothing was written, and the WAL can be used further.
	ErrTooLarge = errors.New("wal: append too large")
	// ErrClosed says that the WAL was closed.
	ErrClosed = errors.New("wal: closed")
)

// CorruptError names the place of the damage.
type CorruptError struct {
	File   string
	Offset int64
	Reason string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("%v: %s at offset %d: %s; nothing was changed. A member must not run on this log, nor on "+
		"an older copy of it: replace the member", ErrCorrupt, e.File, e.Offset, e.Reason)
}

// Is makes errors.Is(err, ErrCorrupt) hold.
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }

// explain recognizes a full disk, and adds the remedy to the error.
func explain(dir string, err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w on %s: free space and restart: %w", ErrNoSpace, dir, err)
	}
	return err
}
