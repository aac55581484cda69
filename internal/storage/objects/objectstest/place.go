package objectstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/storage/objects"
)

// Faults are how often the place fails, from 0 to 1.
type Faults struct {
	Busy       float64 // an operation is refused, and nothing happened
	Lost       float64 // an operation was done, and its answer is lost
	Gone       float64 // no answer, and nothing happened
	Cut        float64 // the body of a Get breaks off
	StaleList  float64 // a list is one of the past
	StaleRange int     // how many changes a list is behind at most
}

// Counts say how often each fault struck.
type Counts struct{ Busy, Lost, Gone, Cut, StaleList, Full int }

// object is what lies under a name.
type object struct {
	content []byte
	time    time.Time
}

// change is a Put or a Delete: the object is nil after a Delete.
type change struct {
	name     string
	from, to *object
}

// Place is an objects.Store in memory, with the faults of real ones. It is deterministic: the same seed and the same calls, in
// one order, give the same answers. It has no goroutine, and no clock of its own.
type Place struct {
	mu       sync.Mutex
	chance   *rand.Rand
	now      func() time.Time
	faults   Faults
	capacity int64
	used     int64
	counts   Counts
	held     map[string]*object
	changes  []change // the last ones, for lists of the past
}

// mostChanges is how many changes a list may be behind.
const mostChanges = 64

// NewPlace returns an empty place without faults. Now is the time that objects get.
func NewPlace(seed uint64, now func() time.Time) *Place {
	return &Place{chance: rand.New(rand.NewPCG(seed, seed)), now: now, held: map[string]*object{}}
}

// SetFaults sets how often the place fails from now on.
func (p *Place) SetFaults(f Faults) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = f
}

// SetCapacity sets how many bytes there is room for; 0 is no bound.
func (p *Place) SetCapacity(bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.capacity = bytes
}

// Counts returns how often each fault struck.
func (p *Place) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts
}

// Names returns all names, in order.
func (p *Place) Names() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.held))
}

// Bytes returns a copy of an object, and whether it is there.
func (p *Place) Bytes(name string) ([]byte, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.held[name]
	if o == nil {
		return nil, false
	}
	return bytes.Clone(o.content), true
}

// Remove takes an object away, as somebody may do by hand.
func (p *Place) Remove(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.set(name, nil)
}

// Replace gives an object other bytes, as somebody may do by hand.
func (p *Place) Replace(name string, content []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.set(name, &object{bytes.Clone(content), p.now()})
}

// Flip changes a bit of an object. It reports whether there is such a byte.
func (p *Place) Flip(name string, at int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.held[name]
	if o == nil || at < 0 || at >= len(o.content) {
		return false
	}
	content := bytes.Clone(o.content) // bodies that are being read stay as they were
	content[at] ^= 1
	o.content = content
	return true
}

// Cut shortens an object to its first bytes.
func (p *Place) Cut(name string, to int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.held[name]
	if o == nil || to < 0 || to > len(o.content) {
		return false
	}
	p.used -= int64(len(o.content) - to)
	o.content = bytes.Clone(o.content[:to])
	return true
}

func (p *Place) set(name string, to *object) {
	from := p.held[name]
	if from != nil {
		p.used -= int64(len(from.content))
	}
	if delete(p.held, name); to != nil {
		p.held[name] = to
		p.used += int64(len(to.content))
	}
	p.changes = append(p.changes, change{name, from, to})
	if len(p.changes) > mostChanges {
		p.changes = slices.Delete(p.changes, 0, len(p.changes)-mostChanges)
	}
}

func (p *Place) strikes(chance float64, count *int) bool {
	if chance == 0 || p.chance.Float64() >= chance {
		return false
	}
	*count++
	return true
}

// before returns the error of an operation that is not done.
func (p *Place) before(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case p.strikes(p.faults.Busy, &p.counts.Busy):
		return fmt.Errorf("%w: slow down", objects.ErrBusy)
	case p.strikes(p.faults.Gone, &p.counts.Gone):
		return fmt.Errorf("%w: no route", objects.ErrUnreachable)
	}
	return nil
}

// after returns the error of an operation that was done.
func (p *Place) after() error {
	if p.strikes(p.faults.Lost, &p.counts.Lost) {
		return fmt.Errorf("%w: the answer is lost", objects.ErrUnreachable)
	}
	return nil
}

