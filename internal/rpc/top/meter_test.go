package top_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/base/heavy"
	"github.com/quorate/quorate/internal/rpc/top"
)

// Ensure that keys count by what people name things by, and that no key makes a long prefix.
func TestPrefix(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for _, row := range []struct{ key, want string }{
		{"", ""}, {"a", "a"}, {"config", "config"}, {"config-000017", "config-0"},
		{"/", "/"}, {"/a", "/a"}, {"/config-000017", "/config-0"}, {"a/", "a/"}, {"a/b", "a/"}, {"/a/b", "/a/"},
		{"/registry/pods/default/web-1", "/registry/pods/"}, {"a/b/c/d/e", "a/b/c/"}, {"//", "//"}, {"///x", "///"},
		{long, "xxxxxxxx"}, {"/" + long, "/xxxxxxxx"}, {"a/" + long + "/b", "a/"},
		{strings.Repeat("y", 63) + "/" + long, strings.Repeat("y", 63) + "/"}, {strings.Repeat("y", 64) + "/b", "yyyyyyyy"},
		{"\x00\xff/k", "\x00\xff/"},
	} {
		if got := top.Prefix([]byte(row.key)); string(got) != row.want {
			t.Errorf("%.40q: got %q, want %q", row.key, got, row.want)
		}
	}
}

var begun = time.Unix(1000, 0)

func put(m *top.Meter, after time.Duration, prefix, user string, w heavy.Weights) {
	m.Take(begun.Add(after), &top.Call{Op: top.Put, Prefix: []byte(prefix), User: user, Host: "10.0.0.1", Weights: w})
}

// shown are the prefixes of a report with their weights of a kind.
func shown(r *top.Report, by int) string {
	var out []string
	for _, item := range r.Prefixes.Items {
		op, prefix := top.Prefixed(item.Key)
		out = append(out, fmt.Sprintf("%v %s %d", op, prefix, item.Tally[by]))
	}
	return strings.Join(out, ", ")
}

// Ensure that each window has what it covers, says how much that is, and forgets the rest.
func TestMeter_Report_windows(t *testing.T) {
	m := top.New(16, begun)
	for second := range 1000 {
		put(m, time.Duration(second)*time.Second, fmt.Sprintf("%d/", second/100), "u", heavy.Weights{1, 10, 100})
	}
	for _, row := range []struct {
		at       time.Duration
		window   time.Duration
		min, max time.Duration
		want     string
	}{
		{999*time.Second + 1, top.Short, 6 * time.Second, 10 * time.Second, "put 9/ 10"},
		{999*time.Second + 1, top.Long, 200 * time.Second, 300 * time.Second, "put 7/ 100, put 8/ 100, put 9/ 100"},
		{1001 * time.Second, top.Short, 6 * time.Second, 10 * time.Second, "put 9/ 6"},
		{1020 * time.Second, top.Short, 6 * time.Second, 10 * time.Second, ""},
		{2000 * time.Second, top.Long, 200 * time.Second, 300 * time.Second, ""},
		{1 << 62, top.Long, 200 * time.Second, 300 * time.Second, ""},
	} {
		r := m.Report(begun.Add(row.at), row.window, top.Operations)
		if r.Covers < row.min || r.Covers > row.max {
			t.Errorf("at %v: the window of %v covers %v", row.at, row.window, r.Covers)
		}
		seconds := uint64(r.Covers/time.Second) + 1
		if n := r.Prefixes.Total[top.Operations]; row.want != "" && (n > seconds || row.at < 1000*time.Second &&
			n < seconds-2) {
			t.Errorf("at %v: %d calls in %v", row.at, n, r.Covers)
		}
		if got := shown(&r, top.Operations); got != row.want {
			t.Errorf("at %v, window %v: got %s, want %s", row.at, row.window, got, row.want)
		}
	}
}

