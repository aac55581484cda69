package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/test/bench/cluster"
	"github.com/quorate/quorate/test/bench/figures"
	"github.com/quorate/quorate/test/bench/load"
)

const (
	bulkBytes       = 192 << 10 // of a value of a burst
	bulkInFlight    = 4 << 20   // of a burst that is larger than burstAtOnce
	burstAtOnce     = 8 << 20
	lagMiB          = 24
	fillAtOnce      = 8 // puts under way while links are wide
	smallEvery      = 50 * time.Millisecond
	smallTimeout    = 30 * time.Second
	electionTimeout = time.Second // of all servers: see cluster.Launch
	quietLimit      = time.Minute // after what was large has arrived; then it is not awaited any longer
	quietLook       = 500 * time.Millisecond
	quietPerTrial   = 64 << 10 // bytes a second on all links, as heartbeats and small puts make
)

// narrowRun is one scenario on one cluster.
type narrowRun struct {
	*cluster.Cluster
	rate        int64 // bytes a second of each link
	trip        time.Duration
	snapshotMiB int
	leader      *cluster.Member // when the cluster began

	begun  time.Time
	before cluster.Carried // what the links had carried then
	queued atomic.Int64    // bytes that a small put has to wait for, on the links that it needs
	done   time.Duration   // from the begin, until all that was large has arrived
	quiet  time.Duration   // from the begin, until the links carry nothing but what they always do
	must   float64         // MiB that have to go over the busiest links
	moved  cluster.Carried

	stopped    time.Time // when a member was killed
	stoppedFor time.Duration

	mu     sync.Mutex
	puts   []smallPut
	failed int
}

// smallPut is what became of one.
type smallPut struct {
	began  time.Time
	took   time.Duration
	queue  time.Duration // that what was before it takes
	failed bool
}

// begin makes the links narrow.
func (r *narrowRun) begin() {
	r.Links.SetRate(r.rate)
	r.begun, r.before = time.Now(), r.Links.Carried()
}

// beside does something large while small puts go on, and waits until all is quiet.
func (r *narrowRun) beside(ctx context.Context, large func(ctx context.Context) error) (err error) {
	var clients []*clientv3.Client
	defer func() {
		for _, c := range clients {
			_ = c.Close() // a member may be gone
		}
	}()
	for _, m := range r.Members {
		c, err := cluster.Connect(m.ClientAddr)
		if err != nil {
			return err
		}
		clients = append(clients, c)
	}
	small, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() { r.small(small, clients) })
	err = large(ctx)
	r.done = time.Since(r.begun)
	r.queued.Store(0)
	r.awaitQuiet(ctx)
	stop()
	group.Wait()
	return errors.Join(err, ctx.Err())
}

// small begins a small put again and again, whatever became of those before.
func (r *narrowRun) small(ctx context.Context, clients []*clientv3.Client) {
	load.Steadily(ctx, smallEvery, func(i int) func() {
		select {
		case <-r.Members[i%len(clients)].Ended: // its clients go to another one
			return func() {}
		default:
			return func() { r.putSmall(context.WithoutCancel(ctx), clients[i%len(clients)], i) }
		}
	})
}

func (r *narrowRun) putSmall(ctx context.Context, c *clientv3.Client, i int) {
	ctx, cancel := context.WithTimeout(ctx, smallTimeout)
	defer cancel()
	p := smallPut{began: time.Now(), queue: r.wait(r.queued.Load())}
	_, err := c.Put(ctx, fmt.Sprintf("small/%d", i), "a small value")
	p.took, p.failed = time.Since(p.began), err != nil
	r.mu.Lock()
	defer r.mu.Unlock()
	r.puts = append(r.puts, p)
}

// wait is how long so many bytes take over one link.
func (r *narrowRun) wait(bytes int64) time.Duration {
	return time.Duration(float64(max(0, bytes)) / float64(r.rate) * float64(time.Second))
}

// awaitQuiet notes when the links began to carry little.
func (r *narrowRun) awaitQuiet(ctx context.Context) {
	until := time.Now().Add(quietLimit)
	for calm := 0; calm < 3 && ctx.Err() == nil; {
		if time.Now().After(until) {
			r.quiet = time.Since(r.begun)
			break
		}
		before, at := r.Links.Carried(), time.Since(r.begun)
		cluster.Pause(ctx, quietLook)
		if sum := r.Links.Carried().Since(before).Sum(); float64(sum) > quietPerTrial*quietLook.Seconds() {
			calm = 0
			continue
		}
		if calm++; calm == 1 {
			r.quiet = at
		}
	}
	r.moved = r.Links.Carried().Since(r.before)
}

