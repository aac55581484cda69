// Package history is the command `quorate history`: the versions of a key, by whom and when each was written.
//
// It asks quorate.v1.History, and shows no more than that: what the cluster does not know, and the user may not learn, is said
// in words.
package history
