package box

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
)

// The first arguments with which this program is started again.
const (
	runArgument  = "box-run"
	execArgument = "box-exec"
)

// A Process is a container's process, or one that runs beside it in its root.
type Process struct{ command *exec.Cmd }

// PID is the process's id, as the ground sees it.
func (p *Process) PID() int { return p.command.Process.Pid }

// Signal sends a signal to the process and to all that it started.
func (p *Process) Signal(signal syscall.Signal) error { return syscall.Kill(-p.PID(), signal) }

// Wait waits for the end of the process. It returns the exit status, which is 128 and the signal's number for one that was
// killed.
func (p *Process) Wait() int {
	err := p.command.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 255 // its output could not be copied
	}
	status, _ := p.command.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// Start starts a container in a network namespace, an open file. Errors of building the root, such as a command that the
// image has not, are written to streams.Err, and the status is 127 then.
func Start(spec Spec, network *os.File, streams Streams) (*Process, error) {
	return start(runArgument, spec, network, streams, syscall.CLONE_NEWNS|syscall.CLONE_NEWUTS)
}

// Exec starts a command in the root of a container that runs.
func Exec(of *Process, spec Spec, network *os.File, streams Streams) (*Process, error) {
	spec.Root = fmt.Sprintf("/proc/%d/root", of.PID())
	return start(execArgument, spec, network, streams, 0)
}

// start returns once the process executes its command, or has failed: until then its root is not the container's, and a command
// beside it would have another one.
func start(argument string, spec Spec, network *os.File, streams Streams, unshare uintptr) (*Process, error) {
	encoded, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	said, told, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer said.Close()
	executes, ready, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, told.Close())
	}
	defer executes.Close()
	command := exec.Command("/proc/self/exe", argument)
	if streams.In != nil {
		command.Stdin = streams.In
	}
	command.Stdout, command.Stderr = streams.Out, streams.Err
	command.ExtraFiles = []*os.File{network, said, ready}
	command.Env = []string{}
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Unshareflags: unshare}
	err = onSpawner(command.Start)
	ready.Close()
	if err != nil {
		told.Close()
		return nil, err
	}
	_, err = told.Write(encoded)
	if err := errors.Join(err, told.Close()); err != nil {
		return nil, errors.Join(err, command.Process.Kill(), command.Wait())
	}
	io.Copy(io.Discard, executes) // nothing is written: its end is that of the file, which closes with execve
	return &Process{command: command}, nil
}

// A process gets its Pdeathsig when the thread ends that started it. So one thread starts all, and never ends.
var (
	spawnOnce sync.Once
	spawns    chan func()
)

func onSpawner(do func() error) error {
	spawnOnce.Do(func() {
		spawns = make(chan func())
		go func() {
			runtime.LockOSThread()
			for f := range spawns {
				f()
			}
		}()
	})
	done := make(chan error)
	spawns <- func() { done <- do() }
	return <-done
}

// Main is the first call of a program's main function. It returns at once, unless the program was started as a container.
func Main() {
	if len(os.Args) != 2 || os.Args[1] != runArgument && os.Args[1] != execArgument {
		return
	}
	runtime.LockOSThread()
	err := enter(os.Args[1] == execArgument)
	fmt.Fprintln(os.Stderr, "container: "+strings.TrimSpace(err.Error()))
	os.Exit(127)
}
