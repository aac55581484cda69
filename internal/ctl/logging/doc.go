// Package logging writes log/slog records in the shape of zap's production encoder, which is what etcd's operators
// already parse:
//
//	{"level":"info","ts":"2026-05-01T12:00:00.000000Z","caller":"server/start.go:12","msg":"became leader","term":7}
//
// and, with the console format, as tab-separated lines for people. It is only an encoder and a choice of outputs; what
// is logged, and how much, is decided where it is logged. The main type is Handler.
//
// Invariants:
//  1. One record is one line and one Write: records of concurrent goroutines never mix.
//  2. Keys keep the order in which they were given.
//
// A Handler may be used by any number of goroutines.
package logging
