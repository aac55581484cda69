package watch

import (
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/quorate/quorate/internal/base/linked"
)

// account is the memory of all streams of one client.
type account struct {
	client   string
	streams  int           // guarded by Hub.mu
	watchers int64         // bytes; guarded by Hub.mu
	waiting  atomic.Int64  // of responses that wait in the streams, or were handed out and are not sent yet
	all      *atomic.Int64 // the same of all clients

	reads chan struct{} // full while the allowed number of streams make a step of catch-up

	// Guarded by overdrafts.mu.
	overdrafts int                    // held by its streams
	overdrawn  int64                  // for which they were granted
	queued     linked.List[overdraft] // of streams that wait for one
	place      linked.Place[account]  // in overdrafts.accounts
}

// add counts bytes that wait, or subtracts them.
func (a *account) add(bytes int64) {
	a.waiting.Add(bytes)
	a.all.Add(bytes)
}

// free returns how many more bytes may wait for this client. A client may have as much as is left for others, so that n clients
// that read nothing have one part of n+1 each, and the next client finds as much (as in package answers).
func (a *account) free(limits *Options) int64 {
	return min(limits.ClientBytes, limits.TotalBytes-a.all.Load()) - a.waiting.Load()
}

// addWatcher counts the bytes of a watcher, or subtracts them. Hub.mu is held.
func (a *account) addWatcher(h *Hub, bytes int64) {
	a.watchers += bytes
	h.watcherBytes += bytes
}

// hasRoomFor reports whether a client may have a watcher of so many bytes. It may have as much as is free then for others, as
// with free. Hub.mu is held.
func (a *account) hasRoomFor(h *Hub, bytes int64) bool {
	return h.options.WatcherBytes-h.watcherBytes-bytes >= a.watchers+bytes
}

// charge counts a batch that is put into a stream of the account. A batch whose first owner is this client counts once for all
// its streams, as it is in memory once. Hub.mu is held.
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

// nameless begins the names of accounts of streams that were opened without a client's name.
const nameless = "\x00"

