package watch

import (
	"strconv"
	"sync/atomic"

	"github.com/quorate/quorate/internal/linked"
)

// account is what all streams of one client have in memory together.
type account struct {
	client   string
	streams  int           // guarded by Hub.mu
	watchers int64         // bytes; guarded by Hub.mu
	waiting  atomic.Int64  // bytes of what waits in the streams, or was handed out and is not sent yet
	all      *atomic.Int64 // the same of all clients

	reads chan struct{} // full while maxReads streams make a step of catch-up

	// Guarded by overdrafts.mu.
	overdrafts int                   // that its streams hold
	queued     linked.List[Stream]   // that wait for one
	place      linked.Place[account] // in overdrafts.accounts
}

// add counts bytes that wait, or wait no more.
func (a *account) add(bytes int64) {
	a.waiting.Add(bytes)
	a.all.Add(bytes)
}

// free is how many bytes more may wait for this client: it may have as much as is left then for others, so that n clients
// who read nothing have an n+1st part each, and whoever comes next finds as much (as in package answers).
func (a *account) free(limits *Options) int64 {
	return min(limits.ClientBytes, limits.TotalBytes-a.all.Load()) - a.waiting.Load()
}

// charge counts a batch that is put into a stream of the account. A batch that was made for a client first counts once
// for all its streams, as it is in memory once. Hub.mu is held.
func (a *account) charge(b *Batch) {
	if b.owner == nil {
		b.owner = a
	}
	if b.owner != a || b.holders.Add(1) == 1 {
		a.add(int64(b.sizeBytes))
	}
}

func (a *account) release(b *Batch) {
	if b.owner != a || b.holders.Add(-1) == 0 {
		a.add(-int64(b.sizeBytes))
	}
}

// openAccount returns the account of a client, which it may share with other streams; without a name it is a client of its
// own. Hub.mu is held.
func (h *Hub) openAccount(client string) *account {
	if client == "" {
		h.opened++
		client = "\x00" + strconv.FormatUint(h.opened, 16)
	}
	a := h.accounts[client]
	if a == nil {
		a = &account{client: client, all: &h.waitingBytes, reads: make(chan struct{}, maxReads)}
		h.accounts[client] = a
	}
	a.streams++
	return a
}

func (h *Hub) closeAccount(a *account) {
	if a.streams--; a.streams == 0 {
		delete(h.accounts, a.client)
	}
}
