//go:build !unix

package dev

import (
	"os"
	"syscall"
)

func attributes() *syscall.SysProcAttr { return nil }

// signalGroup can only end a process here.
func signalGroup(p *os.Process, _ syscall.Signal) error { return p.Kill() }
