package admission

import (
	"runtime"
	"sync/atomic"
)

// LargeBytes is the size from which on a message needs a turn: its own, or that of the memory that reading or writing it takes.
const LargeBytes = 64 << 10

// Turns bounds work that takes a processor for milliseconds: reading and writing large messages in forms that cost much. As
// much of it runs at once as leaves a processor to everything else.
type Turns struct {
	slots   chan struct{}
	waiting atomic.Int64
}

// NewTurns returns turns for as many as there are processors less one, and one at least.
func NewTurns() *Turns { return &Turns{slots: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)-1))} }

// Do calls work, which handles so many bytes and must not wait for anything: at once if these are fewer than LargeBytes, else
// when it has a turn. Turns are given in the order of the calls.
func (t *Turns) Do(bytes int, work func()) {
	if bytes >= LargeBytes {
		t.waiting.Add(1)
		t.slots <- struct{}{}
		t.waiting.Add(-1)
		defer func() { <-t.slots }()
	}
	work()
}

// Counts returns how much work has a turn, and how much waits for one.
func (t *Turns) Counts() (running, waiting int) { return len(t.slots), int(t.waiting.Load()) }
