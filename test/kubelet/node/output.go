package node

import (
	"context"
	"io"
	"os"
	"strings"
	"time"
)

// followEvery is how soon new lines of a log reach the client that follows it.
const followEvery = 100 * time.Millisecond

// An output is the part of a log file that one run of a container wrote.
type output struct {
	path     string
	from, to int64           // to counts once the run has ended
	ended    <-chan struct{} // closed with the end of the run
}

// A logRequest is what the API server asks of a log.
type logRequest struct {
	follow, previous bool
	tail             int // lines; negative: all
}

// copy writes what was asked for. A client that follows gets more until the run ends.
func (o *output) copy(ctx context.Context, to io.Writer, asked logRequest) error {
	file, err := os.Open(o.path)
	if err != nil {
		return err
	}
	defer file.Close()
	over := false
	select {
	case <-o.ended:
		over = true
	default:
	}
	text, err := o.rest(file, o.from, over)
	if err != nil {
		return err
	}
	at := o.from + int64(len(text))
	if _, err := io.WriteString(to, lastLines(text, asked.tail)); err != nil {
		return err
	}
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	for asked.follow && !over {
		select {
		case <-ticker.C:
		case <-o.ended:
			over = true
		case <-ctx.Done():
			return ctx.Err()
		}
		if text, err = o.rest(file, at, over); err != nil {
			return err
		}
		at += int64(len(text))
		if _, err := io.WriteString(to, text); err != nil {
			return err
		}
	}
	return nil
}

// rest reads the run's part of the file from a place on.
func (o *output) rest(file *os.File, at int64, over bool) (string, error) {
	end := int64(1 << 62)
	if over {
		end = o.to
	}
	text, err := io.ReadAll(io.NewSectionReader(file, at, end-at))
	return string(text), err
}

// lastLines is the end of a text; all of it if the number is negative.
func lastLines(text string, count int) string {
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	if count >= 0 && count < len(lines) {
		lines = lines[len(lines)-count:]
	}
	return strings.Join(lines, "")
}
