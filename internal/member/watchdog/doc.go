// Package watchdog detects important goroutines that make no progress.
//
// A member whose loop, log writer or state machine hangs answers no request, while its ports still accept connections;
// from outside it looks idle. A goroutine calls Begin before each piece of work and Idle when it waits for more.
// Stalled names the first goroutine whose present piece of work takes too long. It ends nothing: the caller decides
// what to do.
//
// All methods may be called concurrently. None of them waits.
package watchdog
