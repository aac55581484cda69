package h2

import "time"

// bandwidthPing is what grpc-go puts into the pings by which it measures bandwidth.
const bandwidthPing = "\x02\x04\x10\x10\x09\x0e\x07\x07"

// bandwidthAnswer is the answer to such a ping, which waits (see package rpc/pingack for why): a tenth of a second, or until
// enough was written.
type bandwidthAnswer struct {
	waits bool
	since time.Time
	timer *time.Timer
}

const (
	answerPatience = 100 * time.Millisecond
	answerBytes    = 16 << 10
)

// bandwidth takes a ping of bandwidth.
func (c *conn) bandwidth(now time.Time) {
	a := &c.answer
	if a.waits { // no client asks again before it was answered
		c.out = appendPing(c.out, flagAck, []byte(bandwidthPing))
		return
	}
	a.waits, a.since = true, now
	if a.timer == nil {
		a.timer = time.AfterFunc(answerPatience, func() {
			c.mu.Lock()
			c.flush()
			c.mu.Unlock()
		})
		return
	}
	a.timer.Reset(answerPatience)
}

// append adds the answer to dst, beside which more bytes are written.
func (a *bandwidthAnswer) append(dst []byte, more int, now func() time.Time) []byte {
	if !a.waits || len(dst)+more < answerBytes && now().Sub(a.since) < answerPatience {
		return dst
	}
	a.waits = false
	a.timer.Stop()
	return appendPing(dst, flagAck, []byte(bandwidthPing))
}

func (a *bandwidthAnswer) stop() {
	if a.timer != nil {
		a.timer.Stop()
	}
}
