package admission

import "sync"

// HostBound limits how many may be in, of all hosts together and of each host; nothing waits.
type HostBound struct {
	limit, hostLimit int

	mu      sync.Mutex
	open    int
	hosts   map[string]int
	refused uint64
}

// NewHostBound returns a bound of limit in all and hostLimit for each host.
func NewHostBound(limit, hostLimit int) *HostBound {
	return &HostBound{limit: limit, hostLimit: hostLimit, hosts: map[string]int{}}
}

// Enter lets one of host in, or returns false. leave must be called once.
func (b *HostBound) Enter(host string) (leave func(), entered bool) { return b.EnterAs(host, 1) }

// EnterAs is Enter for one that counts as many.
func (b *HostBound) EnterAs(host string, many int) (leave func(), entered bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open+many > b.limit || b.hosts[host]+many > b.hostLimit {
		b.refused++
		return nil, false
	}
	b.open += many
	b.hosts[host] += many
	return func() { b.leave(host, many) }, true
}

func (b *HostBound) leave(host string, many int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open -= many
	if b.hosts[host] -= many; b.hosts[host] == 0 {
		delete(b.hosts, host)
	}
}

// Limit is the limit for all hosts together.
func (b *HostBound) Limit() int { return b.limit }

// Counts returns how many are in, and how many have been refused so far.
func (b *HostBound) Counts() (open int, refused uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open, b.refused
}
