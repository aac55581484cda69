package server

import (
	"net"
	"syscall"

	"github.com/quorate/quorate/internal/config"
)

// sockets is how this process opens its ports, with the options that it was started with. They are for TCP: a unix socket is
// a file, which one process owns.
func sockets(listen *config.Listen) *net.ListenConfig {
	if !listen.ReusePort && !listen.ReuseAddress {
		return &net.ListenConfig{}
	}
	return &net.ListenConfig{Control: func(network, _ string, conn syscall.RawConn) (err error) {
		if network == "unix" {
			return nil
		}
		failed := conn.Control(func(fd uintptr) { err = setReuse(fd, listen.ReuseAddress, listen.ReusePort) })
		if failed != nil {
			return failed
		}
		return err
	}}
}
