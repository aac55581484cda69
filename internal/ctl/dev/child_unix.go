//go:build unix && !linux

package dev

import (
	"os"
	"syscall"
)

// attributes put a member into a process group of its own, so that Ctrl-C reaches only this process, which then
// stops the members in order.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// signalGroup signals a member and whatever it has started.
func signalGroup(p *os.Process, s syscall.Signal) error { return syscall.Kill(-p.Pid, s) }
