// Package invariant holds the assertions that stay on in production.
//
// A broken law means that the member no longer knows what is true; going on would spread the damage. So it panics,
// with a message that names the law and the numbers, and the process ends. Use it for what no input can cause.
package invariant

import "fmt"

// True panics unless ok holds. The format names the law and the values that break it.
func True(ok bool, format string, args ...any) {
	if !ok {
		panic("invariant broken: " + fmt.Sprintf(format, args...))
	}
}
