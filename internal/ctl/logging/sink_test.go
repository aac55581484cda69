package logging_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/ctl/logging"
)

func noticeOf(dropped uint64) []byte {
	return []byte("dropped " + strconv.FormatUint(dropped, 10) + "\n")
}

// Ensure that a pipe that no process reads never holds up a goroutine that logs, and that its reader learns how much is
// missing.
func TestSink_Write_blocked(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	const limit = 8 << 10
	sink := logging.NewSink(writer, limit, noticeOf)
	line := []byte(strings.Repeat("x", 1023) + "\n")
	const lines = 1000 // far more than the pipe and the queue hold
	for range lines {
		if _, err := sink.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	dropped := sink.Dropped()
	if dropped == 0 {
		t.Fatal("nothing was dropped although nobody reads")
	}
	var all bytes.Buffer
	read := make(chan error, 1)
	go func() {
		_, err := io.Copy(&all, reader)
		read <- err
	}()
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(writer.Close(), <-read); err != nil {
		t.Fatal(err)
	}
	missing := uint64(0)
	taken := strings.Count(all.String(), "x\n")
	for text := range strings.Lines(all.String()) {
		if n, is := strings.CutPrefix(strings.TrimSpace(text), "dropped "); is {
			k, err := strconv.ParseUint(n, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			missing += k
		}
	}
	if uint64(taken)+dropped != lines || missing != dropped || sink.Dropped() != dropped {
		t.Errorf("%d lines came, %d were dropped of which the output was told %d: want %d in all",
			taken, dropped, missing, lines)
	}
}

// Ensure that Close does not wait for ever for an output that blocks, and that lines after it are dropped.
func TestSink_Close_blocked(t *testing.T) {
	block := make(chan struct{})
	defer close(block)
	sink := logging.NewSink(writerFunc(func(p []byte) (int, error) {
		<-block
		return len(p), nil
	}), 100, noticeOf)
	if _, err := sink.Write([]byte("a\n")); err != nil {
		t.Fatal(err)
	}
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := sink.Write([]byte("b\n")); err != nil || sink.Dropped() != 1 {
		t.Errorf("after Close: %v, %d dropped, want 1", err, sink.Dropped())
	}
}

// Ensure that an output that fails, such as a closed pipe or a full disk, costs its lines and nothing else.
func TestSink_Write_failing(t *testing.T) {
	sink := logging.NewSink(writerFunc(func([]byte) (int, error) { return 0, io.ErrClosedPipe }), 100, noticeOf)
	for range 3 {
		if n, err := sink.Write([]byte("a\n")); n != 2 || err != nil {
			t.Fatal(n, err)
		}
	}
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	if got := sink.Dropped(); got != 3 {
		t.Errorf("%d dropped, want 3", got)
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
