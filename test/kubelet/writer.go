package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	writers   = 4
	putEvery  = 40 * time.Millisecond // of each writer
	writePath = "/written/"
)

// A writer puts keys, each once, and remembers which puts were acknowledged.
type writer struct {
	path      string
	cancel    context.CancelFunc
	work      sync.WaitGroup
	gate      sync.RWMutex // each put holds it to read
	held      bool         // of the scenario's goroutine
	mu        sync.Mutex
	access    access
	logins    int              // how often clients got another access
	acked     map[string]int64 // with the revision of the put
	given     int              // of the acknowledged ones that were given up
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

// startWriter lets clients put keys below a path.
func startWriter(a access, path string) (*writer, error) {
	ctx, cancel := context.WithCancel(context.Background())
	w := &writer{path: path, access: a, cancel: cancel, acked: map[string]int64{}, last: time.Now()}
	for i := range writers {
		client, err := a.connect()
		if err != nil {
			return nil, err
		}
		w.work.Go(func() { w.put(ctx, client, i) })
	}
	return w, nil
}

// put puts keys with a client, and closes it.
func (w *writer) put(ctx context.Context, client *clientv3.Client, number int) {
	defer func() { client.Close() }()
	ticker := time.NewTicker(putEvery)
	defer ticker.Stop()
	logins := 0
	for i := 0; ctx.Err() == nil; i++ {
		key := fmt.Sprintf("%s%d/%08d", w.path, number, i)
		client, logins = w.newestClient(client, logins)
		w.gate.RLock()
		call, cancel := context.WithTimeout(context.Background(), putTime)
		done, err := client.Put(call, key, key)
		cancel()
		w.note(key, done, err)
		w.gate.RUnlock()
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

// login gives all clients another access, before their next write.
func (w *writer) login(a access) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.access = a
	w.logins++
}

// newestClient replaces a client if it is not of the newest access. One that cannot log in stays the former one, whose writes
// tell.
func (w *writer) newestClient(client *clientv3.Client, logins int) (*clientv3.Client, int) {
	w.mu.Lock()
	a, now := w.access, w.logins
	w.mu.Unlock()
	if now == logins {
		return client, logins
	}
	next, err := a.connect()
	if err != nil {
		return client, logins
	}
	client.Close()
	return next, now
}

func (w *writer) note(key string, done *clientv3.PutResponse, err error) {
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
	w.acked[key] = done.Header.Revision
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

// hold keeps clients from writing: none writes when it returns. They stay connected.
func (w *writer) hold() {
	w.gate.Lock()
	w.held = true
}

// resume ends what hold began. The time between counts as no pause.
func (w *writer) resume() {
	w.mu.Lock()
	w.last = time.Now()
	w.mu.Unlock()
	w.held = false
	w.gate.Unlock()
}

// keys are the acknowledged ones.
func (w *writer) keys() map[string]int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.acked)
}

// giveUp gives up all acknowledged writes but those that are kept: the scenario goes back to a state without them.
func (w *writer) giveUp(kept map[string]int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.given += len(w.acked) - len(kept)
	w.acked = maps.Clone(kept)
}

// giveUpThese gives up writes while others may be acknowledged: the scenario goes back to a state without them.
func (w *writer) giveUpThese(gone map[string]int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := len(w.acked)
	maps.DeleteFunc(w.acked, func(key string, _ int64) bool { return gone[key] > 0 })
	w.given += before - len(w.acked)
}

// giveUpAfter gives up the acknowledged writes of later revisions, and returns how many these are. Nothing can be acknowledged
// meanwhile.
func (w *writer) giveUpAfter(revision int64) int {
	kept := w.keys()
	all := len(kept)
	maps.DeleteFunc(kept, func(_ string, r int64) bool { return r > revision })
	w.giveUp(kept)
	return all - len(kept)
}

// stop ends the load, and looks for every acknowledged write.
func (w *writer) stop(ctx context.Context) (tally, error) {
	w.cancel()
	if w.held {
		w.resume()
	}
	w.work.Wait()
	t := tally{acked: len(w.acked) + w.given, failed: w.failed, pause: max(w.pause, time.Since(w.last))}
	present, err := w.present(ctx)
	if err != nil {
		return t, err
	}
	t.lost = lost(w.acked, present)
	return t, nil
}

// lost counts the keys that are not there.
func lost(acked map[string]int64, present map[string]bool) (count int) {
	for key := range acked {
		if !present[key] {
			count++
		}
	}
	return count
}

// present are the keys that the cluster has, with the value that they got.
func (w *writer) present(ctx context.Context) (map[string]bool, error) {
	w.mu.Lock()
	a := w.access
	w.mu.Unlock()
	pairs, err := a.written(ctx, w.path)
	all := map[string]bool{}
	for _, pair := range pairs {
		all[string(pair.Key)] = string(pair.Value) == string(pair.Key)
	}
	return all, err
}

// written is all that a cluster has of what writers put below a path.
func (a access) written(ctx context.Context, path string) (pairs []*mvccpb.KeyValue, err error) {
	client, err := a.connect()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	err = until(ctx, time.Minute, "the store can be read", func() error {
		call, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		response, err := client.Get(call, path, clientv3.WithPrefix())
		if err == nil {
			pairs = response.Kvs
		}
		return err
	})
	return pairs, err
}

// A row of the table.
type row struct {
	name    string
	took    time.Duration
	tally   tally
	failed  error
	missing string // what the ground lacks for it: it did not run; empty: it ran
}

func printTable(out io.Writer, rows []row) {
	fmt.Fprintln(out, "| scenario | time | writes acknowledged | of these lost | writes that failed | longest pause | |")
	fmt.Fprintln(out, "|---|---|---|---|---|---|---|")
	for _, r := range rows {
		fmt.Fprintln(out, r)
	}
}

// String is the row as Markdown.
func (r row) String() string {
	if r.missing != "" {
		return fmt.Sprintf("| %s | - | - | - | - | - | not run, for want of %s |", r.name, r.missing)
	}
	verdict := "ok"
	if r.failed != nil {
		verdict = "FAILED: " + strings.Join(strings.Fields(r.failed.Error()), " ")
	}
	return fmt.Sprintf("| %s | %.0f s | %d | %d | %d | %.1f s | %s |", r.name, r.took.Seconds(), r.tally.acked, r.tally.lost,
		r.tally.failed, r.tally.pause.Seconds(), verdict)
}
