package main

import "syscall"

// umask sets the bits that new files do not have, and returns those of before.
func umask(mask int) int { return syscall.Umask(mask) }
