// Package trail writes records of calls to sinks: a file, the journal, syslog, a collector of OpenTelemetry.
//
// A Trail takes records from any goroutine, without waiting, into a queue of each sink, which has a bound in bytes. A Sink is
// a state machine over a Port: its one goroutine (Trail.Run) calls Turn, which chains what waits (package audit), writes it,
// looks each second whether the file is still the one that is written to, and tries again after an error. Tests call Turn
// themselves.
//
// A sink is best effort, or required. A best-effort sink drops what its queue has no room for, and says in the chain how much
// that was. While a required sink has not taken a record for longer than the deadline, or has no room left for the deadline,
// Trail.Admit refuses the calls that would be recorded, but for those of one exempt user. It takes calls again as soon as the
// sink has taken what waited.
//
// Invariants:
//  1. Offer and Admit wait for no disk and no other process.
//  2. A queue never holds more than its bound; what is lost is counted, and the chain says so.
//  3. The head that Sink.Head returns is of a record that is on disk.
//
// All methods but Turn and Head may be called concurrently; these two are for one goroutine.
package trail
