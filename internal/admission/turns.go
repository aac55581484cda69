package admission

import (
	"runtime"
	"sync/atomic"
)

// LargeBytes is what a message has at least, or what it takes to read or to write it, that needs a turn.
const LargeBytes = 64 << 10

// Turns bounds work that takes a processor for milliseconds: reading and writing large messages in forms that cost much. As
// much of it runs at once as leaves a processor to everything else.
type Turns struct {
	slots   chan struct{}
	waiting atomic.Int64
}

// NewTurns returns turns for as many as there are processors less one, and one at least.
func NewTurns() *Turns { return &Turns{slots: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)-1))} }

// Do does work on so many bytes, which must not wait for anything: at once if they are few, or else when it has a turn, in the
// order of those who asked.
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
