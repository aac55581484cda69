package main

import (
	"strings"
	"sync"
	"time"
)

// errand is what an attacker is told by its standard input. When that ends, it does, too.
type errand struct {
	Name                 string // of the attack
	Drawn                bool
	Seed                 uint64 // of one that is drawn
	Client, Secure, Peer string // addresses of the member
	Token                string // of a login
}

// tally is what an attacker has done.
type tally struct {
	Calls   int64         // that were begun; where there are none, connections
	Refused int64         // of callers, and connections
	Took    int64         // bytes of answers, but to callers
	Said    string        // by the last one that was refused
	Nice    int           // of the process
	Spent   time.Duration // of the processors
}

// counter adds up a tally.
type counter struct {
	mu    sync.Mutex
	calls int64
	all   tally
}

// call counts a call, and returns how many there were before it.
func (c *counter) call() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	c.all.Calls = c.calls
	return c.calls - 1
}

// dialled counts a connection as long as there are no calls.
func (c *counter) dialled() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls == 0 {
		c.all.Calls++
	}
}

func (c *counter) take(bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all.Took += bytes
}

func (c *counter) refuse(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all.Refused++
	c.all.Said, _, _ = strings.Cut(err.Error(), "\n")
}