// Ensure that a meter that has just begun says that its windows are short yet, and ranks by what it is asked for.
func TestMeter_Report_ranks(t *testing.T) {
	m := top.New(16, begun)
	for range 10 {
		put(m, time.Second, "often/", "a", heavy.Weights{1, 10, 100})
	}
	put(m, 2*time.Second, "large/", "b", heavy.Weights{1, 1000, 100})
	m.Take(begun.Add(2*time.Second), &top.Call{Op: top.Range, Prefix: []byte("often/"), User: "c", Host: "10.0.0.2",
		Weights: heavy.Weights{1, 1, 1 << 20}})
	for _, window := range []time.Duration{top.Short, top.Long} {
		for by, want := range []string{"put often/ 10, put large/ 1, range often/ 1", "put large/ 1000, put often/ 100, " +
			"range often/ 1",
			"range often/ 1048576, put often/ 1000, put large/ 100"} {
			r := m.Report(begun.Add(3*time.Second), window, by)
			if got := shown(&r, by); got != want || r.Covers != 3*time.Second {
				t.Errorf("window %v, by %d: got %s of %v, want %s", window, by, got, r.Covers, want)
			}
			first := top.Clientele(r.Clients.Items[0].Key)
			if want := []string{"a", "b", "c"}[by]; first.User != want || first.Host == "" {
				t.Errorf("by %d: the first client is %+v, want %s", by, first, want)
			}
			if r.Prefixes.Total != (heavy.Weights{12, 1101, 1<<20 + 1100}) || r.Prefixes.Floor != 0 {
				t.Errorf("by %d: the total is %v, the floor %d", by, r.Prefixes.Total, r.Prefixes.Floor)
			}
		}
	}
}

// Ensure that one who names a million prefixes and users hides nobody who makes a twentieth of the calls, and that memory
// stays.
func TestMeter_Take_spray(t *testing.T) {
	const counters = 64
	m, r := top.New(counters, begun), rand.New(rand.NewPCG(1, 2))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range 300_000 {
		now := time.Duration(i) * time.Millisecond
		if i%20 == 0 {
			put(m, now, "work/", "alice", heavy.Weights{1, 300, 1000})
			continue
		}
		put(m, now, fmt.Sprint("spray", r.Uint64(), strings.Repeat("/", 1+i%3)), fmt.Sprint("user", r.Uint64()),
			heavy.Weights{1, 400, 1000})
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > top.Size(counters) {
		t.Errorf("it grew by %d bytes, %d are promised", grown, top.Size(counters))
	}
	for window, most := range map[time.Duration]uint64{top.Short: 1, top.Long: 2} {
		for by := range heavy.Kinds {
			r := m.Report(begun.Add(300*time.Second), window, by)
			first, all := r.Prefixes.Items[0], r.Prefixes.Total[by]
			real := all / 20
			if by == top.Bytes {
				real = all * 300 / (300 + 19*400)
			}
			if op, prefix := top.Prefixed(first.Key); op != top.Put || prefix != "work/" || first.Tally[by] > real+real/50 ||
				first.Tally[by]+most*all/counters < real-real/50 {
				t.Errorf("window %v, by %d: %q has %d of %d, about %d is real", window, by, first.Key, first.Tally[by], all,
					real)
			}
			if first := top.Clientele(r.Clients.Items[0].Key); first != (top.Client{User: "alice", Host: "10.0.0.1"}) {
				t.Errorf("window %v, by %d: the first client is %+v", window, by, first)
			}
			if floor := r.Prefixes.Floor; floor > (most+1)*all/counters {
				t.Errorf("window %v, by %d: the floor is %d of %d", window, by, floor, all)
			}
		}
	}
	runtime.KeepAlive(m)
}

// Ensure that long names are cut, and that calls whose time is before that of others are counted.
func TestMeter_Take_odd(t *testing.T) {
	m := top.New(16, begun)
	long := strings.Repeat("n", 1<<16)
	m.Take(begun.Add(time.Minute), &top.Call{Op: top.Txn, Prefix: []byte(long), User: long, Host: long,
		Weights: heavy.Weights{1, 1, 1}})
	m.Take(begun, &top.Call{Op: top.Txn, Prefix: []byte(long), User: long, Host: long, Weights: heavy.Weights{1, 1, 1}})
	r := m.Report(begun.Add(time.Minute), top.Short, top.Operations)
	op, prefix := top.Prefixed(r.Prefixes.Items[0].Key)
	client := top.Clientele(r.Clients.Items[0].Key)
	if op != top.Txn || len(prefix) != top.MaxPrefix || len(client.User) != top.MaxName || len(client.Host) != top.MaxName ||
		r.Prefixes.Items[0].Tally[top.Operations] != 2 {
		t.Errorf("%v %q of %+v, %v", op, prefix, client, r.Prefixes.Items)
	}
}

// Ensure that calls may be taken while reports are made, and that none is lost.
func TestMeter_concurrent(t *testing.T) {
	m := top.New(16, begun)
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for i := range 500 {
				put(m, time.Duration(i)*time.Millisecond, fmt.Sprint(worker, "/"), "u", heavy.Weights{1, 1, 1})
				if i%50 == 0 {
					m.Report(begun.Add(time.Duration(i)*time.Millisecond), top.Long, top.Bytes)
				}
			}
		})
	}
	all.Wait()
	if r := m.Report(begun.Add(time.Second), top.Long, top.Operations); r.Prefixes.Total[top.Operations] != 2000 {
		t.Errorf("%d calls are counted", r.Prefixes.Total[top.Operations])
	}
}

