//go:build !unix

package h2

import "syscall"

// Elsewhere sockets are read and written as encrypted connections are: conn.raw is nil.
const rawSockets = false

func (c *conn) readSocket(func(p []byte) (used int, err error)) error { return nil }

func atEnd(syscall.RawConn) bool { return false }

func writeNow(syscall.RawConn, []byte) (n int, err error) { return 0, nil }
