package ctltest

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/quorate/quorate/internal/ctl"
	"github.com/quorate/quorate/internal/ctl/command"
)

// Result is what a command printed, and the status that it ended with.
type Result struct {
	Status   int
	Out, Err string
}

// Run runs a command line with an input.
func Run(t *testing.T, ctx context.Context, s command.Streams, input string, args ...string) Result {
	t.Helper()
	var out, errs bytes.Buffer
	s.In, s.Out, s.Err = strings.NewReader(input), &out, &errs
	status := ctl.Run(ctx, args, s)
	return Result{status, out.String(), errs.String()}
}

// RunTo runs a command line whose output goes to out, and returns its status.
func RunTo(t *testing.T, ctx context.Context, s command.Streams, out io.Writer, args ...string) int {
	t.Helper()
	s.In, s.Out, s.Err = strings.NewReader(""), out, io.Discard
	return ctl.Run(ctx, args, s)
}

// RunAt runs a command line without input against the member at an address.
func RunAt(t *testing.T, address string, args ...string) Result {
	t.Helper()
	return Run(t, t.Context(), At(address), "", args...)
}

// At are streams whose environment names the member at an address.
func At(address string) command.Streams {
	return command.Streams{Environ: []string{"QUORATE_ENDPOINTS=" + address}}
}

// Want compares a result: the output as a whole, the errors by a part of them.
func (r Result) Want(t *testing.T, status int, out, errPart string) {
	t.Helper()
	if r.Status != status || r.Out != out || !strings.Contains(r.Err, errPart) || (errPart == "" && r.Err != "") {
		t.Errorf("got status %d, output %q, errors %q; want %d, %q, …%q…", r.Status, r.Out, r.Err, status, out, errPart)
	}
}

// Lines runs a command that does not end by itself until it has printed n lines, and returns what it printed.
func Lines(t *testing.T, address string, n int, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out := NewLineCounter(n, cancel)
	s := At(address)
	s.Out, s.Err = out, io.Discard
	if status := ctl.Run(ctx, args, s); status != command.StatusInterrupted {
		t.Errorf("%q: got status %d, want %d", args, status, command.StatusInterrupted)
	}
	return out.Text()
}

// LineCounter is an output that calls a function when enough lines were written.
type LineCounter struct {
	mu   sync.Mutex
	text bytes.Buffer
	stop func()
	left int
}

// NewLineCounter calls stop with the n-th line, and with each write after that.
func NewLineCounter(n int, stop func()) *LineCounter { return &LineCounter{left: n, stop: stop} }

// Write implements io.Writer.
func (c *LineCounter) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left -= bytes.Count(p, []byte("\n"))
	if c.left <= 0 {
		c.stop()
	}
	return c.text.Write(p)
}

// Text is what was written.
func (c *LineCounter) Text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}
