// Package datatest makes, for tests, data directories in memory of a member of a small cluster, and their contents.
//
// It is used by tests only. Any error fails the test.
package datatest
