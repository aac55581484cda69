// Package files has the machine's disk as an env.FS, and translates between env.FS and vfs.FS, Pebble's port to the disk.
//
// The directory of a member may be anybody's: a disk image, a copy. Disk opens no pipe, device or link in place of a file,
// which would wait for ever, or lead a member that writes elsewhere (regular.go).
//
// The real disk is Pebble's: it knows how each operating system syncs data, reserves space and locks a file. The translation
// adds an allocation to each open of a file, and none to a read, a write or a sync. A file system that was translated twice is
// the first one again, so Pebble has all that its own file systems can do.
package files
