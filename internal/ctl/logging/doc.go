// Package logging writes log/slog records in the shape of zap's production encoder, which is what etcd's operators
// already parse:
//
//	{"level":"info","ts":"2026-05-01T12:00:00.000000Z","caller":"server/server.go:12","msg":"became leader","term":7}
//
// and, with the console format, as tab-separated lines for people. It is only an encoder and a choice of outputs; what
// is logged, and how much, is decided where it is logged. The main types are Handler, which makes a line of a record, and
// Sink, which keeps an output that blocks from blocking the goroutines that log.
//
// Invariants:
//  1. One record is one line: records of concurrent goroutines never mix.
//  2. Keys keep the order in which they were given.
//  3. A logger made by Open never waits for an output. Lines that an output does not take in time are dropped and counted.
//
// A Handler, a Sink and a Log may be used by any number of goroutines.
package logging