// burst puts large values through the leader; in the middle it may kill a member.
func (r *narrowRun) burst(ctx context.Context, size int, victim *cluster.Member) error {
	c, err := r.ConnectAll(1)
	if err != nil {
		return err
	}
	defer func() { _ = c[0].Close() }()
	if victim == nil {
		// Clients of the leader, so that a value crosses each of two links once.
		c[0].SetEndpoints(r.leader.ClientAddr)
	}
	r.begin()
	inFlight := size
	if size > burstAtOnce {
		inFlight = bulkInFlight
	}
	return r.beside(ctx, func(ctx context.Context) error {
		slots := make(chan struct{}, max(1, inFlight/bulkBytes))
		var group sync.WaitGroup
		enough := time.Now().Add(2*r.wait(int64(size)) + quietLimit)
		for i := range size / bulkBytes {
			if slots <- struct{}{}; time.Now().After(enough) {
				break // what was not sent is seen in what the links carried, and had to
			}
			value := bulkValue(i)
			r.queued.Add(bulkBytes)
			r.must += float64(bulkBytes) / (1 << 20)
			group.Go(func() {
				limited, cancel := context.WithTimeout(ctx, smallTimeout)
				defer cancel()
				if _, err := c[0].Put(limited, fmt.Sprintf("bulk/%06d", i), value); err != nil {
					r.mu.Lock()
					r.failed++
					r.mu.Unlock()
				}
				r.queued.Add(-bulkBytes)
				<-slots
			})
		}
		if victim != nil {
			cluster.Pause(ctx, r.wait(int64(size/2)))
			r.stopped, r.stoppedFor = time.Now(), electionTimeout
			victim.Signal(syscall.SIGKILL)
		}
		group.Wait()
		return nil
	})
}

// lag lets a member miss much, and start again on narrow links. Then another one may be killed, so that nothing can commit
// until the first one has it all.
func (r *narrowRun) lag(ctx context.Context, kill bool) error {
	late, other := r.followers()
	late.Signal(syscall.SIGKILL)
	<-late.Ended
	if err := r.fill(ctx, lagMiB<<20); err != nil {
		return err
	}
	target, err := r.applied(ctx, r.leader)
	if err != nil {
		return err
	}
	r.begin()
	r.must = lagMiB
	if err := r.Launch(late); err != nil {
		return err
	}
	has := r.appliedBy(ctx, late, target)
	from, to := slices.Index(r.Members, r.leader), slices.Index(r.Members, late)
	return r.beside(ctx, func(ctx context.Context) error {
		killed := false
		for !has() && ctx.Err() == nil {
			cluster.Pause(ctx, cluster.RetryEvery)
			left := lagMiB<<20 - r.Links.Carried().Since(r.before)[from][to]
			if kill && !killed && left < 2*lagMiB<<20/3 {
				killed = true
				r.stopped, r.stoppedFor = time.Now(), r.wait(left)
				other.Signal(syscall.SIGKILL)
			}
			if killed {
				r.queued.Store(left)
			}
		}
		return nil
	})
}

// snapshot lets a member miss so much that the others have cut their logs above it.
func (r *narrowRun) snapshot(ctx context.Context) error {
	late, _ := r.followers()
	late.Signal(syscall.SIGKILL)
	<-late.Ended
	if err := r.fill(ctx, r.snapshotMiB<<20); err != nil {
		return err
	}
	const entries, writers = 12_000, 32 // etcd keeps 5,000 and cuts every 10,000
	workers, err := load.Open(ctx, &cluster.Cluster{Members: []*cluster.Member{r.leader}}, writers)
	if err != nil {
		return err
	}
	err = load.Each(workers, func(w *load.Worker) error {
		for range entries / writers {
			if err := load.Put(ctx, w); err != nil {
				return err
			}
		}
		return nil
	})
	if err = errors.Join(err, load.Close(workers)); err != nil {
		return err
	}
	target, err := r.applied(ctx, r.leader)
	if err != nil {
		return err
	}
	r.begin()
	r.must = float64(r.snapshotMiB)
	if err := r.Launch(late); err != nil {
		return err
	}
	has := r.appliedBy(ctx, late, target)
	return r.beside(ctx, func(ctx context.Context) error {
		for !has() && ctx.Err() == nil {
			cluster.Pause(ctx, cluster.RetryEvery)
		}
		return nil
	})
}

