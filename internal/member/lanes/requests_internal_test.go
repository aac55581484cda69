package lanes

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/node"
	"github.com/quorate/quorate/internal/member/proposals"
)

// deafLoop takes requests and answers none.
type deafLoop struct{ table *proposals.Table }

func (l deafLoop) Proposals() *proposals.Table { return l.table }

func (l deafLoop) AddReader(*node.Reader) {}

func (l deafLoop) DropReader(*node.Reader) {}

// askedHost is a host for Requests.
type askedHost struct {
	Host
	woken    atomic.Int64
	replaced error // error of a member that serves nothing
	connects bool
	needs    level.Level
	ended    atomic.Bool
}

func (h *askedHost) Turn(Lane)                         { h.woken.Add(1) }
func (h *askedHost) Superseded() error                 { return h.replaced }
func (h *askedHost) Connected(consensus.MemberID) bool { return h.connects }
func (h *askedHost) Stopped() bool                     { return h.ended.Load() }
func (h *askedHost) Needs([]byte) level.Level          { return max(h.needs, level.First) }
func (h *askedHost) Active(needs level.Level) bool     { return needs <= level.First }

// asking are the requests of member 1.
type asking struct {
	*Requests
	host askedHost
}

func newAsking() *asking {
	a := &asking{}
	a.Requests = NewRequests(&Options{RequestTimeout: time.Minute, MaxRequestBytes: 100, Clock: env.WallClock{}}, &a.host,
		NewKnownLeader(1))
	return a
}

// ending receives the error with which a command ended.
type ending chan error

func (e ending) Complete(_ kv.Result, err error) { e <- err }

// Ensure that the Completion of a command is called once with its result, or not at all after abandon returned true.
func TestRequests_Propose(t *testing.T) {
	put := &kv.Command{Put: &kv.PutOp{Key: []byte("k")}}
	synctest.Test(t, func(t *testing.T) {
		a := newAsking()
		if _, err := a.Propose(put, make(ending)); !errors.Is(err, ErrTimeout) {
			t.Errorf("before the start: %v", err)
		}
		table := proposals.New(1, 1, 0)
		a.Open(deafLoop{table})
		open := table.Take(1, time.Time{}, false).Commands[0] // the opening of the session
		table.Resolve([]consensus.Entry{{Index: 1, Kind: open.Kind, Proposal: open.ID, Payload: open.Payload}},
			make([]kv.Result, 1))
		done, given := make(ending, 2), make(ending, 2)
		abandon, err := a.Propose(put, done)
		if err != nil {
			t.Fatal(err)
		}
		give, err := a.Propose(put, given)
		if err != nil {
			t.Fatal(err)
		}
		if !give() || give() {
			t.Error("it can be given up once")
		}
		var entries []consensus.Entry
		for _, p := range table.Take(2, time.Time{}, false).Commands {
			entries = append(entries, consensus.Entry{Index: 2, Kind: p.Kind, Proposal: p.ID, Payload: p.Payload})
		}
		table.Resolve(entries, make([]kv.Result, len(entries)))
		if err := <-done; err != nil || abandon() {
			t.Errorf("ended with %v, and can be given up afterwards", err)
		}
		<-time.After(2 * a.timeout)
		if len(done) != 0 || len(given) != 0 {
			t.Error("they were told again")
		}
		a.waiting.mu.Lock()
		if a.waiting.open.First() != nil || a.waiting.sweeps {
			t.Error("something is left")
		}
		a.waiting.mu.Unlock()
		large := &kv.Command{Put: &kv.PutOp{Key: []byte("k"), Value: make([]byte, 100)}}
		if _, err := a.Propose(large, done); !errors.Is(err, proposals.ErrTooLarge) {
			t.Errorf("a large command: %v", err)
		}
		a.host.needs = level.First + 1
		var needs *NeedsLevelError
		if _, err := a.Propose(put, done); !errors.As(err, &needs) || needs.Needs != a.host.needs {
			t.Errorf("a command of a level that is not active: %v", err)
		}
		a.host.needs = level.First
		a.host.replaced = errors.New("superseded")
		if _, err := a.Propose(put, done); !errors.Is(err, a.host.replaced) {
			t.Errorf("a member that serves nothing: %v", err)
		}
	})
}

