package dev

import (
	"os"
	"syscall"
)

// attributes put a member into a process group of its own, so that Ctrl-C reaches only this process, which then
// stops the members in order; and let the kernel kill it when this process is killed. The kernel watches the thread
// that started the child, see spawner.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// signalGroup signals a member and whatever it has started.
func signalGroup(p *os.Process, s syscall.Signal) error { return syscall.Kill(-p.Pid, s) }
