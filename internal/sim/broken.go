package sim

import "github.com/quorate/quorate/internal/sim/breaks"

// ErrUnknownBreak is returned for the name of a negative control that there is not.
var ErrUnknownBreak = breaks.ErrUnknown

// Break is a negative control: with it, the checkers must find something.
type Break = breaks.Break

// Breaks lists the negative controls.
func Breaks() []Break { return breaks.All() }
