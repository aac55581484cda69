package gateway

import (
	"context"
	"sync"
)

// hostCalls bounds the calls of each client host. A call that comes when all are taken waits.
type hostCalls struct {
	limit int

	mu      sync.Mutex
	hosts   map[string]*callsOfHost
	running int
	waiting int
}

type callsOfHost struct {
	slots chan struct{} // as many may be in it as may run
	users int           // that run or wait
}

// enter waits until a call of a host may run. The error is that of ctx.
func (c *hostCalls) enter(ctx context.Context, host string) (leave func(), err error) {
	h := c.open(host)
	select {
	case h.slots <- struct{}{}:
	case <-ctx.Done():
		c.mu.Lock()
		defer c.mu.Unlock()
		c.waiting--
		c.close(host, h)
		return nil, ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting--
	c.running++
	return func() {
		<-h.slots
		c.mu.Lock()
		defer c.mu.Unlock()
		c.running--
		c.close(host, h)
	}, nil
}

func (c *hostCalls) open(host string) *callsOfHost {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hosts == nil {
		c.hosts = make(map[string]*callsOfHost)
	}
	h := c.hosts[host]
	if h == nil {
		h = &callsOfHost{slots: make(chan struct{}, c.limit)}
		c.hosts[host] = h
	}
	h.users++
	c.waiting++
	return h
}

// close forgets a host of which nothing runs or waits. mu is held.
func (c *hostCalls) close(host string, h *callsOfHost) {
	if h.users--; h.users == 0 {
		delete(c.hosts, host)
	}
}

func (c *hostCalls) counts() (running, waiting int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running, c.waiting
}
