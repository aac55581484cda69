// Package auth is the users, roles and permissions of a cluster as replicated state: how changes alter them, and what each
// user may do. It has etcd's rules (auth API of etcd 3.7); where etcd's answers leave a choice, an error is preferred to
// access.
//
// A State is never changed: Next returns the one after a change, and what of it must be written. So readers keep one State for
// as long as they need it, and compare it with the present one if they must know that nothing changed.
//
// A State also has the join tokens, by which processes become members while users must log in.
//
// The package does not know passwords, only their hashes: hashing is slow, and is done before a change is proposed. Tokens and
// certificates are package auth/login's; which keys a command touches is package kv/apply's.
//
// Invariants:
//  1. Credentials name a user and the revision at which it was authenticated. A user that is not in the State is refused, and
//     so is one that was authenticated before it was added, or before it got its present password. No other
//     change invalidates credentials: the State that checks says what the user may do. (etcd refuses any older revision.)
//  2. A range is permitted if the union of what the user's roles permit covers it: no byte more.
//  3. While authentication is enabled there is a user root that has the role root.
//  4. Next is a function of State and Change. It uses no clock, no randomness and no order of a map.
//  5. A State takes no more than MaxBytes.
//
// A State may be used by several goroutines.
package auth
