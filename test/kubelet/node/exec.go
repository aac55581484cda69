package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/utils/exec"

	"github.com/quorate/quorate/test/kubelet/box"
)

// exec answers a call for a command in a container.
func (find finder) exec(out http.ResponseWriter, in *http.Request) {
	name, container := in.PathValue("pod"), in.PathValue("container")
	options, err := remotecommand.NewOptions(in)
	if err == nil && options.TTY {
		err = errors.New("this kubelet has no terminals: leave out -t")
	}
	if err != nil {
		http.Error(out, err.Error(), http.StatusBadRequest)
		return
	}
	w := find(in.PathValue("namespace"), name)
	if w == nil {
		http.Error(out, "this node does not run the pod", http.StatusNotFound)
		return
	}
	var r *run
	if err := w.ask(in.Context(), func() { r = w.runs[container] }); err != nil || r == nil {
		http.Error(out, fmt.Sprintf("the container %s of %s does not run", container, name), http.StatusBadRequest)
		return
	}
	remotecommand.ServeExec(out, in, executor{r}, name, "", container, in.URL.Query()["command"], options, idleTime,
		callTime, remotecommand.SupportedStreamingProtocols)
}

// An executor runs commands beside a container.
type executor struct{ run *run }

// ExecInContainer runs a command until it or the container ends. A stream that the caller does not have is nil.
func (e executor) ExecInContainer(ctx context.Context, _, _, _ string, command []string, in io.Reader,
	out, err io.WriteCloser, _ bool, _ <-chan remotecommand.TerminalSize, _ time.Duration) error {
	streams := box.Streams{Out: out, Err: err}
	if in != nil {
		read, write, err := os.Pipe()
		if err != nil {
			return err
		}
		streams.In = read
		defer read.Close()
		go func() { // until the caller ends the stream, or the command reads no more
			io.Copy(write, in)
			write.Close()
		}()
	}
	code, failed := e.run.beside(ctx, command, streams)
	if failed == nil && code != 0 {
		failed = exec.CodeExitError{Err: fmt.Errorf("exit status %d", code), Code: code}
	}
	return failed
}
