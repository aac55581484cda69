// Package config turns flags, environment and a configuration file into one validated Config.
//
// It has no behaviour: it reads and validates what the operator asked for, but opens no socket and starts nothing.
// Names are etcd's wherever the meaning is etcd's, so that unit files, manifests and scripts written for etcd start
// Quorate unchanged. A setting that Quorate cannot honour is refused with its reason; it is ignored only if that does
// no harm.
//
// Every setting is one row of a table (see setting.go). The command line, the environment, the file, the help text and
// `quorate config print` are all derived from the row, so that each setting can be given in each way.
//
// Invariants:
//  1. flag > environment > default; a configuration file replaces flags and environment as a whole, as in etcd.
//  2. A Config that Load returns without an error has passed Validate.
//  3. All faults are reported together, in one error.
//  4. A configuration file may contain what WriteYAML prints, and it means the same there.
//
// A Config is a value: it may be copied, and it must not be changed after Load.
package config
