// Package env holds the ports that the simulator cuts: Clock, FS and Transport, and the real clock and disk.
//
// Everything above takes these as parameters and never reaches for time.Now, os.Open or a socket by itself. FS is
// Pebble's vfs.FS, so that one virtual disk serves the WAL and the store.
package env
