package dev

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
)

// checkPorts reports the first port that another process listens on, and which one that is.
func checkPorts(seats []seat) error {
	for _, s := range seats {
		for _, use := range []struct {
			port int
			what string
		}{{s.clientPort, "clients"}, {s.peerPort, "peers"}, {s.consolePort, "the console"}} {
			l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(use.port))
			if err == nil {
				l.Close()
				continue
			}
			if !errors.Is(err, syscall.EADDRINUSE) {
				return fmt.Errorf("port %d (%s of %s): %w", use.port, use.what, s.name, err)
			}
			owner := portOwner(use.port)
			if owner == "" {
				owner = "another process"
			}
			return &refusal{ErrPortTaken, fmt.Sprintf("port %d, for %s of %s, is taken by %s: stop it, or choose "+
				"another --base-port", use.port, use.what, s.name, owner)}
		}
	}
	return nil
}
