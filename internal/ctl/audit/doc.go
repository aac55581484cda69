// Package audit has the commands of `quorate audit`: the policy that says which calls members record, the heads of the
// members' chains of records, and the verification of files of records.
//
// The commands ask the native service Audit; package audit of the tree verifies. Verification reads files on this machine,
// and asks the cluster only for heads.
//
// Invariants:
//  1. Only `policy set` changes anything.
//  2. A file is read once, whatever its size, with a bound on each line.
package audit
