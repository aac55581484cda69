//go:build linux && !amd64

package process_test

// clockAilments are those of which the clock of a program is off.
var clockAilments []ailment
