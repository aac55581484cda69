// Package access authenticates the caller of a call, and refuses what that user may not do.
//
// A token in the call's metadata counts first, then, if clients must show certificates, the common name of the certificate. A
// call through the JSON gateway bears the gateway's certificate, which names no user (CVE-2018-16886).
//
// A write is checked again when it is applied (package kv/apply): here it is refused early, so that a user without rights
// cannot fill the log. A read is checked before, and once more after: users and roles may have changed meanwhile.
//
// This member may not know yet what another one has acknowledged: a user that was just added, a permission that was just given.
// So a refusal is final only after this member has caught up with the leader, if there is one.
//
// Invariants:
//  1. While this member knows that authentication is enabled, a caller that shows neither token nor certificate may only log
//     in, and ask for the status and the health.
//  2. A bad token is refused, also if there is a certificate.
//  3. Nothing is answered that the caller may not read by the State at the end of the reading.
//
// A Control may be used by several goroutines.
package access
