// Package login authenticates users: it checks passwords, hands out tokens, and reads the user from a token or
// from a client's certificate. Package auth decides what that user may do.
//
// The main type is Login. It keeps no users: each call gets the State to judge by. Nothing that it hands out is replicated.
// A simple token is signed with the State's secret, so that every member can check it, also after a restart. A JWT is signed
// with a key from the files that --auth-token names; any process that has the key can make one, as with etcd.
//
// Invariants:
//  1. A wrong password, a user without one, and an unknown user give the same error after the same work: one comparison.
//     (A hash of another cost than the member's, from before --bcrypt-cost was changed, takes another time.)
//  2. Few hashes are computed at a time, at most maxWaiting wait, and more are refused. Logins have a line of their own, of
//     which one host gets a quarter: neither do they hold up changes of passwords, nor one host the logins of another.
//  3. A simple token is good as long as authentication was not enabled anew, its user is there with the same password, and it
//     was issued, or last used at this member, no longer ago than its TTL. Uses that are forgotten only shorten this, and so
//     do those within a hundredth of the TTL after one that is remembered.
//  4. A JWT is good if it is signed by the configured method and key, names a user and a revision, and is not expired. One
//     without expiry is refused.
//  5. While authentication is enabled, a token gives an error or names one user. No token leaves a call without a user, or
//     gives it all rights.
//  6. No error and no line of the log contains a password, a hash, a secret, a key or a token.
//
// A Login may be used by several goroutines.
package login
