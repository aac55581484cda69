// Package slowsync starts a program whose syncs of files take longer, as on a slow disk. Linux only.
//
// The program runs under a seccomp filter which stops each call of fsync, fdatasync, syncfs and sync_file_range and tells a
// Disk (seccomp_unotify(2)). The Disk waits, and lets the call go on. So the sync still happens, only later; reads, writes and
// syncs of other files are not held up. Syncs at the same time wait at the same time, as on a network disk.
//
// The filter must be there before the program begins: Start runs this executable again under another name, which sets the
// filter and becomes the program. A program that uses Start calls Main first thing in main.
package slowsync
