package h2

import "time"

// leaving is how a connection ends whose calls are to end first (RFC 9113, section 6.8). The first GOAWAY names no stream, so
// that requests that are on their way are served; the second one, after the client must have read the first, names the last.
type leaving struct {
	begun bool
	final bool // no new streams are served
	timer *time.Timer
	// parted says that all calls have ended, and that the client is to close the connection.
	parted bool
}

const (
	// leavingPing is what the ping holds whose answer says that the client has read the first GOAWAY.
	leavingPing = "quorate!"
	// leavingPatience is how long that may take.
	leavingPatience = 2 * time.Second
	// lingering and lingeringBytes are for how long, and for how many bytes, a connection is kept for a client that is to read
	// why it ends, and to close it itself.
	lingering      = time.Second
	lingeringBytes = 1 << 20
	// lingeringPause is how long it is not read after it was.
	lingeringPause = 10 * time.Millisecond
)

func (l *leaving) stop() {
	if l.timer != nil {
		l.timer.Stop()
	}
}

// goAway begins to end a connection.
func (c *conn) goAway() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leaving.begun || c.ended {
		return
	}
	if c.leaving.begun = true; !c.hello { // it has no calls
		c.abort()
		return
	}
	c.out = appendGoAway(c.out, maxStreamID, NoError, "")
	c.out = appendPing(c.out, 0, []byte(leavingPing))
	c.leaving.timer = time.AfterFunc(leavingPatience, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.leave()
	})
	c.flush()
}

// leave ends a connection once its calls have ended. It is locked.
func (c *conn) leave() {
	if !c.leaving.begun || c.leaving.final || c.ended {
		return
	}
	c.leaving.stop()
	c.leaving.final = true
	c.out = appendGoAway(c.out, c.last, NoError, "")
	c.flush()
}

// part leaves it to the client to close a connection on which everything was said, for a while. It is locked.
func (c *conn) part() {
	if c.leaving.final && len(c.streams) == 0 && !c.leaving.parted {
		c.leaving.parted = true
		if c.net.SetReadDeadline(time.Now().Add(lingering)) != nil {
			c.abort()
		}
	}
}
