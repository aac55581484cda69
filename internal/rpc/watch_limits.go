package rpc

import (
	"bytes"
	"context"
	"sync/atomic"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/kv/watch"
	"github.com/quorate/quorate/internal/rpc/access"
)

// limits are what the client of a stream may not read any more. They belong to the sender.
type limits struct {
	by       auth.Credentials
	secret   []byte      // with which by's token was signed
	again    atomic.Bool // a watch was permitted by an older state
	reviewed *auth.State // by which the watches were permitted last
	check    auth.Check  // by reviewed
	limited  bool        // not everything is permitted
	ended    map[int64]withheld
}

// withheld says until when nothing of a watch is sent but that it begins and ends.
type withheld uint8

const (
	untilRefused withheld = 1 // the answer that a review made
	untilEnded   withheld = 2 // any end: the client ends the watch
)

// lookupsOfWatcher is how many lookups in roles take about as long as looking at a watcher.
const lookupsOfWatcher = 4

// review ends the watches of what the client may not read any more, if users and roles have changed since the last time. What
// was put after a permission was revoked is sent only after a review: this member knew of the one before the other.
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
	// The token of a client that stays is not asked for again: its time may be over since. That authentication was disabled
	// ends it.
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
		own := check // each watch is a request of its own, and MaxLookups holds for it alone
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

// withholds reports whether a response must not be sent. It was made before the last review: events that the client may not
// see any more, and then all others of that watch, for they would leave a gap.
func (l *limits) withholds(r *watch.Response) bool {
	until, ended := l.ended[r.WatchID]
	switch {
	case ended && r.Canceled && !r.Created && (until == untilEnded || r.Err != nil):
		delete(l.ended, r.WatchID)
		return false
	case r.Created || r.Canceled:
		return false
	case ended, r.WatchID == watch.NoID && len(l.ended) > 0: // nobody has got all events
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
