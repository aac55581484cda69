// Package command holds what the subcommands of quorate share: the streams and exit statuses of a command line, the
// connection to a cluster with its flags, the text of errors, and output as tables, JSON or YAML.
//
// It knows no subcommand: internal/ctl and internal/ctl/member build them from its parts. The main type is Connection.
//
// Invariants:
//  1. Results go to the output, everything else to the error stream.
//  2. An error that a command returns is one message, with the status to exit with: see Failure.
//  3. A request ends early if no process listens at any endpoint, and says so.
//
// A Connection belongs to one command, which one goroutine runs.
package command
