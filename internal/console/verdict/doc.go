// Package verdict is the first page of the console: the doctor's finding that matters most, its cause, its evidence and its
// cure, then the others, and how the cluster is in a few numbers.
//
// The page judges as the command `quorate doctor` does (package internal/doctor), what the member that shows it has collected
// from all members (package observed). It silences nothing: mutes are files of the operator who keeps them.
//
// All functions may be called concurrently.
package verdict
