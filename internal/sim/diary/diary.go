package diary

import (
	"encoding/binary"
	"fmt"
	"hash"
	"hash/fnv"
	"io"
	"time"
)

// Diary is the trace of a world: one line per event. Every event goes into a hash, with or without a reader of the lines, so
// that two runs can be compared.
//
// The columns are: virtual time in microseconds, slot of the member (or -), event, and its details.
type Diary struct {
	Sum   hash.Hash64
	Lines uint64
	out   io.Writer
	buf   [40]byte
}

// New returns a diary whose lines go to out; nil: the lines are not written.
func New(out io.Writer) *Diary { return &Diary{out: out, Sum: fnv.New64a()} }

// Kind names an event.
type Kind uint8

// The events.

const (
	Deliver Kind = iota + 1
	_            // a former event; the numbers of the others are part of every trace hash
	Step
	Persist
	Apply
	Crash
	Start
	Fail
	Lead
	Nemesis
	Operation
	Answer
	Snapshot
	Config
	Removed
	Refused
	Founding
)

var kindNames = [...]string{"", "deliver", "drop", "step", "persist", "apply", "crash", "start", "fail", "lead",
	"nemesis", "op", "answer", "snapshot", "config", "removed", "refused", "founding"}

// Note records an event with up to three numbers; text returns the same in words, and is called only if the lines are written.
func (t *Diary) Note(at time.Duration, slot int, what Kind, a, b, c uint64, text func() string) {
	t.Lines++
	binary.LittleEndian.PutUint64(t.buf[0:], uint64(at))
	binary.LittleEndian.PutUint64(t.buf[8:], uint64(slot)<<8|uint64(what))
	binary.LittleEndian.PutUint64(t.buf[16:], a)
	binary.LittleEndian.PutUint64(t.buf[24:], b)
	binary.LittleEndian.PutUint64(t.buf[32:], c)
	t.Sum.Write(t.buf[:])
	if t.out == nil {
		return
	}
	who := "-"
	if slot >= 0 {
		who = fmt.Sprint(slot)
	}
	line := fmt.Sprintf("%10d %2s %-8s %d %d %d", at.Microseconds(), who, kindNames[what], a, b, c)
	if text != nil {
		line += " " + text()
	}
	fmt.Fprintln(t.out, line)
}
