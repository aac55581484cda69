// Package watchdog tells whether the goroutines that everything depends on make progress.
//
// A member whose loop, log or state machine hangs answers nobody, while its ports still accept connections. Only this
// tells it from a member that is idle. A goroutine calls Begin before each piece of work and Idle when it waits for
// more. Stalled names the first that has been at one piece of work for too long. Nothing is ended: what to do about it
// is up to the caller.
//
// All methods may be called concurrently. None of them waits.
package watchdog
