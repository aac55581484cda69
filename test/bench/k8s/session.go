package k8s

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	apiServers   = 6
	catchUpLimit = 30 * time.Second // for watchers, after the last mutation
	fillTogether = 256 << 10        // bytes of objects in a transaction, of which etcd takes 1.5 MiB
	fillMost     = 100              // objects in a transaction, of which etcd takes 128
	fillWriters  = 8
)

// Options say what to load, and how.
type Options struct {
	Endpoints    []string
	Nodes, Pods  int
	PodBytes     int
	Random       bool          // values of random bytes, not of fields that recur
	EventTTL     time.Duration // at least; a lease is shared, and lives half as long again
	ListEvery    time.Duration // a list of all pods, by turns paged and streamed
	CompactEvery time.Duration // up to where the store was one such time ago
	CheckEvery   time.Duration // at least, and at most half as long again: each API server's check of each of its caches
}

// apiServer has a client for each resource, as kube-apiserver does.
type apiServer struct {
	clients [resources]*clientv3.Client
	lease   eventLease
}

// Session is the load on one cluster.
type Session struct {
	options    Options
	servers    [apiServers]*apiServer
	material   *material
	schedule   schedule
	objects    objects
	ledgers    [resources]*ledger
	first      [resources]map[string]state // what was there when the watches began
	watches    []*watch
	violations Violations
	lists      lists
	next       int // mutation
	latest     atomic.Int64
	compacted  atomic.Int64
	cancelled  atomic.Int64
	step       atomic.Pointer[recorder]
	noStream   atomic.Bool // the server has no RangeStream
	stop       context.CancelFunc
	running    sync.WaitGroup
}

// Open fills an empty cluster with the nodes' leases and the pods, and starts watches, compactions and requests for progress.
func Open(ctx context.Context, options Options) (*Session, error) {
	s := &Session{options: options, material: newMaterial(options.Random),
		schedule: schedule{nodes: options.Nodes, pods: options.Pods}}
	for r := range s.ledgers {
		s.ledgers[r] = newLedger()
	}
	for i := range s.servers {
		server := &apiServer{}
		s.servers[i] = server
		for r := range server.clients {
			var err error
			server.clients[r], err = clientv3.New(clientv3.Config{
				Endpoints: options.Endpoints, DialTimeout: 5 * time.Second,
				DialKeepAliveTime: 30 * time.Second, DialKeepAliveTimeout: 10 * time.Second, // as kube-apiserver
			})
			if err != nil {
				return nil, errors.Join(err, s.Close())
			}
		}
	}
	if err := s.fill(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("fill: %w", err), s.Close())
	}
	if err := s.begin(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("first lists: %w", err), s.Close())
	}
	return s, nil
}

func (s *Session) fill(ctx context.Context) error {
	type chunk struct {
		r        resource
		from, to int
		size     int
	}
	var chunks []chunk
	for from := 0; from < s.options.Nodes; from += fillMost {
		chunks = append(chunks, chunk{leases, from, min(from+fillMost, s.options.Nodes), leaseBytes})
	}
	together := max(1, min(fillMost, fillTogether/s.options.PodBytes))
	for from := 0; from < s.options.Pods; from += together {
		chunks = append(chunks, chunk{pods, from, min(from+together, s.options.Pods), s.options.PodBytes})
	}
	var group sync.WaitGroup
	slots := make(chan struct{}, fillWriters)
	var failure atomic.Pointer[error]
	for _, c := range chunks {
		var puts []clientv3.Op
		for number := c.from; number < c.to; number++ {
			puts = append(puts, clientv3.OpPut(c.r.key(number), string(s.material.object(number, c.size))))
		}
		slots <- struct{}{}
		group.Go(func() {
			if _, err := s.servers[0].clients[c.r].Txn(ctx).Then(puts...).Commit(); err != nil {
				failure.CompareAndSwap(nil, &err)
			}
			<-slots
		})
	}
	group.Wait()
	if err := failure.Load(); err != nil {
		return *err
	}
	return nil
}

