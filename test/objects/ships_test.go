package objects_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/replay"
	"github.com/quorate/quorate/internal/kv"
)

// row is what was injected, what happened, and what was lost.
type row struct{ injected, happened, lost string }

// table prints rows as docs/backup.md has them.
func table(t *testing.T, rows []row) {
	t.Helper()
	var text strings.Builder
	text.WriteString("\n| injected | what happened | what was lost |\n|---|---|---|\n")
	for _, r := range rows {
		fmt.Fprintf(&text, "| %s | %s | %s |\n", r.injected, r.happened, r.lost)
	}
	t.Log(text.String())
}

// phase is a fault of the place while writes run.
type phase struct {
	name  string
	lasts time.Duration
	begin func(f *fleet)
	end   func(f *fleet)
}

func injected(n fault) func(*fleet) {
	return func(f *fleet) { f.proxy.inject(-1, always, n) }
}

func healed(f *fleet) { f.proxy.heal() }

var phases = []phase{
	{"nothing", 10 * time.Second, healed, healed},
	{"one request of four meets a fault of all kinds", 30 * time.Second, func(f *fleet) { f.anyFault() }, healed},
	{"the place answers nothing, and holds each request", time.Minute, injected(hang), healed},
	{"the network to the place is cut", time.Minute, injected(lostBefore), healed},
	{"the bucket is full", 20 * time.Second, injected(refuse(http.StatusInsufficientStorage, "InsufficientStorage")), healed},
	{"kill -9 of the server of the bucket, which is away for 10 s", 10 * time.Second, func(f *fleet) { f.gateway.kill() },
		(*fleet).startGateway},
}

// hang holds a request until its client gives up.
func hang(_ *proxy, _ http.ResponseWriter, r *http.Request) bool {
	_, _ = io.Copy(io.Discard, r.Body) // a server sees that a client has gone only after that
	<-r.Context().Done()
	panic(http.ErrAbortHandler)
}

// anyFault lets one request of four meet a fault by chance.
func (f *fleet) anyFault() {
	half := func(b []byte) []byte { return b[:len(b)/2] }
	all := []fault{refuse(503, "SlowDown"), refuse(500, "InternalError"), refuse(502, ""), refuse(409, "ConditionalRequestConflict"),
		refuse(412, "PreconditionFailed"), refuse(403, "RequestTimeTooSkewed"), refuse(403, "AccessDenied"),
		refuse(507, "InsufficientStorage"), lostBefore, lostAfter, cutAnswer, changeAnswer(flip), changeAnswer(reorder),
		changeRequest(flip), changeRequest(half), slow, hang}
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(3, 4))
	f.proxy.inject(-1, always, func(p *proxy, w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		n := rng.IntN(4 * len(all))
		mu.Unlock()
		return n < len(all) && all[n](p, w, r)
	})
}

// Ensure that three members that are processes ship through every fault of a bucket, while writes run, without making a write wait;
// that nothing of what was acknowledged is lost once the bucket is well; that kills of all members lose no more than what the
// document says; and that 200 revisions by chance are restored as they were, with leases and users.
func TestShips(t *testing.T) {
	f := newFleet(t, 15*time.Minute)
	f.ship("all", 60, 1000)
	r := f.record(10 * time.Millisecond)
	f.reaches(1)
	var rows []row
	var usual time.Duration
	for _, p := range phases {
		begun := time.Now()
		p.begin(f)
		f.pause(p.lasts)
		times := r.times(begun)
		p99, count := quantile(times, 0.99), len(times)
		p.end(f)
		wrote := r.last().revision
		healed := time.Now()
		got := f.reaches(wrote)
		if p.name == "nothing" {
			usual = p99
		}
		rows = append(rows, row{p.name + " (" + p.lasts.String() + ")",
			fmt.Sprintf("%d writes, p99 %v; all is at the place %v after the end; %s ships in turn %d", count, p99.Round(time.Millisecond),
				time.Since(healed).Round(100*time.Millisecond), got.GetMemberName(), got.GetTurn()),
			fmt.Sprintf("nothing; %d gaps", got.GetGaps())})
		if got.GetGaps() > 0 {
			t.Errorf("%s: %d gaps", p.name, got.GetGaps())
		}
		if p99 > 10*usual+250*time.Millisecond || count < int(p.lasts.Seconds())*5 {
			t.Errorf("%s: %d writes, p99 %v, and %v without a fault", p.name, count, p99, usual)
		}
	}
	rows = append(rows, f.alternate(r))
	for range 5 {
		rows = append(rows, f.killAll(r))
	}
	last := r.end()
	f.reaches(last)
	begun := time.Now()
	hashes := f.verify("all", r, 200)
	rows = append(rows, row{"all of these", fmt.Sprintf("200 of %d revisions restored in %v: keys, values, leases and users are as they "+
		"were, and %d hashes as members had them", len(r.all), time.Since(begun).Round(time.Second), hashes), "nothing"})
	table(t, rows)
}

// alternate lets the place answer and hang by turns, and compares the times of writes: other work of the machine meets both alike.
func (f *fleet) alternate(r *recorder) row {
	f.t.Helper()
	var times [2][]time.Duration
	for range 6 {
		for i, begin := range []func(*fleet){healed, injected(hang)} {
			begin(f)
			begun := time.Now()
			f.pause(5 * time.Second)
			times[i] = append(times[i], r.times(begun)...)
		}
	}
	f.proxy.heal()
	f.reaches(r.last().revision)
	fine, hangs := times[0], times[1]
	if quantile(hangs, 0.99) > 2*quantile(fine, 0.99)+20*time.Millisecond {
		f.t.Errorf("p99 %v while the place hangs, and %v while it answers", quantile(hangs, 0.99), quantile(fine, 0.99))
	}
	return row{"the place answers and hangs by turns, six times 5 s each", fmt.Sprintf("while it answers %d writes, p50 %v, p99 %v; "+
		"while it hangs %d writes, p50 %v, p99 %v", len(fine), quantile(fine, 0.5), quantile(fine, 0.99), len(hangs),
		quantile(hangs, 0.5), quantile(hangs, 0.99)), "nothing"}
}

