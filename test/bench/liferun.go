package main

import (
	"github.com/quorate/quorate/test/bench/cluster"
	"github.com/quorate/quorate/test/bench/load"

	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/test/bench/k8s"
	"github.com/quorate/quorate/test/bench/latency"
)

// lifeLoad is so many puts of values of one size over a fixed set of keys.
type lifeLoad struct{ size, keys, puts int }

func (l lifeLoad) String() string { return fmt.Sprintf("%d B", l.size) }

// lifeRun is one load of the command life.
type lifeRun struct {
	cluster *cluster.Cluster
	workers []*load.Worker
	load    lifeLoad
	times   latency.Histogram
	seconds seconds
	latest  atomic.Int64 // revision

	mu     sync.Mutex
	values func(number, size int) []byte
}

func newLifeRun(c *cluster.Cluster, workers []*load.Worker, l lifeLoad, random bool) *lifeRun {
	return &lifeRun{cluster: c, workers: workers, load: l, values: k8s.Values(random)}
}

func (r *lifeRun) put(ctx context.Context, w *load.Worker, key int) error {
	r.mu.Lock()
	value := r.values(key, r.load.size)
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, load.OperationTimeout)
	defer cancel()
	answer, err := w.Client.Put(ctx, load.KeyAt(key), string(value))
	if err != nil {
		return err
	}
	for old := r.latest.Load(); old < answer.Header.Revision; old = r.latest.Load() {
		if r.latest.CompareAndSwap(old, answer.Header.Revision) {
			break
		}
	}
	return nil
}

// fill writes each key once.
func (r *lifeRun) fill(ctx context.Context) error {
	var next atomic.Int64
	return everyWorker(r.workers, func(w *load.Worker) error {
		for key := int(next.Add(1)) - 1; key < r.load.keys; key = int(next.Add(1)) - 1 {
			if err := r.put(ctx, w, key); err != nil {
				return err
			}
		}
		return nil
	})
}

// puts does the puts, and compacts history that often, each time up to where the store was the time before.
func (r *lifeRun) puts(ctx context.Context, compactions int) (took time.Duration, err error) {
	var next atomic.Int64
	r.seconds.begun = time.Now()
	every := max(r.load.puts/compactions, 1)
	before := r.latest.Load()
	err = everyWorker(r.workers, func(w *load.Worker) error {
		for {
			n := int(next.Add(1))
			if n > r.load.puts {
				return nil
			}
			begun := time.Now()
			if err := r.put(ctx, w, w.Keys.Random.IntN(r.load.keys)); err != nil {
				return err
			}
			w.Times.Record(time.Since(begun))
			r.seconds.done()
			if n%every == 0 && n < r.load.puts {
				r.mu.Lock()
				at := before
				before = r.latest.Load()
				r.mu.Unlock()
				r.seconds.compacted()
				if _, err := w.Client.Compact(ctx, at); err != nil {
					return fmt.Errorf("compact to %d: %w", at, err)
				}
			}
		}
	})
	took = time.Since(r.seconds.begun)
	for _, w := range r.workers {
		r.times.Add(&w.Times)
	}
	return took, err
}

// forgetAll compacts to the last revision, and waits until all that this takes away is deleted.
func (r *lifeRun) forgetAll(ctx context.Context) error {
	_, err := r.cluster.Control.Compact(ctx, r.latest.Load(), clientv3.WithCompactPhysical())
	if err != nil {
		return fmt.Errorf("compact to %d: %w", r.latest.Load(), err)
	}
	return nil
}

// everyWorker does something for all workers at once.
func everyWorker(workers []*load.Worker, do func(*load.Worker) error) error {
	var group sync.WaitGroup
	failures := make([]error, len(workers))
	for i, w := range workers {
		group.Go(func() { failures[i] = do(w) })
	}
	group.Wait()
	for _, err := range failures {
		if err != nil {
			return err
		}
	}
	return nil
}

// seconds counts what was done in each second of a run.
type seconds struct {
	begun time.Time
	mu    sync.Mutex
	count []int
	marks []int // seconds in which a compaction began
}

func (s *seconds) done() {
	at := int(time.Since(s.begun) / time.Second)
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.count) <= at {
		s.count = append(s.count, 0)
	}
	s.count[at]++
}

func (s *seconds) compacted() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.marks = append(s.marks, int(time.Since(s.begun)/time.Second))
}

// whole are the counts of seconds that were whole ones.
func (s *seconds) whole() []int { return s.count[:max(len(s.count)-1, 0)] }

// lowest is the least count of a second as a part of the median, which is what a second is where nothing happens.
func (s *seconds) lowest() float64 {
	whole := slices.Sorted(slices.Values(s.whole()))
	if len(whole) == 0 {
		return math.NaN()
	}
	return float64(whole[0]) / float64(whole[len(whole)/2])
}

func (s *seconds) String() string {
	each := make([]string, 0, len(s.count))
	for i, n := range s.whole() {
		text := fmt.Sprint(n)
		if slices.Contains(s.marks, i) {
			text += "*"
		}
		each = append(each, text)
	}
	return strings.Join(each, " ")
}