// begin lists everything and starts what goes on until the session closes.
func (s *Session) begin(ctx context.Context) error {
	background, stop := context.WithCancel(context.Background())
	s.stop = stop
	for r := range resources {
		listed, at, err := states(ctx, s.servers[0].clients[r], r)
		if err != nil {
			return err
		}
		s.first[r] = listed
		for i, server := range s.servers {
			name := fmt.Sprintf("API server %d, watch of %v", i+1, r)
			w := &watch{resource: r, client: server.clients[r], ledger: s.ledgers[r], step: &s.step, cancelled: &s.cancelled,
				checker: NewChecker(name, &s.violations, at, listed, s.compacted.Load)}
			w.reached.Store(at)
			s.watches = append(s.watches, w)
		}
		s.latest.Store(max(s.latest.Load(), at))
	}
	s.objects.adopt(s.options.Nodes, s.options.Pods, s.first)
	for _, w := range s.watches {
		s.running.Go(func() { w.run(background) })
		s.running.Go(func() { w.askForProgress(background) })
		s.running.Go(func() { s.checks().run(background, w) })
	}
	s.running.Go(func() { s.compact(background) })
	return nil
}

func (s *Session) checks() *cacheChecks {
	return &cacheChecks{every: s.options.CheckEvery, violations: &s.violations, lists: &s.lists, step: &s.step}
}

// compact deletes history older than one or two periods, as kube-apiserver does: up to where the store was last time.
func (s *Session) compact(ctx context.Context) {
	ticker := time.NewTicker(s.options.CompactEvery)
	defer ticker.Stop()
	at := s.latest.Load()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		// Before it happens: from now on a previous value may be missing.
		s.compacted.Store(at)
		limited, cancel := context.WithTimeout(ctx, requestLimit)
		_, err := s.servers[i%apiServers].clients[leases].Compact(limited, at)
		cancel()
		if err != nil && ctx.Err() == nil {
			s.step.Load().fail("compaction", err)
		}
		at = s.latest.Load()
	}
}

// settle waits until all watchers were told all up to a revision, and returns how many were not.
func (s *Session) settle(ctx context.Context, revision int64, limit time.Duration) (behind int) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		behind = 0
		for _, w := range s.watches {
			if w.reached.Load() < revision {
				behind++
			}
		}
		if behind == 0 {
			return 0
		}
		select {
		case <-ticker.C:
		case <-limited.Done():
			return behind
		}
	}
}

// Check lists everything a last time, has an API server check its caches, ends the watches, compares all that was written,
// told and listed, and returns the first violations and how many there are. The session does nothing afterwards but Close.
func (s *Session) Check(ctx context.Context) (texts []string, count int, err error) {
	to := s.latest.Load()
	for r := range resources {
		l, err := walk(ctx, pages{resource: r, limit: pageLimit}, pager(s.servers[1].clients[r], r, pageLimit), nil)
		if err != nil {
			return nil, 0, fmt.Errorf("last list of %v: %w", r, err)
		}
		s.lists.keep(l)
		at, err := s.checks().once(ctx, s.watches[int(r)*apiServers]) // of one API server
		if err != nil {
			return nil, 0, fmt.Errorf("last check of %v: %w", r, err)
		}
		to = max(to, l.revision, at)
	}
	if s.settle(ctx, to, catchUpLimit) > 0 {
		for _, w := range s.watches {
			if at := w.reached.Load(); at < to {
				s.violations.addf("%s: stands at revision %d, the store is at %d", w.checker.name, at, to)
			}
		}
	}
	s.end()
	slices.SortFunc(s.lists.all, func(a, b *listing) int { return int(a.revision - b.revision) })
	for r := range resources {
		s.ledgers[r].close()
	}
	for _, w := range s.watches {
		s.ledgers[w.resource].compare(w.checker, to)
		if len(w.checker.gaps) > 0 {
			continue // it cannot know what a list in the gap should have had
		}
		of := slices.DeleteFunc(slices.Clone(s.lists.all), func(l *listing) bool { return l.resource != w.resource })
		replay(w.checker, s.first[w.resource], of)
	}
	texts, count = s.violations.All()
	return texts, count, nil
}

// Cancelled is how many watches a server has cancelled since the session began.
func (s *Session) Cancelled() int64 { return s.cancelled.Load() }

func (s *Session) end() {
	if s.stop != nil {
		s.stop()
	}
	s.running.Wait()
}

// Close ends what still runs.
func (s *Session) Close() error {
	s.end()
	for _, server := range s.servers {
		if server == nil {
			continue
		}
		for _, client := range server.clients {
			if client != nil {
				_ = client.Close() // says only that it was cut off
			}
		}
	}
	return nil
}