// applied is up to where a member has applied the log.
func (r *narrowRun) applied(ctx context.Context, m *cluster.Member) (uint64, error) {
	limited, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	status, err := r.Control.Status(limited, m.ClientAddr)
	if err != nil {
		return 0, err
	}
	return status.RaftAppliedIndex, nil
}

// appliedBy reports whether a member has applied the log up to an index; one that does not answer has not.
func (r *narrowRun) appliedBy(ctx context.Context, m *cluster.Member, target uint64) func() bool {
	return func() bool {
		index, err := r.applied(ctx, m)
		return err == nil && index >= target
	}
}

// followers are the two members that do not lead.
func (r *narrowRun) followers() (first, second *cluster.Member) {
	others := slices.DeleteFunc(slices.Clone(r.Members), func(m *cluster.Member) bool { return m == r.leader })
	return others[0], others[1]
}

// fill puts so many bytes through the leader, over links that are as fast as the machine.
func (r *narrowRun) fill(ctx context.Context, size int) error {
	c, err := cluster.Connect(r.leader.ClientAddr)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	var group sync.WaitGroup
	slots, failures := make(chan struct{}, fillAtOnce), make([]error, size/bulkBytes)
	for i := range failures {
		slots <- struct{}{}
		group.Go(func() {
			_, failures[i] = c.Put(ctx, fmt.Sprintf("lag/%06d", i), bulkValue(i))
			<-slots
		})
	}
	group.Wait()
	if err := errors.Join(failures...); err != nil {
		return fmt.Errorf("fill: %w", err)
	}
	return nil
}

// bulkValue has random bytes.
func bulkValue(i int) string {
	var text strings.Builder
	source := rand.NewChaCha8([32]byte{byte(i), byte(i >> 8), 5})
	_, _ = io.CopyN(&text, source, bulkBytes) // neither fails
	return text.String()
}

// row is what came of it.
func (r *narrowRun) row(name string) figures.Row {
	f := figures.NewRow(name)
	var took []time.Duration
	var ends []time.Time
	var queue time.Duration
	var timesQueue []float64
	for _, p := range r.puts {
		queue = max(queue, p.queue)
		if p.failed {
			continue
		}
		took, ends = append(took, p.took), append(ends, p.began.Add(p.took))
		if p.began.Before(r.stopped) && p.began.Add(p.took).After(r.stopped) {
			p.queue = max(p.queue, r.stopped.Sub(p.began)+r.stoppedFor)
		}
		timesQueue = append(timesQueue, float64(p.took)/float64(p.queue+3*r.trip))
	}
	f.Set(figures.Done, float64(len(took)))
	f.Set(figures.Failures, float64(len(r.puts)-len(took)))
	f.Set(figures.LargeFailures, float64(r.failed))
	f.Set(figures.MedianMillis, figures.Millis(quantile(took, 0.50)))
	f.Set(figures.P99Millis, figures.Millis(quantile(took, 0.99)))
	f.Set(figures.MaxMillis, figures.Millis(quantile(took, 1)))
	f.Set(figures.TimesQueue, quantile(timesQueue, 0.99))
	f.Set(figures.GapSeconds, load.LongestGap(ends, r.begun, r.begun.Add(r.quiet)).Seconds())
	f.Set(figures.QueueSeconds, queue.Seconds())
	links := slices.Concat(r.moved...)
	slices.Sort(links)
	mib := func(bytes int64) float64 { return float64(bytes) / (1 << 20) }
	busiest, second := links[len(links)-1], links[len(links)-2]
	f.Set(figures.MustMiB, r.must)
	f.Set(figures.BusiestMiB, mib(busiest))
	f.Set(figures.SecondMiB, mib(second))
	f.Set(figures.OtherLinksMiB, mib(r.moved.Sum()-busiest-second))
	f.Set(figures.ArrivedSeconds, r.done.Seconds())
	f.Set(figures.QuietSeconds, r.quiet.Seconds())
	return f
}

// quantile sorts values and returns the one at a share of them.
func quantile[T cmp.Ordered](values []T, share float64) (at T) {
	if len(values) == 0 {
		return at
	}
	slices.Sort(values)
	return values[int(share*float64(len(values)-1))]
}