// readingLoop holds the readers.
type readingLoop struct {
	deafLoop
	mu      *sync.Mutex // a timer drops readers
	readers map[*node.Reader]bool
}

func (l readingLoop) AddReader(r *node.Reader) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.readers[r] = true
}

func (l readingLoop) DropReader(r *node.Reader) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.readers, r)
}

// take returns the readers.
func (l readingLoop) take() []*node.Reader {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.readers))
}

// Ensure that the Completion of a read is called once, with success or a timeout, or not at all after abandon returned true;
// and that the loop forgets the read then.
func TestRequests_Read(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsking()
		if _, err := a.Read(make(ending)); !errors.Is(err, ErrTimeout) {
			t.Errorf("before the start: %v", err)
		}
		loop := readingLoop{mu: &sync.Mutex{}, readers: map[*node.Reader]bool{}}
		a.Open(loop)
		shown, given, late := make(ending, 2), make(ending, 2), make(ending, 2)
		abandon, err := a.Read(shown)
		if err != nil || a.host.woken.Load() != 1 {
			t.Fatalf("woken %d times, %v", a.host.woken.Load(), err)
		}
		for _, r := range loop.take() {
			r.To.Shown(proposals.Passage{})
			loop.DropReader(r)
		}
		if err := <-shown; err != nil || abandon() {
			t.Errorf("ended with %v, and can be given up afterwards", err)
		}
		give, _ := a.Read(given)
		if !give() || give() || len(loop.take()) != 0 {
			t.Error("it can be given up once, and is forgotten then")
		}
		if _, err := a.Read(late); err != nil {
			t.Fatal(err)
		}
		reader := loop.take()[0]
		if err := <-late; !errors.Is(err, proposals.ErrNoLeader) || len(loop.take()) != 0 {
			t.Errorf("it took too long: %v, %d readers", err, len(loop.take()))
		}
		reader.To.Shown(proposals.Passage{}) // at the same moment
		<-time.After(2 * a.timeout)
		if len(shown)+len(given)+len(late) != 0 {
			t.Error("they were told again")
		}
		a.host.replaced = errors.New("superseded")
		if _, err := a.Read(late); !errors.Is(err, a.host.replaced) {
			t.Errorf("a member that serves nothing: %v", err)
		}
	})
}

// Ensure that requests that arrive while the member stops are completed once, and that none of them is kept.
func TestRequests_whileStopping(t *testing.T) {
	put := &kv.Command{Put: &kv.PutOp{Key: []byte("k")}}
	a := newAsking()
	table := proposals.New(1, 1, 0)
	loop := readingLoop{deafLoop: deafLoop{table}, mu: &sync.Mutex{}, readers: map[*node.Reader]bool{}}
	a.Open(loop)
	a.host.ended.Store(true)
	ended := make(chan struct{})
	var sweeping sync.WaitGroup
	sweeping.Go(func() {
		for {
			select {
			case <-ended:
				return
			default:
				a.sweep()
			}
		}
	})
	told := make(ending, 1)
	for range 2000 {
		for _, begin := range []func() (func() bool, error){
			func() (func() bool, error) { return a.Read(told) },
			func() (func() bool, error) { return a.Propose(put, told) },
		} {
			if _, err := begin(); err != nil {
				t.Fatal(err)
			}
			if err := <-told; !errors.Is(err, ErrStopped) {
				t.Fatalf("ended with %v, want %v", err, ErrStopped)
			}
		}
	}
	close(ended)
	sweeping.Wait()
	a.sweep()
	own, _ := table.OpenBytes()
	if left := len(loop.take()); left > 0 || own > 0 || len(told) > 0 {
		t.Errorf("%d readers and %d bytes are left, %d were told again", left, own, len(told))
	}
}
