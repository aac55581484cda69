// Package audit says which calls are recorded, how a record looks, and how a file of records is verified.
//
// A Policy is a list of rules: the first that matches a call says at which Level it is recorded. The policy is replicated
// state, which package kv/apply keeps as bytes. An Event is what is known of one call; Body appends it as JSON, without values
// and passwords. A Chain makes lines of bodies: each line has a number and the sum of the line before it. Members write the
// head of their chain into the replicated state now and then, so that Verify finds a file that was cut or edited.
//
// The package has no clock, file or goroutine: package audit/trail writes, package rpc says what calls do.
//
// Invariants:
//  1. A record has no value of a key and no password, at any level.
//  2. A body has a bound, whatever a client sends: maxBody.
//  3. A line is one line: nothing that a client sends ends it.
//
// A Policy is not changed once it is parsed, and may be used by several goroutines; a Chain is one goroutine's.
package audit
