// Package golden keeps what release 1.0 has on disk and on the wire, and tests that today's build reads it and writes the same.
//
// testdata/1.0 has two kinds of files. bytes.txt is a table of encoded values: a command, a row, a record of the log, a file.
// Its twins for frames and calls between members lie beside the packages that write them (internal/transport, internal/member).
// The archives are data directories and backups, made by the engine and the log that ship, each with a dump of its contents.
//
// The files of 1.0 are never rewritten: a later form gets a set of its own beside them. `go test ./test/golden -rewrite`
// appends values of new kinds to the table and makes archives that are missing; it changes nothing that is there.
// docs/formats.md describes the forms and says how one may change.
//
// Invariants:
//  1. A value of the table that is encoded otherwise, or is gone, fails a test, whatever else changed.
//  2. Every kind of command, and every field of a replicated command and of a message, has a value in the table.
//  3. Every archive opens with today's build, holds what its dump says, and serves a read and a write; what the member wrote
//     has the numbers of forms, and the feature level, that it had before.
//  4. Today's build makes of the entries of each archive the state that 1.0 made, to the sum over all of them.
//
// The package has tests alone.
package golden
