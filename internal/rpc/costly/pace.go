package costly

import (
	"sync"
	"time"
)

const (
	// keptPerSecond is how many bytes of values the puts of one member may keep by ignore_value. Each value is written to the
	// store again, which has to put it on disk while others write, too; the request has few bytes.
	keptPerSecond = 32 << 20
	keptAhead     = 1 << 20 // that may be kept at once
)

// pace is how much puts have kept, and may. The zero value is ready.
type pace struct {
	mu   sync.Mutex
	debt int64 // bytes that were kept and are not due yet
	at   time.Time
}

// over reports whether a put that keeps so much has to wait for its turn.
func (p *pace) over(bytes int64) bool {
	if bytes == 0 {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.elapse()
	return p.debt+bytes > keptAhead
}

// take notes that so much is kept. It returns for how long nothing else is to be kept.
func (p *pace) take(bytes int64) (pause time.Duration) {
	if bytes == 0 {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.elapse()
	p.debt += bytes
	return time.Duration(max(0, p.debt-keptAhead)) * time.Second / keptPerSecond
}

// elapse lets time pass. mu is held.
func (p *pace) elapse() {
	now := time.Now()
	due := int64(now.Sub(p.at).Seconds() * keptPerSecond)
	if p.at.IsZero() || due > p.debt {
		due = p.debt
	}
	p.debt -= due
	p.at = now
}
