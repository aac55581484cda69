// Package invariant holds the assertions that stay on in production.
//
// A broken invariant means that the state of the member is wrong; going on would spread the damage. So it panics, with a
// message that names the invariant and the values, and the process ends. Use it for what no input can cause.
package invariant

import "fmt"

// True panics unless ok is true. The format names the invariant and the values that break it.
func True(ok bool, format string, args ...any) {
	if !ok {
		Broken(format, args...)
	}
}

// Broken panics as True does. Where every write passes, ask for the law first and call Broken if it does not hold: True
// allocates its arguments also when it does.
func Broken(format string, args ...any) {
	panic("invariant broken: " + fmt.Sprintf(format, args...))
}
