// Package datatest makes data directories in memory for tests, of a member of a small cluster, and what may be in them.
//
// It is used by tests only. Whatever goes wrong ends the test.
package datatest
