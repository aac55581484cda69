//go:build unix

package h2

import (
	"io"
	"syscall"
)

const rawSockets = true

// readSocket is read for a connection that is not encrypted.
//
// All is read within one call, so that it can wait for the next bytes without asking for them in vain first: a read that
// did not fill the buffer has taken all there was, and what came since wakes the waiting one (epoll(7), edge-triggered). But
// the end of the connection wakes no goroutine again if it came with those bytes. So only after requests is the next read left
// out: writing their answers finds out, or Server.watch does.
func (c *conn) readSocket(take func(p []byte) (used int, err error)) error {
	var failed error
	var kept []byte // of a frame that is not there in full
	err := c.raw.Read(func(fd uintptr) bool {
		buffer := buffers.Get().(*[readBytes]byte)
		defer buffers.Put(buffer)
		have := copy(buffer[:], kept)
		for {
			n, err := syscall.Read(int(fd), buffer[have:])
			switch {
			case err == syscall.EINTR:
				continue
			case err == syscall.EAGAIN:
				kept = keep(kept, buffer[:have])
				return false
			case err != nil:
				failed = err
				return true
			case n == 0:
				failed = io.EOF
				return true
			}
			full := n == len(buffer)-have
			have += n
			used, err := take(buffer[:have])
			if err != nil {
				failed = err
				return true
			}
			have = copy(buffer[:], buffer[used:have])
			if !full && c.answers() {
				kept = keep(kept, buffer[:have])
				return false
			}
		}
	})
	if failed != nil {
		return failed
	}
	return err
}

func keep(kept, p []byte) []byte {
	if len(p) == 0 {
		return nil
	}
	return append(kept[:0], p...)
}

// atEnd reports whether there is nothing to read any more.
func atEnd(raw syscall.RawConn) bool {
	end := false
	var b [1]byte
	err := raw.Control(func(fd uintptr) {
		n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		end = n == 0 && err == nil
	})
	return end || err != nil
}

// writeNow writes as much as fits into the buffer of the socket.
func writeNow(raw syscall.RawConn, p []byte) (n int, err error) {
	var failed error
	err = raw.Write(func(fd uintptr) bool {
		n, failed = syscall.Write(int(fd), p)
		return true
	})
	switch {
	case err != nil:
		return 0, err
	case failed == syscall.EAGAIN || failed == syscall.EINTR:
		return 0, nil
	case failed != nil:
		return 0, failed
	}
	return n, nil
}
