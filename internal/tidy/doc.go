// Package tidy holds the rules about the source tree as tests: layers, purity, sizes, names, words and sentences,
// package docs, links and references, flags, limits, dependencies, dead code, arrows between files.
//
// It has no code of its own. It is a statement of policy: if a rule fails, change the code that breaks it, not the rule. The
// tree is walked and parsed in this process; a version that asked the go command would let the test cache print a
// stale "ok".
package tidy
