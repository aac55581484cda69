package sim

import (
	"encoding/binary"
	"fmt"
	"hash"
	"hash/fnv"
	"io"
	"time"
)

// trace is the diary of a world: one line per event. Every event goes into a hash, whether anybody reads the lines or
// not, so that two runs can be compared.
//
// The columns are: virtual time in microseconds, slot of the member (or -), event, and what the event says of itself.
type trace struct {
	out   io.Writer
	sum   hash.Hash64
	lines uint64
	buf   [40]byte
}

func newTrace(out io.Writer) *trace { return &trace{out: out, sum: fnv.New64a()} }

// kind names an event of the trace.
type kind uint8

const (
	traceDeliver kind = iota + 1
	traceDrop
	traceStep
	tracePersist
	traceApply
	traceCrash
	traceStart
	traceFail
	traceLead
	traceNemesis
	traceOperation
	traceAnswer
	traceSnapshot
	traceConfig
	traceRemoved
	traceRefused
	traceFounding
)

var kindNames = [...]string{"", "deliver", "drop", "step", "persist", "apply", "crash", "start", "fail", "lead",
	"nemesis", "op", "answer", "snapshot", "config", "removed", "refused", "founding"}

// note records an event with up to three numbers; text says the same in words and is called only for a reader.
func (t *trace) note(at time.Duration, slot int, what kind, a, b, c uint64, text func() string) {
	t.lines++
	binary.LittleEndian.PutUint64(t.buf[0:], uint64(at))
	binary.LittleEndian.PutUint64(t.buf[8:], uint64(slot)<<8|uint64(what))
	binary.LittleEndian.PutUint64(t.buf[16:], a)
	binary.LittleEndian.PutUint64(t.buf[24:], b)
	binary.LittleEndian.PutUint64(t.buf[32:], c)
	t.sum.Write(t.buf[:])
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
