// Package config turns flags, environment and a configuration file into one validated Config.
//
// It is not a place for behaviour: it knows what the operator asked for, and whether that can be true, but opens no
// socket and starts nothing. The names are etcd's wherever the meaning is etcd's, so that unit files, manifests and
// scripts written for etcd start Quorate unchanged; a setting that Quorate cannot honour is refused with its reason
// instead of being ignored, unless ignoring it can harm nobody.
//
// Every setting is one row of a table (see setting.go), from which the command line, the environment, the file, the
// help text and `quorate config print` are all derived; a setting cannot be reachable by one way and not by another.
//
// Invariants:
//  1. flag > environment > default; a configuration file replaces flags and environment as a whole, as in etcd.
//  2. What Load returns without an error has passed Validate.
//  3. All faults are reported together, in one error, never one per attempt.
//  4. What WriteYAML prints, a configuration file may contain, and means the same.
//
// A Config is a value: it may be copied, and it must not be changed after Load.
package config
