package member

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/env"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/node"
	"github.com/quorate/quorate/internal/proposals"
)

// deafLoop takes requests and answers none.
type deafLoop struct{ table *proposals.Table }

func (l deafLoop) Proposals() *proposals.Table { return l.table }

func (l deafLoop) AddReader(*node.Reader) {}

func (l deafLoop) DropReader(*node.Reader) {}

// asking are the requests of member 1, and what they are told.
type asking struct {
	requests
	known     knownLeader
	woken     int
	replaced  error // why it serves nothing
	connects  bool
	endMember context.CancelFunc
}

func newAsking(t *testing.T) *asking {
	a := &asking{}
	stopping, cancel := context.WithCancel(t.Context())
	a.known.init(1)
	a.endMember = cancel
	a.requests = requests{
		timeout: time.Minute, maxBytes: 100, clock: env.WallClock{}, stopping: stopping, wake: func() { a.woken++ },
		superseded: func() error { return a.replaced }, leader: &a.known,
		connected: func(consensus.MemberID) bool { return a.connects }, started: make(chan struct{}),
		levels: &levels{needs: kv.Needs},
	}
	return a
}

// Ensure that a request that comes before the start waits for it, and that one of a member that serves nothing is refused.
func TestRequests_awaitStart(t *testing.T) {
	superseded := errors.New("superseded")
	for _, row := range []struct {
		name string
		meet func(a *asking, cancel context.CancelFunc)
		want error
	}{
		{"it starts", func(a *asking, _ context.CancelFunc) { a.open(deafLoop{}) }, nil},
		{"it starts superseded", func(a *asking, _ context.CancelFunc) {
			a.replaced = superseded
			a.open(deafLoop{})
		}, superseded},
		{"the caller gives up", func(_ *asking, cancel context.CancelFunc) { cancel() }, context.Canceled},
		{"it stops", func(a *asking, _ context.CancelFunc) { a.endMember() }, ErrStopped},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := newAsking(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var got error
			ended := false
			go func() {
				got = a.awaitStart(ctx)
				ended = true
			}()
			synctest.Wait()
			if ended {
				t.Errorf("%s: it did not wait: %v", row.name, got)
			}
			row.meet(a, cancel)
			synctest.Wait()
			if !ended || !errors.Is(got, row.want) {
				t.Errorf("%s: ended %t with %v", row.name, ended, got)
			}
		})
	}
}

// Ensure that a request that is not answered ends with what most likely kept it waiting, and is repeated no more.
func TestRequests_command(t *testing.T) {
	put := &kv.Command{Put: &kv.PutOp{Key: []byte("k")}}
	follow := func(leader consensus.MemberID) func(*asking) {
		return func(a *asking) { a.known.follow(leader, 1, time.Now) }
	}
	for _, row := range []struct {
		name     string
		before   func(*asking)
		meet     func(*asking)
		connects bool
		want     error
	}{
		{"no leader", follow(0), follow(0), true, ErrNoLeader},
		{"it leads itself", follow(1), follow(1), false, ErrTimeout},
		{"a leader that answers nothing", follow(2), follow(2), true, ErrTimeout},
		{"the leader was lost meanwhile", follow(2), follow(3), true, ErrLeaderFailed},
		{"no connection to the leader", follow(2), follow(2), false, ErrConnectionLost},
		{"it left for a leader that is gone", follow(2), func(a *asking) {
			table := a.loop.Proposals()
			open := table.Take(1, false).Commands[0] // the opening of the session goes first
			entry := consensus.Entry{Index: 1, Kind: open.Kind, Proposal: open.ID, Payload: open.Payload}
			table.Resolve([]consensus.Entry{entry}, make([]kv.Result, 1))
			table.Take(2, false)
			follow(0)(a)
		}, true, ErrLeaderFailed},
		{"the member stops", follow(2), func(a *asking) { a.endMember() }, true, ErrStopped},
	} {
		for way, ask := range map[string]func(t *testing.T, a *asking, answer ending){
			"waits": func(t *testing.T, a *asking, answer ending) {
				go func() { answer.Complete(a.command(t.Context(), put)) }()
			},
			"does not wait": func(t *testing.T, a *asking, answer ending) {
				if _, err := a.proposeAsync(put, answer); err != nil {
					t.Error(err)
				}
			},
		} {
			synctest.Test(t, func(t *testing.T) {
				a := newAsking(t)
				a.connects = row.connects
				row.before(a)
				a.open(deafLoop{proposals.New(1, 1, 0)})
				answer := make(ending, 1)
				ask(t, a, answer)
				synctest.Wait()
				row.meet(a)
				if err := <-answer; !errors.Is(err, row.want) || a.woken == 0 {
					t.Errorf("%s, who asks %s: got %v, woken %d times", row.name, way, err, a.woken)
				}
				a.endMember()
			})
		}
	}
	a := newAsking(t)
	large := &kv.Command{Put: &kv.PutOp{Key: []byte("k"), Value: make([]byte, 100)}}
	if _, err := a.command(t.Context(), large); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a large command: %v", err)
	}
}

