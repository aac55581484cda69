package trail

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/quorate/quorate/internal/audit"
)

// Tail is the end of a file of records.
type Tail struct {
	Output string   // as SinkOptions.Name has it
	Lines  [][]byte // records, the newest first, without their ends
	Looked int      // records that were read
	Whole  bool     // the file has no record before those
}

// ErrNoFile says that no sink is a file.
var ErrNoFile = errors.New("no output of this member is a file")

// Tail reads the last records of the first sink that is a file, of at most tailBytes, that match: at most so many. A
// record that is written meanwhile may be missing.
func (t *Trail) Tail(most int, matches func(*audit.Entry) bool) (Tail, error) {
	for _, s := range t.sinks {
		if s.file != nil {
			tail, err := readTail(s.name, most, matches)
			if err != nil {
				err = fmt.Errorf("%s: %w", s.name, err)
			}
			return tail, err
		}
	}
	return Tail{}, ErrNoFile
}

func readTail(name string, most int, matches func(*audit.Entry) bool) (Tail, error) {
	info, err := os.Stat(name) // a fifo that took the place of the file would be opened for ever
	if err == nil && !info.Mode().IsRegular() {
		err = errForeign
	}
	if err != nil {
		return Tail{}, err
	}
	f, err := os.Open(name)
	if err != nil {
		return Tail{}, err
	}
	defer f.Close()
	text := make([]byte, min(info.Size(), tailBytes))
	from := info.Size() - int64(len(text))
	n, err := f.ReadAt(text, from)
	if err != nil && !errors.Is(err, io.EOF) { // it was cut, or put aside, meanwhile
		return Tail{}, err
	}
	tail := Tail{Output: name, Whole: from == 0}
	text = text[:n]
	if from > 0 { // a line without its beginning
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1] // without one that has no end yet
	for len(text) > 0 {
		at := bytes.LastIndexByte(text[:len(text)-1], '\n') + 1
		line := text[at : len(text)-1]
		text = text[:at]
		entry, ok := audit.ParseEntry(line)
		if !ok { // it was changed, or a crash left it: verify says so
			continue
		}
		tail.Looked++
		if matches(&entry) {
			tail.Lines = append(tail.Lines, line)
		}
		if len(tail.Lines) == most {
			tail.Whole = tail.Whole && len(text) == 0
			break
		}
	}
	return tail, nil
}
