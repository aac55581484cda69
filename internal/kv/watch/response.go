package watch

import (
	"sync"
	"sync/atomic"

	"github.com/quorate/quorate/internal/kv"
)

// NoID is the watch id of a Response that belongs to no watcher: a refused creation, or progress of the whole stream.
const NoID = -1

// Request asks for a watcher.
type Request struct {
	ID             int64 // zero: the stream chooses
	Key, End       []byte
	Start          kv.Revision // zero: from the next revision on
	PrevKV         bool
	ProgressNotify bool
	Fragment       bool // passed on to the responses
	NoPut          bool
	NoDelete       bool
}

// Response is one message to the client, in etcd's terms. Exactly one of these holds: Created is set, Canceled is set (after a
// refused creation both are), Batch is set, or it reports progress: all events up to Revision have been sent.
type Response struct {
	WatchID  int64
	Revision kv.Revision // for the header; zero when compaction cancels
	Created  bool
	Canceled bool
	Err      error       // why the creation was refused, or the watcher cancelled
	Compact  kv.Revision // of the compaction that cancelled the watcher
	Batch    *Batch
	Fragment bool
}

// Batch is the events of one Response, shared by all watchers of the same range and options. It is read-only.
type Batch struct {
	Revision kv.Revision // at least that of the last event
	Events   []kv.Event  // in order; Prev is to be sent only if PrevKV is set
	PrevKV   bool

	sizeBytes int
	owner     *account // the account that got it first; set before it is shared
	holders   atomic.Int64
	once      sync.Once
	encoded   []byte
}

// Encoded returns b as encoded by encode, which is called once for all watchers that share b.
func (b *Batch) Encoded(encode func(*Batch) []byte) []byte {
	b.once.Do(func() { b.encoded = encode(b) })
	return b.encoded
}

// eventOverheadBytes is the memory counted for an event's struct and its allocations.
const eventOverheadBytes = 128

// sizeOf counts keys and values twice: a batch that was sent to one watcher has its encoded form, too.
func sizeOf(events []kv.Event) int {
	total := len(events) * eventOverheadBytes
	for i := range events {
		total += 2 * (len(events[i].KV.Key) + len(events[i].KV.Value))
		if prev := events[i].Prev; prev != nil {
			total += eventOverheadBytes + 2*(len(prev.Key)+len(prev.Value))
		}
	}
	return total
}

func newBatch(rev kv.Revision, events []kv.Event, prevKV bool) *Batch {
	return &Batch{Revision: rev, Events: events, PrevKV: prevKV, sizeBytes: sizeOf(events)}
}
