package node

import (
	"context"
	"os"
	"syscall"

	"github.com/quorate/quorate/test/kubelet/box"
)

// A run is a container from its start to its end.
type run struct {
	process *box.Process
	as      box.Spec
	network *os.File
	ended   chan struct{}
}

// beside runs a command in the namespaces of a container, and returns its exit status. The end of the container, or of ctx,
// kills it.
func (r *run) beside(ctx context.Context, command []string, streams box.Streams) (int, error) {
	spec := r.as
	spec.Command = command
	process, err := box.Exec(r.process, spec, r.network, streams)
	if err != nil {
		return 0, err
	}
	ended := make(chan int, 1)
	go func() { ended <- process.Wait() }()
	select {
	case code := <-ended:
		return code, nil
	case <-ctx.Done():
	case <-r.ended:
	}
	process.Signal(syscall.SIGKILL)
	return <-ended, nil
}
