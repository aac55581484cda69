// Package broadcast wakes all goroutines that wait for something to change.
//
// A Signal carries no value: a goroutine that is woken looks again. To miss nothing, take the channel of Next before you look,
// and wait on it after that. It costs nothing while no goroutine waits. It is not a queue: several changes may wake a waiter
// once.
//
// The main type is Signal. Pause is the wait that nothing but time or a context ends.
//
// Invariant: a Send closes every channel that Next returned before it, and none that Next returns after it.
//
// All functions and methods may be called concurrently.
package broadcast
