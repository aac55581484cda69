package dev

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
)

// spawner starts processes from one thread that lives as long as the crew. On Linux a child is killed when the
// thread that started it ends, and Go may end a thread whenever no goroutine needs it.
type spawner struct{ work chan func() }

func newSpawner() *spawner {
	s := &spawner{work: make(chan func())}
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine, after the last child
		for f := range s.work {
			f()
		}
	}()
	return s
}

func (s *spawner) start(cmd *exec.Cmd) error {
	done := make(chan error, 1)
	s.work <- func() { done <- cmd.Start() }
	return <-done
}

func (s *spawner) close() { close(s.work) }

// child is one run of a member.
type child struct {
	cmd      *exec.Cmd
	log      *os.File
	logStart int64 // where this run's lines begin
}

// startChild starts a member; its output is appended to its log.
func startChild(s *spawner, program string, args, environ []string, logPath string) (*child, error) {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	at, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr, cmd.Env, cmd.SysProcAttr = log, log, environ, attributes()
	if err := s.start(cmd); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", program, err), log.Close())
	}
	return &child{cmd, log, at}, nil
}

func (c *child) pid() int { return c.cmd.Process.Pid }

// death is how a run of a member ended.
type death struct {
	status  int    // exit status, -1 if a signal ended it
	how     string // "exited with status 1", "was ended by signal killed"
	lastLog string // its last words
}

// wait blocks until the process has ended and tells how.
func (c *child) wait() death {
	err := c.cmd.Wait()
	words, severe := lastWords(c.log, c.logStart)
	d := death{how: "exited with status 0", lastLog: words}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		d.status = exit.ExitCode()
		d.how = fmt.Sprintf("exited with status %d", d.status)
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			d.how = "was ended by signal " + ws.Signal().String()
			if !severe { // it did not see its end coming, and its last line says nothing about it
				d.lastLog = ""
			}
		}
	case err != nil:
		d.how = err.Error()
	}
	c.log.Close()
	return d
}

// withoutServerVariables drops what would configure every member alike.
func withoutServerVariables(environ []string) []string {
	var out []string
	for _, pair := range environ {
		if !strings.HasPrefix(pair, "ETCD_") {
			out = append(out, pair)
		}
	}
	return out
}