// Put implements objects.Store.
func (p *Place) Put(ctx context.Context, name string, body io.ReadSeeker, size int64) error {
	if err := errors.Join(objects.CheckName(name), objects.CheckSize(size)); err != nil {
		return err
	}
	if _, err := body.Seek(0, io.SeekStart); err != nil {
		return err
	}
	content, err := io.ReadAll(io.LimitReader(body, size))
	if err == nil && int64(len(content)) != size {
		err = fmt.Errorf("a body of %d bytes ends after %d", size, len(content))
	}
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.before(ctx); err != nil {
		return err
	}
	switch {
	case p.held[name] != nil:
		return fmt.Errorf("%s: %w", name, objects.ErrExists)
	case p.capacity > 0 && p.used+size > p.capacity:
		p.counts.Full++
		return fmt.Errorf("put %s: %w", name, objects.ErrFull)
	}
	p.set(name, &object{content, p.now()})
	return p.after()
}

// Get implements objects.Store.
func (p *Place) Get(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	if err := objects.CheckName(name); err != nil {
		return nil, err
	}
	if offset < 0 {
		return nil, fmt.Errorf("%w: offset %d", objects.ErrName, offset)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.before(ctx); err != nil {
		return nil, err
	}
	o := p.held[name]
	if o == nil {
		return nil, fmt.Errorf("%s: %w", name, objects.ErrNotFound)
	}
	content := o.content[min(offset, int64(len(o.content))):]
	if length >= 0 {
		content = content[:min(length, int64(len(content)))]
	}
	b := &body{ctx: ctx, left: content}
	if len(content) > 0 && p.strikes(p.faults.Cut, &p.counts.Cut) {
		b.left, b.cut = content[:p.chance.IntN(len(content))], true
	}
	return b, nil
}

// body is the body of an object, which may break off.
type body struct {
	ctx  context.Context
	left []byte
	cut  bool
}

// Read implements io.Reader.
func (b *body) Read(to []byte) (int, error) {
	switch {
	case b.ctx.Err() != nil:
		return 0, b.ctx.Err()
	case len(b.left) == 0 && b.cut:
		return 0, fmt.Errorf("%w: the body broke off", objects.ErrUnreachable)
	case len(b.left) == 0:
		return 0, io.EOF
	}
	n := copy(to, b.left)
	b.left = b.left[n:]
	return n, nil
}

// Close implements io.Closer.
func (*body) Close() error { return nil }

// Stat implements objects.Store.
func (p *Place) Stat(ctx context.Context, name string) (objects.Info, error) {
	if err := objects.CheckName(name); err != nil {
		return objects.Info{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.before(ctx); err != nil {
		return objects.Info{}, err
	}
	o := p.held[name]
	if o == nil {
		return objects.Info{}, fmt.Errorf("%s: %w", name, objects.ErrNotFound)
	}
	return objects.Info{Name: name, Size: int64(len(o.content)), Time: o.time}, nil
}

// List implements objects.Store.
func (p *Place) List(ctx context.Context, prefix, after string, limit int) (found []objects.Info, more bool, err error) {
	if err := objects.CheckList(prefix, after, limit); err != nil {
		return nil, false, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.before(ctx); err != nil {
		return nil, false, err
	}
	seen := p.held
	if p.strikes(p.faults.StaleList, &p.counts.StaleList) {
		seen = p.past()
	}
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		if !strings.HasPrefix(name, prefix) || name <= after {
			continue
		}
		if len(found) == limit {
			return found, true, nil
		}
		found = append(found, objects.Info{Name: name, Size: int64(len(seen[name].content)), Time: seen[name].time})
	}
	return found, false, nil
}

// past returns the objects of some changes ago.
func (p *Place) past() map[string]*object {
	seen := maps.Clone(p.held)
	behind := min(len(p.changes), p.chance.IntN(max(p.faults.StaleRange, 0)+1))
	for _, c := range slices.Backward(p.changes[len(p.changes)-behind:]) {
		if delete(seen, c.name); c.from != nil {
			seen[c.name] = c.from
		}
	}
	return seen
}

// Delete implements objects.Store.
func (p *Place) Delete(ctx context.Context, name string) error {
	if err := objects.CheckName(name); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.before(ctx); err != nil {
		return err
	}
	if p.held[name] != nil {
		p.set(name, nil)
	}
	return p.after()
}
