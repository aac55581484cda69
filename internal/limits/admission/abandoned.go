package admission

import (
	"net"
	"sync"
	"time"
)

const (
	// maxAbandoned is how many requests a host may abandon with their connections until further ones are refused: clients that
	// restart do so, too. It is forgiven abandonedForgiven a second, and no more than mostAbandoned is remembered, so that a
	// host is refused for 16 seconds at most after its last connection.
	maxAbandoned      = 4096
	mostAbandoned     = 8192
	abandonedForgiven = 256
	// maxAbandoners bounds the hosts that are remembered. The requests that a further host abandons cost it nothing.
	maxAbandoners = 4096
)

// Abandoned remembers which hosts have dropped connections with many requests that were not answered: what a connection
// has cost is gone with it, and the next one could cost as much. The zero value is ready.
type Abandoned struct {
	mu      sync.Mutex
	hosts   map[string]abandoner
	looked  time.Time // for hosts that are forgiven, when there was no room
	refused uint64
}

type abandoner struct {
	requests float64
	at       time.Time
}

// Admits reports whether a host may open a connection.
func (a *Abandoned) Admits(from net.Addr) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	host := Host(from)
	h, known := a.hosts[host]
	if !known {
		return true
	}
	if h.forgive(time.Now()); h.requests <= 0 {
		delete(a.hosts, host)
		return true
	}
	a.hosts[host] = h
	if h.requests > maxAbandoned {
		a.refused++
		return false
	}
	return true
}

// Add notes that a host has abandoned requests.
func (a *Abandoned) Add(from net.Addr, requests int) {
	if requests <= 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	host, now := Host(from), time.Now()
	h, known := a.hosts[host]
	if !known && len(a.hosts) >= maxAbandoners {
		if now.Sub(a.looked) < time.Second {
			return // a walk over all of them for each further host would be work that clients cause
		}
		a.looked = now
		if a.forget(now); len(a.hosts) >= maxAbandoners {
			return
		}
	}
	h.forgive(now)
	h.requests = min(h.requests+float64(requests), mostAbandoned)
	if a.hosts == nil {
		a.hosts = map[string]abandoner{}
	}
	a.hosts[host] = h
}

// forget drops the hosts that are forgiven. mu is held.
func (a *Abandoned) forget(now time.Time) {
	for host, h := range a.hosts {
		if h.forgive(now); h.requests <= 0 {
			delete(a.hosts, host)
		}
	}
}

func (h *abandoner) forgive(now time.Time) {
	h.requests = max(0, h.requests-now.Sub(h.at).Seconds()*abandonedForgiven)
	h.at = now
}

// Counts returns how many hosts are remembered, and how many connections were refused.
func (a *Abandoned) Counts() (hosts int, refused uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.hosts), a.refused
}
