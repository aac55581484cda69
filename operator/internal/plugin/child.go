package plugin

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/quorate/quorate/internal/ctl/command"
)

// CalledEtcdctl is the name under which this program runs etcdctl's code.
const CalledEtcdctl = "kubectl-quorate-etcdctl"

// childPatience is how long etcdctl may take to end after a signal.
const childPatience = 5 * time.Second

// runChild runs a line of etcdctl's in a process of its own, which reaches the pods by sockets.
func runChild(ctx context.Context, r *road, settings, words []string, s command.Streams) (int, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, command.Refused(err)
	}
	dir, err := os.MkdirTemp("", "quorate-") // for this user alone
	if err != nil {
		return 0, command.Refused(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	sockets, err := r.sockets(ctx, dir)
	if err != nil {
		return 0, command.Refused(err)
	}
	if words[0] == "etcdctl" {
		words = words[1:]
	}
	child := exec.CommandContext(ctx, self, words...)
	child.Args[0] = CalledEtcdctl
	child.Cancel, child.WaitDelay = func() error { return child.Process.Signal(syscall.SIGTERM) }, childPatience
	child.Stdin, child.Stdout, child.Stderr = s.In, s.Out, s.Err
	child.Env = s.Environ
	for _, setting := range append(settings, "ENDPOINTS="+strings.Join(sockets, ",")) {
		child.Env = append(child.Env, "ETCDCTL_"+setting) // the last one of a name counts
	}
	err = child.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return command.StatusInterrupted, nil
	case errors.As(err, &exit):
		return exit.ExitCode(), nil
	case err != nil:
		return 0, command.Refused(err)
	}
	return command.StatusOK, nil
}

// sockets listens in a directory for connections to the members that serve, until the road is closed.
func (r *road) sockets(ctx context.Context, dir string) (all []string, err error) {
	for i, s := range r.stops {
		if !s.ready && r.stops[0].ready {
			continue
		}
		at := filepath.Join(dir, strconv.Itoa(i)) // short: the path of a socket has at most 104 bytes
		l, err := (&net.ListenConfig{}).Listen(ctx, "unix", at)
		if err != nil {
			return nil, err
		}
		if !r.keep(l) {
			return nil, net.ErrClosed
		}
		go r.serve(ctx, l, s)
		all = append(all, "unix://"+at)
	}
	return all, nil
}

// serve leads connections of a socket to a pod.
func (r *road) serve(ctx context.Context, l net.Listener, s *stop) {
	for {
		near, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer func() { _ = near.Close() }()
			far, err := r.to(ctx, s, uint16(s.port))
			if err != nil {
				return
			}
			defer func() { _ = far.Close() }()
			go func() {
				_, _ = io.Copy(far, near)
				_ = far.Close()
			}()
			_, _ = io.Copy(near, far)
		}()
	}
}
