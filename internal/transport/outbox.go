package transport

import (
	"slices"
	"sync"

	"github.com/quorate/quorate/internal/consensus"
)

// limits bound what waits for a peer. A message larger than largest is dropped.
type limits struct{ messages, bytes, largest int }

// detachedLimits hold while no stream is up: enough for the first votes of a cluster that starts, and little enough
// that a dead peer pins nothing.
var detachedLimits = limits{messages: 64, bytes: 1 << 20, largest: maxFrameBytes}

// outbox is the bounded queue in front of one sender. The sender takes everything that waits at once, so that messages form
// batches without waiting for a batch to fill.
type outbox struct {
	wake chan struct{} // capacity one; set whenever something waits
	// hold, if set, counts what waits, and what was taken until it was sent; memory is not kept for what comes next then.
	hold func(more int64)

	mu       sync.Mutex
	limits   limits
	attached bool
	closed   bool
	messages []consensus.Message
	bytes    int
	pongs    []uint64
	dropped  uint64
	counted  int64 // by hold, of what waits
	taken    int64 // by hold, of what was taken
}

func newOutbox(l limits) *outbox {
	return &outbox{wake: make(chan struct{}, 1), limits: l}
}

// add queues those of messages that are meant for to and returns how many they were.
func (o *outbox) add(messages []consensus.Message, to consensus.MemberID) int {
	o.mu.Lock()
	matched, before := 0, len(o.messages)
	for i := range messages {
		if messages[i].To == to {
			matched++
			o.addLocked(&messages[i])
		}
	}
	wake := len(o.messages) != before
	o.mu.Unlock()
	if wake {
		o.signal()
	}
	return matched
}

// addOne queues one message.
func (o *outbox) addOne(m *consensus.Message) {
	o.mu.Lock()
	before, more := len(o.messages), int64(0)
	o.addLocked(m)
	if o.hold != nil && len(o.messages) > before {
		more = int64(consensus.MessageSize + m.SizeBytes())
		o.counted += more
	}
	o.mu.Unlock()
	o.signal()
	if more > 0 {
		o.hold(more)
	}
}

func (o *outbox) addLocked(m *consensus.Message) {
	size := m.SizeBytes()
	if o.closed {
		o.dropped++
		return
	}
	if !o.attached && (len(o.messages) >= detachedLimits.messages || o.bytes+size > detachedLimits.bytes) {
		// No stream is up: drop the older messages, which are worth less.
		o.dropAllLocked()
	}
	// One message always fits, however full it is: otherwise it could never be sent at all.
	full := len(o.messages) >= o.limits.messages || o.bytes+size > o.limits.bytes
	if (full && len(o.messages) > 0) || size > o.limits.largest {
		o.dropped++
		return
	}
	o.messages = append(o.messages, *m)
	o.bytes += size
}

// outdate drops appends of terms before this one, which no peer that knows it will take, so that nothing waits behind them.
// Leaders that step down on a narrow link may have megabytes of them.
func (o *outbox) outdate(term consensus.Term) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.messages = slices.DeleteFunc(o.messages, func(m consensus.Message) bool {
		old := m.Kind == consensus.MsgAppend && m.Term < term
		if old {
			o.bytes -= m.SizeBytes()
			o.dropped++
		}
		return old
	})
}

func (o *outbox) dropAllLocked() {
	o.dropped += uint64(len(o.messages))
	clear(o.messages)
	o.messages, o.bytes = o.messages[:0], 0
}

// addPong queues the answer to a ping.
func (o *outbox) addPong(number uint64) {
	o.mu.Lock()
	// A peer that pings without reading gets the newest answers only.
	if len(o.pongs) >= 64 {
		o.pongs = o.pongs[:0]
	}
	o.pongs = append(o.pongs, number)
	o.mu.Unlock()
	o.signal()
}

func (o *outbox) signal() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// take returns everything that waits. The slices given in, emptied by the caller, become the next queue.
func (o *outbox) take(messages []consensus.Message, pongs []uint64) ([]consensus.Message, []uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.hold != nil {
		messages = nil
	}
	messages, o.messages = o.messages, messages[:0]
	pongs, o.pongs = o.pongs, pongs[:0]
	o.bytes = 0
	o.taken, o.counted = o.taken+o.counted, 0
	return messages, pongs
}

// sent says that what was taken is no longer held.
func (o *outbox) sent() {
	o.mu.Lock()
	less := o.taken
	o.taken = 0
	o.mu.Unlock()
	if less > 0 {
		o.hold(-less)
	}
}

// attach tells whether a stream is up. Messages that waited when a stream broke stay, within the detached limits.
func (o *outbox) attach(up bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.attached = up
	if !up {
		o.pongs = o.pongs[:0]
		if len(o.messages) > detachedLimits.messages || o.bytes > detachedLimits.bytes {
			o.dropAllLocked()
		}
	}
}

// close drops what comes from now on; what waits may still be sent.
func (o *outbox) close() {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.signal()
}

func (o *outbox) isClosed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.closed
}

// discard counts messages that were taken but could not be sent.
func (o *outbox) discard(n int) {
	o.mu.Lock()
	o.dropped += uint64(n)
	o.mu.Unlock()
}

func (o *outbox) waiting() (messages, bytes int, dropped uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.messages), o.bytes, o.dropped
}
