//go:build unix

package upgrade

import (
	"os/exec"
	"syscall"
)

// inGroup makes a command start a process group, and returns the function that ends all that is left of it.
func inGroup(command *exec.Cmd) (end func()) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	end = func() {
		if command.Process != nil {
			_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		}
	}
	command.Cancel = func() error { end(); return nil }
	return end
}
