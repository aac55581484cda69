//go:build unix && !solaris && !illumos

package server

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// setReuse sets SO_REUSEADDR and SO_REUSEPORT of a socket that is not bound yet (socket(7)).
func setReuse(fd uintptr, address, port bool) error {
	if address {
		if err := unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
			return fmt.Errorf("--socket-reuse-address: %w", err)
		}
	}
	if port {
		if err := unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
			return fmt.Errorf("--socket-reuse-port: %w", err)
		}
	}
	return nil
}
