package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

const (
	writers   = 4
	putEvery  = 40 * time.Millisecond // of each writer
	putTime   = 3 * time.Second
	writePath = "/written/"
)

// A writer puts keys, each once, and remembers which puts were acknowledged.
type writer struct {
	endpoints []string
	cancel    context.CancelFunc
	work      sync.WaitGroup
	mu        sync.Mutex
	acked     map[string]bool
	failed    int
	lastError error
	last      time.Time
	pause     time.Duration
}

// A tally is what a load came to.
type tally struct {
	acked, failed, lost int
	pause               time.Duration
}

func startWriter(endpoints []string) (*writer, error) {
	ctx, cancel := context.WithCancel(context.Background())
	w := &writer{endpoints: endpoints, cancel: cancel, acked: map[string]bool{}, last: time.Now()}
	for i := range writers {
		client, err := connect(endpoints)
		if err != nil {
			return nil, err
		}
		w.work.Go(func() {
			defer client.Close()
			w.put(ctx, client, i)
		})
	}
	return w, nil
}

func connect(endpoints []string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: endpoints, DialTimeout: putTime, DialKeepAliveTime: 2 * time.Second,
		DialKeepAliveTimeout: 2 * time.Second, Logger: zap.NewNop()})
}

func (w *writer) put(ctx context.Context, client *clientv3.Client, number int) {
	ticker := time.NewTicker(putEvery)
	defer ticker.Stop()
	for i := 0; ctx.Err() == nil; i++ {
		key := fmt.Sprintf("%s%d/%08d", writePath, number, i)
		call, cancel := context.WithTimeout(context.Background(), putTime)
		_, err := client.Put(call, key, key)
		cancel()
		w.note(key, err)
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

func (w *writer) note(key string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.failed++
		w.lastError = err
		return
	}
	now := time.Now()
	w.pause = max(w.pause, now.Sub(w.last))
	w.last = now
	w.acked[key] = true
}

// acknowledged returns how many writes were, so far.
func (w *writer) acknowledged() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.acked)
}

// problem is the last error of a write.
func (w *writer) problem() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lastError
}

// stop ends the load, and looks for every acknowledged write.
func (w *writer) stop(ctx context.Context) (tally, error) {
	w.cancel()
	w.work.Wait()
	t := tally{acked: len(w.acked), failed: w.failed, pause: max(w.pause, time.Since(w.last))}
	client, err := connect(w.endpoints)
	if err != nil {
		return t, err
	}
	defer client.Close()
	present := map[string]bool{}
	err = until(ctx, time.Minute, "the store can be read", func() error {
		call, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		response, err := client.Get(call, writePath, clientv3.WithPrefix())
		if err != nil {
			return err
		}
		for _, kv := range response.Kvs {
			present[string(kv.Key)] = string(kv.Value) == string(kv.Key)
		}
		return nil
	})
	if err != nil {
		return t, err
	}
	for key := range w.acked {
		if !present[key] {
			t.lost++
		}
	}
	return t, nil
}

// A row of the table.
type row struct {
	name   string
	took   time.Duration
	tally  tally
	failed error
}

func printTable(out io.Writer, rows []row) {
	fmt.Fprintln(out, "| scenario | time | writes acknowledged | of these lost | writes that failed | longest pause | |")
	fmt.Fprintln(out, "|---|---|---|---|---|---|---|")
	for _, r := range rows {
		verdict := "ok"
		if r.failed != nil {
			verdict = "FAILED: " + strings.Join(strings.Fields(r.failed.Error()), " ")
		}
		fmt.Fprintf(out, "| %s | %.0f s | %d | %d | %d | %.1f s | %s |\n", r.name, r.took.Seconds(), r.tally.acked,
			r.tally.lost,
			r.tally.failed, r.tally.pause.Seconds(), verdict)
	}
}
