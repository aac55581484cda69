//go:build !linux

package process_test

// systemAilments are faults that need something of Linux.
var systemAilments []ailment
