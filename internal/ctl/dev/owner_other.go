//go:build !linux

package dev

// portOwner names the process that listens on a TCP port; this system does not tell.
func portOwner(int) string { return "" }