// Ensure that the counters for some bytes take no more than these, and grow with them.
func TestCountersFor(t *testing.T) {
	for bytes := int64(256 << 10); bytes < 4<<20; bytes += 64 << 10 {
		if n := top.CountersFor(bytes); top.Size(n) > bytes+bytes/8 || n < top.CountersFor(bytes-1) {
			t.Errorf("for %d bytes: %d counters, which take %d", bytes, n, top.Size(n))
		}
	}
}

// BenchmarkMeter_Take is the cost of a call that is counted: of one in 16 calls.
func BenchmarkMeter_Take(b *testing.B) {
	for _, spray := range []bool{false, true} {
		b.Run(fmt.Sprintf("spray=%t", spray), func(b *testing.B) {
			m, prefix := top.New(top.MaxCounters, begun), []byte("/registry/pods/")
			c := &top.Call{Op: top.Put, Prefix: prefix, User: "kube", Host: "10.0.0.1", Weights: heavy.Weights{1, 300, 20_000}}
			b.ReportAllocs()
			for n := uint64(0); b.Loop(); n++ {
				if spray {
					copy(prefix, fmt.Appendf(bytes.Clone(prefix)[:0], "/%x", n))
				}
				m.Take(begun.Add(time.Duration(n)*time.Microsecond), c)
			}
		})
	}
}

// Ensure that the share of the busiest prefix is of all that is done with its keys.
func TestMeter_Busiest(t *testing.T) {
	m := top.New(16, begun)
	if got := m.Busiest(begun); got != 0 {
		t.Errorf("without calls: %d", got)
	}
	for _, op := range []top.Op{top.Put, top.Range} {
		m.Take(begun.Add(time.Second), &top.Call{Op: op, Prefix: []byte("hot/"), Host: "h", Weights: heavy.Weights{1, 1, 300}})
	}
	m.Take(begun.Add(time.Second), &top.Call{Op: top.Put, Prefix: []byte("cold/"), Host: "h", Weights: heavy.Weights{900, 9000, 200}})
	if got := m.Busiest(begun.Add(2 * time.Second)); got != 75 {
		t.Errorf("got %d, want 75", got)
	}
	if got := m.Busiest(begun.Add(time.Minute)); got != 0 {
		t.Errorf("a minute later: %d", got)
	}
}
