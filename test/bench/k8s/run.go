package k8s

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/test/bench/latency"
)

const mostInFlight = 20_000

// Load is one step: mutations at a rate, for some time, of which the first part does not count.
type Load struct {
	Rate           float64 // mutations a second
	Warm, Length   time.Duration
	StopWhenBehind bool            // when so many mutations are in flight as are due in a second
	Opened, Closed func()          // called when the part that counts begins and ends
	AtHalf         func(time.Time) // called in a goroutine of its own in the middle of it, which Run waits for
}

// Outcome is what a step gave. Latencies count from when a request was due, but those of pages, from when each was sent.
type Outcome struct {
	Rate      float64 // acknowledged a second, of what was due in the window
	Times     [classes]latency.Histogram
	Mutations latency.Histogram
	Lag       latency.Histogram // from when a write was sent until a watcher was told
	Errors    int
	Failed    map[string]int // how often which error, or end of a watch
	Overload  bool           // ended early, or not all due was begun
	Ends      []time.Time    // of the mutations that succeeded
	Behind    int            // watchers that had not been told all within ten seconds after the step
}

// Class returns the latencies of a class.
func (o *Outcome) Class(c Class) *latency.Histogram { return &o.Times[c] }

// Run loads the cluster for one step and returns when all it began has ended.
func (s *Session) Run(ctx context.Context, l Load) *Outcome {
	begun := time.Now()
	r := newRecorder(begun.Add(l.Warm), begun.Add(l.Warm+l.Length))
	s.step.Store(r)
	var group sync.WaitGroup
	listing, stopListing := context.WithCancel(ctx)
	group.Go(func() { s.list(listing, r) })
	if l.AtHalf != nil {
		group.Go(func() {
			pause(ctx, l.Warm+l.Length/2)
			l.AtHalf(time.Now())
		})
	}
	overload := s.pace(ctx, l, begun, r)
	stopListing()
	group.Wait()
	behind := s.settle(ctx, s.latest.Load(), requestLimit)
	r.mu.Lock()
	defer r.mu.Unlock()
	return &Outcome{Rate: float64(r.all.Count()) / l.Length.Seconds(), Times: r.times, Mutations: r.all, Lag: r.lag,
		Errors: r.errors, Failed: r.failed, Overload: overload, Ends: r.ends, Behind: behind}
}

// pace begins each mutation when it is due, and returns when all have ended.
func (s *Session) pace(ctx context.Context, l Load, begun time.Time, r *recorder) (overload bool) {
	var group sync.WaitGroup
	defer group.Wait()
	limit := mostInFlight
	if l.StopWhenBehind {
		limit = int(l.Rate)
	}
	slots := make(chan struct{}, limit)
	apart := int(math.Round(l.Rate / perCycle)) // a pod's steps are about a second apart
	opened := false
	defer l.Closed()
	for i := 0; ctx.Err() == nil; {
		now := time.Now()
		if !opened && !now.Before(r.from) {
			opened = true
			l.Opened()
		}
		if !now.Before(r.to) {
			break
		}
		for ; !now.Before(begun.Add(due(i, l.Rate))); i++ {
			select {
			case slots <- struct{}{}:
			default:
				if overload = true; l.StopWhenBehind {
					return overload
				}
				r.fail("begin", errors.New("too many mutations in flight"))
				continue
			}
			s.dispatch(ctx, &group, s.schedule.at(s.next, apart), begun.Add(due(i, l.Rate)), r, slots)
			s.next++
		}
		pause(ctx, time.Until(begun.Add(due(i, l.Rate))))
	}
	return overload
}

// dispatch does one mutation as soon as that before it on the same object has ended.
func (s *Session) dispatch(
	ctx context.Context, group *sync.WaitGroup, m mutation, due time.Time, r *recorder, slots chan struct{},
) {
	c := s.prepare(m)
	if c == nil {
		<-slots
		return
	}
	before, own := c.tail, make(chan struct{})
	c.tail = own
	server := s.servers[s.next%apiServers]
	group.Go(func() {
		defer func() {
			close(own)
			<-slots
		}()
		if before != nil {
			<-before
		}
		r.done(m.class, due, s.apply(ctx, server, c))
	})
}

// list lists all pods by turns page by page and as a stream, at fixed times of each step, one after another.
func (s *Session) list(ctx context.Context, r *recorder) {
	begun := time.Now()
	for i := 1; ; i++ {
		due := begun.Add(time.Duration(i)*s.options.ListEvery - s.options.ListEvery/2)
		pause(ctx, time.Until(due))
		if ctx.Err() != nil || !due.Before(r.to) {
			return
		}
		client := s.servers[i%apiServers].clients[pods]
		class := Stream
		if i%2 == 1 || s.noStream.Load() {
			class = List
		}
		// A list that is under way when the step ends is not cut off.
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestLimit)
		var l *listing
		var err error
		if class == List {
			p := pages{resource: pods, limit: pageLimit}
			l, err = walk(limited, p, pager(client, pods, pageLimit), func(_ []*mvccpb.KeyValue, took time.Duration) {
				r.took(Page, due, took)
			})
		} else if l, err = stream(limited, pages{resource: pods}, client, nil); status.Code(err) == codes.Unimplemented {
			s.noStream.Store(true)
			cancel()
			continue
		}
		cancel()
		r.done(class, due, err)
		switch {
		case errors.Is(err, errWrong):
			s.violations.addf("%v: %v", class, err)
		case err == nil:
			s.lists.keep(l)
		}
	}
}
