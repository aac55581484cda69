package h2

import "sync"

const (
	// readBytes is how much is read at once; a frame of the largest size fits.
	readBytes = 32 << 10
	// waitBytes is the buffer in which an encrypted connection waits for what comes next.
	waitBytes = 1 << 10
)

var buffers = sync.Pool{New: func() any { return new([readBytes]byte) }}

// read hands what comes to take, which returns how much of it it has handled, until the connection ends. An idle connection
// keeps no large buffer.
func (c *conn) read(take func(p []byte) (used int, err error)) error {
	if c.raw != nil {
		return c.readSocket(take)
	}
	small := make([]byte, waitBytes)
	var large *[readBytes]byte
	defer func() {
		if large != nil {
			buffers.Put(large)
		}
	}()
	buffer, have := small, 0
	for {
		n, err := c.net.Read(buffer[have:])
		full := n == len(buffer)-have
		have += n
		used, failed := take(buffer[:have])
		if failed != nil {
			return failed
		}
		have = copy(buffer, buffer[used:have])
		if err != nil {
			return err
		}
		switch {
		case large == nil && (full || have > 0):
			large = buffers.Get().(*[readBytes]byte)
			have = copy(large[:], small[:have])
			buffer = large[:]
		case large != nil && have == 0 && !full:
			buffers.Put(large)
			buffer, large = small, nil
		}
	}
}
