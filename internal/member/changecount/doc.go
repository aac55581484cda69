// Package changecount counts the outcomes of the membership changes that a member has seen, for its metrics.
//
// The member reports to a Counter the configurations that come into force or are undone, and the entries that are applied. A
// Counter decides nothing, and starts from zero after a restart: entries that are applied again count again.
//
// All methods may be called concurrently.
package changecount