// openAccount returns the account of a client, which its streams share; a stream without a client's name gets its own. Hub.mu
// is held.
func (h *Hub) openAccount(client string) *account {
	if client == "" {
		h.opened++
		client = nameless + strconv.FormatUint(h.opened, 16)
	}
	a := h.accounts[client]
	if a == nil {
		a = &account{client: client, all: &h.waitingBytes, reads: make(chan struct{}, reads(h.options.ClientBytes))}
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

const (
	// A stream may take so many bytes in a step of catch-up even if too many wait in the client's other streams. For a larger
	// revision it needs an overdraft.
	leastCatchUpBytes = 64 << 10
	// maxReads bounds the streams of a client that make a step of catch-up at once: the events that a step reads are counted
	// only when the streams get them. There is one such stream for each readBytes that may wait for the client, and at least
	// one.
	maxReads  = 8
	readBytes = 4 << 20
	// maxOverdrafts is how many streams of a client may hold an overdraft; twice as many while the account has room, since then
	// they soon end. The bytes of all overdrafts of a client are at most Options.ClientBytes (twice that while it has room), or
	// it has one overdraft.
	maxOverdrafts = 8
)

// reads returns how many streams may make a step at once if so many bytes may wait.
func reads(bytes int64) int { return int(max(1, min(bytes/readBytes, maxReads))) }

// overdrafts decide which streams may take a revision for which they have no room. Revisions are never cut, so some stream must
// take it; but a client that reads none of its many streams must not get one in each.
type overdrafts struct {
	options *Options
	queued  atomic.Int64 // streams of all accounts that wait for one

	mu        sync.Mutex           // taken after all others
	overdrawn int64                // bytes of all accounts
	accounts  linked.List[account] // accounts with streams that wait
}

// overdraft is the state of one stream: none, queued, or held. It is written with overdrafts.mu.
type overdraft struct {
	account *account
	wake    chan struct{} // of the stream
	held    atomic.Bool
	queued  atomic.Bool
	bytes   int64                   // needed, or granted
	ended   bool                    // the stream was closed
	place   linked.Place[overdraft] // in account.queued
}

// draw reports whether a stream may continue that is to get so many bytes: it has its overdraft, or is closed. Otherwise it is
// woken later.
func (o *overdrafts) draw(d *overdraft, bytes int64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	a := d.account
	if !d.held.Load() {
		d.bytes = bytes
	}
	switch {
	case d.held.Load(), d.ended: // a closed stream gets nothing
		return true
	case d.queued.Load():
		return false
	case a.queued.Len() == 0 && o.grant(d):
		return true
	}
	if a.queued.Len() == 0 {
		o.accounts.PushBack(&a.place, a)
	}
	a.queued.PushBack(&d.place, d)
	d.queued.Store(true)
	o.queued.Add(1)
	return false
}

// grant gives a stream its overdraft if the account, and all together, have one left. mu is held.
func (o *overdrafts) grant(d *overdraft) bool {
	a, times := d.account, int64(1)
	if a.free(o.options) > 0 {
		times = 2
	}
	if int64(a.overdrafts) >= times*maxOverdrafts || a.overdrafts > 0 && a.overdrawn+d.bytes > times*o.options.ClientBytes ||
		o.overdrawn > 0 && o.overdrawn+d.bytes > overdraftTimes*o.options.TotalBytes {
		return false
	}
	a.overdrafts++
	a.overdrawn += d.bytes
	o.overdrawn += d.bytes
	d.held.Store(true)
	return true
}

// The overdrafts together may take overdraftTimes the bytes that may wait in all streams, or be a single one.
const overdraftTimes = 4

// settle ends the overdraft of a stream that holds so many bytes, if they fit without it now.
func (o *overdrafts) settle(d *overdraft, bytes int) {
	if d.held.Load() && (bytes <= d.account.least(o.options) || d.account.free(o.options) > 0) {
		o.giveBack(d)
	}
}

// end takes the overdraft of a closed stream back. A step of the stream may still be under way.
func (o *overdrafts) end(d *overdraft) {
	o.mu.Lock()
	d.ended = true
	o.mu.Unlock()
	o.giveBack(d)
}

// giveBack takes an overdraft back, or removes its stream from those that wait.
func (o *overdrafts) giveBack(d *overdraft) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if d.held.Swap(false) {
		d.account.overdrafts--
		d.account.overdrawn -= d.bytes
		o.overdrawn -= d.bytes
	}
	if d.queued.Load() {
		o.unqueue(d)
	}
	o.wakeNext()
}

// freed is called when bytes of any account were given back.
func (o *overdrafts) freed() {
	if o.queued.Load() == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.wakeNext()
}

// wakeNext gives overdrafts to streams that wait. mu is held.
func (o *overdrafts) wakeNext() {
	for range o.accounts.Len() {
		a := o.accounts.First()
		a.place.Remove()
		for d := a.queued.First(); d != nil && o.grant(d); d = a.queued.First() {
			o.unqueue(d)
			select {
			case d.wake <- struct{}{}:
			default:
			}
		}
		if a.queued.Len() > 0 {
			o.accounts.PushBack(&a.place, a)
		}
	}
}

func (o *overdrafts) unqueue(d *overdraft) {
	d.place.Remove()
	d.queued.Store(false)
	o.queued.Add(-1)
	if d.account.queued.Len() == 0 {
		d.account.place.Remove()
	}
}

// leastBytes are the bytes that a step of catch-up may take although more wait than may, while less than mostTimes as much
// does.
func leastBytes(o *Options) int { return min(leastCatchUpBytes, o.StreamBytes) }

// mostTimes says, by the bytes that may wait for all clients, from where on no stream takes more without an overdraft; clients
// for which less than leastBytes waits may until there is one time more. There are as many streams as clients have memory for.
const mostTimes = 2

// least returns how many bytes the next step may take in any case.
func (a *account) least(o *Options) int {
	all, least := a.all.Load(), leastBytes(o)
	if all < mostTimes*o.TotalBytes || all < (mostTimes+1)*o.TotalBytes && a.waiting.Load() < int64(least) {
		return least
	}
	return 0
}

// Scarce reports whether so much waits that streams wait for others which do not read.
func (h *Hub) Scarce() bool { return h.waitingBytes.Load() >= mostTimes*h.options.TotalBytes }
