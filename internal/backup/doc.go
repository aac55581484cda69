// Package backup has the forms of a continuous backup: the names and bytes of what lies in a place for objects (package
// storage/objects), the catalog that a list of names makes, and the plan of a restore.
//
//	obj/CLUSTER/SHA256               a file of a checkpoint of the store
//	base/CLUSTER/…-INDEX-….json      a manifest: the files of one checkpoint, and the entry that it stands for
//	log/CLUSTER/…-FIRST-LAST-….ql    a segment: consecutive committed entries, packed
//	gap/CLUSTER/AFTER-UNTIL-….json   entries that no segment will ever hold
//	kept/CLUSTER/FLOOR-….json        up to which entry retention removed the log
//
// Each name ends with, or is, the SHA-256 of the content. So a name never has two contents, nothing is overwritten, members
// that ship at the same time write the same or add a branch, and a reader knows from the name alone what it must get. A point
// of the log is an index and the sum of the chain over all entries up to it (kv/apply, ChainMark). A restore goes from the
// point of a base along segments that begin where the one before ended, and applies what they hold: the state that comes out
// must have the chain's sums, entry by entry.
//
// It is pure: no clock, no I/O, no goroutine. Package ship decides what is written when, packages keep and
// prune what is removed, package replay restores.
//
// Invariants:
//  1. Whatever a place holds, a decoder returns what an encoder was given, or an error; memory is bounded by the constants
//     here.
//  2. A Plan is a path: each segment covers the entry after the point before it.
//
// See docs/adr/0086-continuous-backup.md; the bytes are drawn in docs/formats.md.
package backup
