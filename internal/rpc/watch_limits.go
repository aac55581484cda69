package rpc

import (
	"bytes"
	"context"
	"sync/atomic"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/kv/watch"
	"github.com/quorate/quorate/internal/rpc/access"
)

// limits are the limits on what the client of a stream may read. They belong to the goroutine that sends.
type limits struct {
	by       auth.Credentials
	secret   []byte      // the secret that signed by's token
	again    atomic.Bool // a watch was permitted by an older state
	reviewed *auth.State // the state by which the watches were permitted last
	check    auth.Check  // by reviewed
	limited  bool        // some keys are not permitted
	ended    map[int64]withheld
}

// withheld says until when only the beginning and the end of a watch are sent.
type withheld uint8

const (
	untilRefused withheld = 1 // until the answer that a review made
	untilEnded   withheld = 2 // until any end: the client ends the watch
)

// lookupsOfWatcher is the number of lookups in roles that take about as long as a visit to a watcher.
const lookupsOfWatcher = 4

// review ends the watches that the client may not read any more, if users and roles have changed since the last review. Events
// from after a revocation are sent only after a review: this member applied the revocation before them.
func (l *limits) review(ctx context.Context, control *access.Control, watches *watch.Stream) {
	state := control.State()
	if again := l.again.Swap(false); state == l.reviewed && !again {
		return
	}
	l.reviewed, l.limited = state, false
	if !state.Enabled() {
		return
	}
	var err error
	// The token of a client that stays is not checked again: it may have expired since. Only disabling authentication ends it.
	if l.by.User == "" || !bytes.Equal(l.secret, state.Secret()) {
		l.secret = state.Secret()
		l.by, err = control.Caller(ctx)
	}
	check := state.Check(l.by)
	l.check, l.limited = check, err != nil || !check.Free()
	ended := watches.Review(func(key, end []byte) (cost int, refused error) {
		if err != nil {
			return 0, err
		}
		own := check // each watch is a request of its own, with its own MaxLookups
		refused = own.Read(key, end)
		return own.Lookups() / lookupsOfWatcher, refused
	})
	for id := range ended {
		l.end(id, untilRefused)
	}
}

func (l *limits) end(id int64, until withheld) {
	if l.ended == nil {
		l.ended = map[int64]withheld{}
	}
	l.ended[id] = until
}

// withholds reports whether a response must not be sent. It was made before the last review: it has events that the client may
// not see any more, or comes after such events of the same watch, which would leave a gap.
func (l *limits) withholds(r *watch.Response) bool {
	until, ended := l.ended[r.WatchID]
	switch {
	case ended && r.Canceled && !r.Created && (until == untilEnded || r.Err != nil):
		delete(l.ended, r.WatchID)
		return false
	case r.Created || r.Canceled:
		return false
	case ended, r.WatchID == watch.NoID && len(l.ended) > 0: // the client did not get all events
		return true
	case r.Batch == nil || !l.limited:
		return false
	}
	for i := range r.Batch.Events {
		if l.check.Read(r.Batch.Events[i].KV.Key, nil) != nil {
			l.end(r.WatchID, untilEnded)
			return true
		}
	}
	return false
}
