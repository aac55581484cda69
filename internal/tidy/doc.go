// Package tidy holds the rules of this house as a test: floors, purity, sizes, package docs, live links, dependencies.
//
// It has no code of its own. It is a statement of policy: a failing rule is mended where it was broken, not here. The
// tree is walked and parsed in this process; a version that asked the go command would let the test cache print a
// stale "ok".
package tidy
