package h2

import (
	"io"
	"syscall"

	"golang.org/x/sys/unix"
)

const vectors = true

// writeVectors writes what is in several places, as much as fits into the buffer of the socket; all of it, if wait is set.
func writeVectors(raw syscall.RawConn, from [][]byte, wait bool) (n int, err error) {
	var failed error
	err = raw.Write(func(fd uintptr) bool {
		for {
			k, err := unix.Writev(int(fd), from)
			switch {
			case err == syscall.EINTR:
				continue
			case err == syscall.EAGAIN:
				return !wait
			case err == nil && k <= 0:
				err = io.ErrUnexpectedEOF
			}
			if err != nil {
				failed = err
				return true
			}
			if n += k; !wait {
				return true
			}
			if from = behind(from, k); len(from) == 0 {
				return true
			}
		}
	})
	if err == nil {
		err = failed
	}
	return n, err
}

// behind is what is left of vectors behind the first n bytes.
func behind(from [][]byte, n int) [][]byte {
	for len(from) > 0 && n >= len(from[0]) {
		n -= len(from[0])
		from = from[1:]
	}
	if n > 0 {
		from[0] = from[0][n:]
	}
	return from
}