// ending is how a command ended.
type ending chan error

func (e ending) Complete(_ kv.Result, err error) { e <- err }

// Ensure that a command for which no goroutine waits is told of once: by its end, or not at all once it was given up.
func TestRequests_proposeAsync(t *testing.T) {
	put := &kv.Command{Put: &kv.PutOp{Key: []byte("k")}}
	synctest.Test(t, func(t *testing.T) {
		a := newAsking(t)
		if _, err := a.proposeAsync(put, make(ending)); !errors.Is(err, ErrTimeout) {
			t.Errorf("before the start: %v", err)
		}
		table := proposals.New(1, 1, 0)
		a.open(deafLoop{table})
		open := table.Take(1, false).Commands[0] // the session
		table.Resolve([]consensus.Entry{{Index: 1, Kind: open.Kind, Proposal: open.ID, Payload: open.Payload}},
			make([]kv.Result, 1))
		done, given := make(ending, 2), make(ending, 2)
		abandon, err := a.proposeAsync(put, done)
		if err != nil {
			t.Fatal(err)
		}
		give, err := a.proposeAsync(put, given)
		if err != nil {
			t.Fatal(err)
		}
		if !give() || give() {
			t.Error("it can be given up once")
		}
		var entries []consensus.Entry
		for _, p := range table.Take(2, false).Commands {
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
		if _, err := a.proposeAsync(large, done); !errors.Is(err, ErrTooLarge) {
			t.Errorf("a large command: %v", err)
		}
		a.replaced = errors.New("superseded")
		if _, err := a.proposeAsync(put, done); !errors.Is(err, a.replaced) {
			t.Errorf("a member that serves nothing: %v", err)
		}
	})
}

// readingLoop keeps the readers.
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

// Ensure that a read for which no goroutine waits is told of once: that it may be done, that it took too long, or not at all once it
// was given up; and that it is forgotten then.
func TestRequests_readAsync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsking(t)
		if _, err := a.readAsync(make(ending)); !errors.Is(err, ErrTimeout) {
			t.Errorf("before the start: %v", err)
		}
		loop := readingLoop{mu: &sync.Mutex{}, readers: map[*node.Reader]bool{}}
		a.open(loop)
		shown, given, late := make(ending, 2), make(ending, 2), make(ending, 2)
		abandon, err := a.readAsync(shown)
		if err != nil || a.woken != 1 {
			t.Fatalf("woken %d times, %v", a.woken, err)
		}
		for _, r := range loop.take() {
			r.To.Shown()
			loop.DropReader(r)
		}
		if err := <-shown; err != nil || abandon() {
			t.Errorf("ended with %v, and can be given up afterwards", err)
		}
		give, _ := a.readAsync(given)
		if !give() || give() || len(loop.take()) != 0 {
			t.Error("it can be given up once, and is forgotten then")
		}
		if _, err := a.readAsync(late); err != nil {
			t.Fatal(err)
		}
		reader := loop.take()[0]
		if err := <-late; !errors.Is(err, ErrNoLeader) || len(loop.take()) != 0 {
			t.Errorf("it took too long: %v, %d readers", err, len(loop.take()))
		}
		reader.To.Shown() // just then
		<-time.After(2 * a.timeout)
		if len(shown)+len(given)+len(late) != 0 {
			t.Error("they were told again")
		}
		a.replaced = errors.New("superseded")
		if _, err := a.readAsync(late); !errors.Is(err, a.replaced) {
			t.Errorf("a member that serves nothing: %v", err)
		}
	})
}

// Ensure that requests which come while the member ends are told of it once, and that nothing of them is left.
func TestRequests_whileStopping(t *testing.T) {
	put := &kv.Command{Put: &kv.PutOp{Key: []byte("k")}}
	a := newAsking(t)
	table := proposals.New(1, 1, 0)
	loop := readingLoop{deafLoop: deafLoop{table}, mu: &sync.Mutex{}, readers: map[*node.Reader]bool{}}
	a.wake = func() {}
	a.open(loop)
	a.endMember()
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
			func() (func() bool, error) { return a.readAsync(told) },
			func() (func() bool, error) { return a.proposeAsync(put, told) },
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
