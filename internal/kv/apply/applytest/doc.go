// Package applytest makes state machines for tests of other packages, on engines in memory.
//
// It is used by tests only. Any error fails the test.
package applytest
