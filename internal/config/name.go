package config

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/quorate/quorate/internal/base/printable"
)

// MaxNameBytes bounds the name of a member. kubeadm gives it the name of its node, which may have 253.
const MaxNameBytes = 255

// CheckName returns an error if a member may not get the name. It is shown wherever members are listed, so that it must not
// move a cursor or end a line. A configuration may hold other names: they are read, and printed without what cannot be.
func CheckName(name string) error {
	switch {
	case len(name) > MaxNameBytes:
		return fmt.Errorf("must have at most %d bytes", MaxNameBytes)
	case !utf8.ValidString(name) || printable.Text(name, MaxNameBytes) != name:
		return fmt.Errorf("%q must be printable text", name)
	case strings.ContainsAny(name, "=,"):
		return fmt.Errorf("%q must not contain = or ,", name)
	}
	return nil
}
