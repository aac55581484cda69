package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// echoTime is how soon after the first signal another one is taken for its echo: timeout(1), shells and build tools
// signal a process and then its whole group, and mean it once.
const echoTime = 500 * time.Millisecond

// interrupts tell of the wish to stop, and of impatience with how long it takes.
type interrupts struct {
	first, second chan os.Signal
	raw           chan os.Signal
	over          chan struct{}
}

func watchSignals() *interrupts {
	in := &interrupts{make(chan os.Signal, 1), make(chan os.Signal, 1), make(chan os.Signal, 4), make(chan struct{})}
	signal.Notify(in.raw, os.Interrupt, syscall.SIGTERM)
	go in.sort()
	return in
}

// sort hands over the first signal, drops its echoes, and hands over the next.
func (in *interrupts) sort() {
	var since time.Time
	for {
		select {
		case <-in.over:
			return
		case s := <-in.raw:
			switch {
			case since.IsZero():
				since = time.Now()
				in.first <- s
			case time.Since(since) > echoTime:
				in.second <- s
				return
			}
		}
	}
}

func (in *interrupts) release() {
	signal.Stop(in.raw)
	close(in.over)
}
