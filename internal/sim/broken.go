package sim

import "github.com/quorate/quorate/internal/sim/breaks"

// Break is a negative control: with it, the checkers must find something.
type Break = breaks.Break

// Breaks lists the negative controls.
func Breaks() []Break { return breaks.All() }
