package plane

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// A process of the control plane, which can be killed and started again.
type process struct {
	name, path string
	arguments  []string
	log        string
	command    *exec.Cmd
	ended      chan struct{}
}

func newProcess(directory, name, path string, arguments ...string) *process {
	return &process{name: name, path: path, arguments: arguments, log: filepath.Join(directory, name+".log")}
}

func (p *process) start() error {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	p.command = exec.Command(p.path, p.arguments...)
	p.command.Stdout, p.command.Stderr = log, log
	if err := p.command.Start(); err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	ended := make(chan struct{})
	p.ended = ended
	go func() {
		p.command.Wait()
		close(ended)
	}()
	return nil
}

// kill kills the process, if it runs, and waits for its end.
func (p *process) kill() {
	if p.command == nil {
		return
	}
	p.command.Process.Signal(syscall.SIGKILL)
	<-p.ended
}
