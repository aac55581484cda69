// Package snapshot is `quorate snapshot`: save the contents of a cluster to a file, look into such a file, and make the data
// directory of a new member from one.
//
// The files have etcd's format. Reading them is package storage/etcdbackup's; restoring is the server's, which the program
// hands in as a Restorer. The main function is New.
//
// Invariants:
//  1. A file of the wanted name is always a whole snapshot: save writes beside it, and renames what was verified and synced.
//  2. save replaces nothing but a snapshot.
//
// Nothing here is called concurrently.
package snapshot
