// Package env holds the interfaces that the simulator replaces, Clock, FS and Transport, and the real clock.
//
// Everything above takes these as parameters and never reaches for time.Now, os.Open or a socket by itself. FS has the methods
// that the product calls and no other library's types, so one virtual disk serves the WAL and the store, and a program that
// runs on WebAssembly can have one. Package storage/files has the real disk.
package env
