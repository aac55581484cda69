// Package backup is the command `quorate backup`: places where backups go.
//
// The place is opened by package storage/objects/place and tried by storage/objects/probe; this package has the flags and the
// words.
package backup
