// Package controller is the shell around package decide: it reads what decisions depend on, performs the one action, and
// writes the status. It decides nothing about members itself.
//
// The shell reads from the API server, not from a cache, and names what it changes by the version or the UID that it read:
// an operator that was paused, or a second one, is refused. Pods of voters that work are evicted rather than deleted, so
// that the API server counts once more whether the others are ready.
package controller
