package client

import (
	"crypto/rand"
	"sync"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/nativeclient"
)

// table is a nativeclient.Table behind a lock.
type table struct {
	wake chan struct{} // there may be something to send

	mu     sync.Mutex
	writes *nativeclient.Table
}

// call is a write that a caller waits for.
type call struct {
	*nativeclient.Call
	done chan struct{} // closed when it is answered
}

func newTable() *table {
	t := &table{wake: make(chan struct{}, 1)}
	t.writes = nativeclient.New(nativeclient.Options{Key: newKey, Wake: t.signal})
	return t
}

// newKey draws the key of a client.
func newKey() []byte {
	key := make([]byte, quoratepb.ClientKeyBytes)
	_, _ = rand.Read(key) // never fails
	return key
}

func (t *table) signal() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// with calls f with the writes.
func (t *table) with(f func(w *nativeclient.Table)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f(t.writes)
}

func (t *table) add(kind quoratepb.Proposal_Kind, request []byte) (*call, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	done := make(chan struct{})
	c, err := t.writes.Add(kind, request, func() { close(done) })
	return &call{c, done}, err
}

// abandon gives a call up; false means that it has ended before.
func (t *table) abandon(c *call) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.writes.Abandon(c.Call)
}

// next returns the next message for the link, nil if there is none.
func (t *table) next() *quoratepb.ProposeRequest {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.writes.Next()
}

// offer returns what to offer over streams that were opened under a client id, nil if there is nothing.
func (t *table) offer(client uint64, streams map[uint64]nativeclient.Stream) *nativeclient.Offer {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.writes.ID() != client {
		return nil
	}
	return t.writes.Offer(time.Now(), streams)
}

// opened takes the answer to an opening. False means that the client has another id from now on, and needs a new stream.
func (t *table) opened(o *quoratepb.SessionOpened) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.writes.Opened(o)
}

func (t *table) voters(nearest, far time.Duration) []uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.writes.Voters(nearest, far)
}

func (t *table) id() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.writes.ID()
}

func (t *table) identity() (client uint64, key []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.writes.Identity()
}

func (t *table) pausing() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.writes.Pausing()
}

func (t *table) waiting() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.writes.Waiting()
}

func (t *table) settling() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.writes.Settling()
}

func (t *table) farewell() *quoratepb.ProposeRequest {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.writes.Farewell()
}

func (t *table) counted() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Stats(t.writes.Stats())
}
