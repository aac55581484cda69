package page

import (
	"fmt"
	"runtime/debug"
)

// Go runs a function in a goroutine of its own, for a page that does several things at once. wait returns once the function has
// ended, and panics if the function did, with its stack: the console catches that where it loads the section. Elsewhere a panic
// would end the member.
func Go(run func()) (wait func()) {
	ended, fault := make(chan struct{}), ""
	go func() {
		defer close(ended)
		defer func() {
			if cause := recover(); cause != nil {
				fault = fmt.Sprintf("%v\n\n%s", cause, debug.Stack())
			}
		}()
		run()
	}()
	return func() {
		<-ended
		if fault != "" {
			panic(fault)
		}
	}
}
