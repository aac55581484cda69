// Package slowsync starts a program whose syncs of files take longer, as on a slow disk. Linux only.
//
// A Disk is told of each call of fsync, fdatasync, syncfs and sync_file_range (package interpose), waits, and lets the call go
// on. So the sync still happens, only later; reads, writes and syncs of other files are not held up. Syncs at the same time
// wait at the same time, as on a network disk. A program that uses Start calls Main first thing in main.
package slowsync
