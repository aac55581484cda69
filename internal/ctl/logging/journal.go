package logging

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/coreos/go-systemd/v22/journal"
)

// journalWriter gives each line to systemd's journal, with its level as the priority.
type journalWriter struct {
	send func(message string, priority journal.Priority, fields map[string]string) error
}

// openJournal returns what writes to the journal; without one, as in a container, that is stderr.
func openJournal(stderr io.Writer) io.Writer {
	if !journal.Enabled() {
		return stderr
	}
	return journalWriter{journal.Send}
}

// Write implements io.Writer. It takes any number of whole lines.
func (w journalWriter) Write(lines []byte) (int, error) {
	var all error
	for line := range bytes.Lines(lines) {
		text := bytes.TrimSuffix(line, []byte("\n"))
		fields := map[string]string{"SYSLOG_IDENTIFIER": filepath.Base(os.Args[0])}
		all = errors.Join(all, w.send(string(text), priorityOf(text), fields))
	}
	if all != nil {
		return 0, all
	}
	return len(lines), nil
}

// priorityOf finds the level of a line of either format.
func priorityOf(line []byte) journal.Priority {
	level, isJSON := bytes.CutPrefix(line, []byte(`{"level":"`))
	if !isJSON {
		_, level, _ = bytes.Cut(line, []byte("\t"))
	}
	switch {
	case bytes.HasPrefix(level, []byte("debug")):
		return journal.PriDebug
	case bytes.HasPrefix(level, []byte("warn")):
		return journal.PriWarning
	case bytes.HasPrefix(level, []byte("error")):
		return journal.PriErr
	default:
		return journal.PriInfo
	}
}
