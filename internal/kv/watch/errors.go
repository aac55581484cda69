package watch

import "errors"

// Reasons for which a watcher is not created, or is cancelled. Response.Err has one of them, kv.ErrCompacted for a negative
// start revision, or the error that the caller passed to Stream.Reject.
var (
	ErrDuplicateID = errors.New("watch: duplicate watch id on the stream")
	ErrEmptyRange  = errors.New("watch: range is empty")
	// ErrTooManyWatchers refuses a watcher to a client whose watchers use up Options.WatcherBytes.
	ErrTooManyWatchers = errors.New("watch: the client has too many watchers")
	// ErrLargeRevision cancels a watcher that wants previous pairs: those of one revision, which is not cut, are larger than
	// Options.RevisionBytes.
	ErrLargeRevision = errors.New("watch: the previous pairs of one revision are too large")
)

// ErrClosed is returned by a Stream after Close.
var ErrClosed = errors.New("watch: stream is closed")
