//go:build !unix || solaris || illumos

package server

import "errors"

// setReuse refuses what this system does not have, or has with another meaning.
func setReuse(uintptr, bool, bool) error {
	return errors.New("--socket-reuse-address and --socket-reuse-port are not supported on this system")
}