// mostLost is what docs/backup.md says that a crash of all members may lose.
const mostLost = 2 * time.Second

// killAll kills all members at once, and says how long before it the last restorable write was acknowledged.
func (f *fleet) killAll(r *recorder) row {
	f.t.Helper()
	f.reaches(r.last().revision)
	f.pause(time.Duration(500+r.last().revision%7*300) * time.Millisecond)
	for _, n := range f.nodes {
		_ = n.process.Process.Kill()
	}
	last := r.last()
	for _, n := range f.nodes {
		n.kill()
	}
	store, c, err := f.catalog("all")
	if err != nil {
		f.t.Fatal(err)
	}
	defer store.Close()
	var reached int64
	if err := restore(f.ctx, f.t, store, c, backup.Target{}, func(s *replay.State) { reached = int64(s.At.Revision) }); err != nil {
		f.t.Errorf("after all members were killed: %v", err)
	}
	lost, before := r.after(reached)
	for _, n := range f.nodes {
		n.start()
	}
	window := last.acked.Sub(before)
	if lost == 0 {
		window = 0
	}
	if window > mostLost {
		f.t.Errorf("killed with all members: %d acknowledged writes of %v", lost, window)
	}
	return row{"kill -9 of all members at once", "restored revision " + fmt.Sprint(reached),
		fmt.Sprintf("%d writes, the last %v, if no disk comes back", lost, window.Round(time.Millisecond))}
}

// after says how many acknowledged writes follow a revision, and when the first of them was acknowledged.
func (r *recorder) after(revision int64) (count int, first time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := len(r.all) - 1; i >= 0 && r.all[i].revision > revision; i-- {
		count, first = count+1, r.all[i].acked
	}
	return count, first
}

// Ensure that the member that ships may be killed at each of its requests, of a base and of segments, before the server did the
// work and after it: the backup goes on without a gap, and its last state is the one that was written.
func TestShips_killed(t *testing.T) {
	f := newFleet(t, 20*time.Minute)
	r := f.record(20 * time.Millisecond)
	requests, kills := 0, 0
	for n, after := 0, false; ; n, after = n+1, !after {
		prefix := fmt.Sprint("n", n)
		struck := f.killAt(prefix, n, after)
		f.ship(prefix, 3600, 200)
		f.reaches(r.last().revision)
		if !struck() {
			requests = n
			break
		}
		kills++
		f.proxy.heal()
		last := r.last().revision
		got := f.reaches(last)
		if got.GetGaps() > 0 {
			t.Errorf("request %d: %d gaps", n, got.GetGaps())
		}
		if n >= mostRequests {
			break
		}
	}
	last := r.end()
	f.reaches(last)
	for n := range kills {
		f.latest(fmt.Sprint("n", n), r)
	}
	table(t, []row{{"kill -9 of the member that ships, at each of its requests",
		fmt.Sprintf("%d kills, at requests 1 to %d, before and after the server did the work", kills, requests), "nothing; no gap"}})
	if kills < 12 {
		t.Errorf("%d kills only", kills)
	}
}

const mostRequests = 40

// killAt lets the n-th request below a prefix kill the member that ships, before or after the server did the work, and starts that
// again. The function tells whether it did.
func (f *fleet) killAt(prefix string, n int, after bool) (struck func() bool) {
	count, done := 0, make(chan struct{})
	var mu sync.Mutex
	f.proxy.inject(-1, func(r *http.Request) bool {
		if !strings.Contains(r.URL.Path+"/"+r.URL.Query().Get("prefix"), "/"+prefix+"/") {
			return false
		}
		mu.Lock()
		defer mu.Unlock()
		count++
		return count == n+1
	}, func(p *proxy, _ http.ResponseWriter, r *http.Request) bool {
		if after {
			if answer := p.forward(r, r.Body); answer != nil {
				_ = answer.Body.Close()
			}
		}
		f.killShipper()
		close(done)
		panic(http.ErrAbortHandler)
	})
	return func() bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	}
}

// killShipper kills the member that ships, and starts it again.
func (f *fleet) killShipper() {
	got, err := f.status()
	if err != nil {
		return
	}
	if n := f.member(got.GetMemberName()); n != nil {
		n.kill()
		n.start()
	}
}

// latest proves the last state below a prefix, and compares the one before its last write: of the last one it is not known which
// leases and users that followed it were shipped.
func (f *fleet) latest(prefix string, r *recorder) {
	f.t.Helper()
	store, c, err := f.catalog(prefix)
	if err != nil {
		f.t.Fatalf("%s: %v", prefix, err)
	}
	defer store.Close()
	before := -1
	err = restore(f.ctx, f.t, store, c, backup.Target{}, func(s *replay.State) {
		for before+1 < len(r.all) && r.all[before+1].revision < int64(s.At.Revision) {
			before++
		}
	})
	if err != nil || before < 0 {
		f.t.Errorf("%s: %v", prefix, err)
		return
	}
	if err := restore(f.ctx, f.t, store, c, backup.Target{Revision: kv.Revision(r.all[before].revision)}, func(s *replay.State) {
		f.compare(s.Machine, r, before)
	}); err != nil {
		f.t.Errorf("%s: revision %d: %v", prefix, r.all[before].revision, err)
	}
}
