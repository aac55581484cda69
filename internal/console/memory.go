package console

import (
	"container/list"
	"context"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/console/page"
)

// memory keeps the sections that were rendered last: looks at the same page share them, and a section that cannot be loaded is
// shown as it was. A section is of one user with one token, at one URL.
type memory struct {
	limit int64

	mu      sync.Mutex
	bytes   int64
	of      map[sectionKey]*list.Element
	recent  *list.List // of *kept, the last one used first
	flights map[sectionKey]*flight
}

// sectionKey identifies a section of a page, and who looks at it.
type sectionKey struct{ who, url, id string }

type kept struct {
	key  sectionKey
	body []byte
	at   time.Time
}

// flight is a section that is being loaded.
type flight struct {
	done chan struct{}
	body []byte
	err  error // until it is known: that of a load that does not return
}

const keptBytes = 512 // of an entry beside its text

func newMemory(limit int64) *memory {
	return &memory{limit: limit, of: map[sectionKey]*list.Element{}, recent: list.New(), flights: map[sectionKey]*flight{}}
}

// last returns what is kept of a section.
func (m *memory) last(key sectionKey) (body []byte, at time.Time, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.of[key]
	if !ok {
		return nil, time.Time{}, false
	}
	m.recent.MoveToFront(e)
	k := e.Value.(*kept)
	return k.body, k.at, true
}

// load returns a section that is at most so old, and waits for one that is being loaded instead of loading it twice. The
// function runs in a goroutine of its own, which ends by itself.
func (m *memory) load(
	ctx context.Context, key sectionKey, age time.Duration, load func() ([]byte, error),
) (body []byte, err error) {
	m.mu.Lock()
	if e, ok := m.of[key]; ok && time.Since(e.Value.(*kept).at) < age {
		m.recent.MoveToFront(e)
		m.mu.Unlock()
		return e.Value.(*kept).body, nil
	}
	f, flying := m.flights[key]
	if !flying {
		f = &flight{done: make(chan struct{}), err: errPanic}
		m.flights[key] = f
		page.Go(func() { m.fly(key, f, load) })
	}
	m.mu.Unlock()
	select {
	case <-f.done:
		return f.body, f.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (m *memory) fly(key sectionKey, f *flight, load func() ([]byte, error)) {
	defer close(f.done)
	f.body, f.err = load()
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.flights, key)
	if f.err == nil {
		m.keep(key, f.body)
	} else if !page.Passes(f.err) {
		m.forget(m.of[key]) // the user may not see it any more, or it is gone
	}
}

func (m *memory) keep(key sectionKey, body []byte) {
	m.forget(m.of[key])
	k := &kept{key, body, time.Now()}
	if k.size() > m.limit {
		return
	}
	m.of[key] = m.recent.PushFront(k)
	m.bytes += k.size()
	for m.bytes > m.limit {
		m.forget(m.recent.Back())
	}
}

func (m *memory) forget(e *list.Element) {
	if e == nil {
		return
	}
	k := m.recent.Remove(e).(*kept)
	delete(m.of, k.key)
	m.bytes -= k.size()
}

func (k *kept) size() int64 {
	return int64(len(k.body)+len(k.key.who)+len(k.key.url)+len(k.key.id)) + keptBytes
}
