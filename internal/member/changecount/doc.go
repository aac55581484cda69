// Package changecount counts how the membership changes ended that a member has seen, for its metrics.
//
// A Counter is told which configurations come into force and are undone, and which entries are applied. It decides
// nothing, and forgets everything at a restart: what is applied again then counts again.
//
// All methods may be called concurrently.
package changecount
