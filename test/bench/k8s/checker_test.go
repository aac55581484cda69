package k8s

import (
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// history is what a correct server would tell of some keys.
type history struct {
	revision int64
	alive    map[string]*mvccpb.KeyValue
	ledger   *ledger
	told     []*clientv3.Event
}

func newHistory() *history {
	return &history{revision: 10, alive: map[string]*mvccpb.KeyValue{}, ledger: newLedger()}
}

func (h *history) put(key, value string, lease int64) *clientv3.Event {
	h.revision++
	kv := &mvccpb.KeyValue{Key: []byte(key), Value: []byte(value), ModRevision: h.revision, CreateRevision: h.revision, Version: 1,
		Lease: lease}
	before := h.alive[key]
	if before != nil {
		kv.CreateRevision, kv.Version = before.CreateRevision, before.Version+1
	}
	h.alive[key] = kv
	h.ledger.ack(written{revision: h.revision, key: key, sum: sum(kv.Value)})
	return h.tell(&clientv3.Event{Type: clientv3.EventTypePut, Kv: kv, PrevKv: before})
}

func (h *history) remove(key string) *clientv3.Event {
	h.revision++
	h.ledger.ack(written{revision: h.revision, key: key, deleted: true})
	return h.gone(key)
}

// gone deletes a key at the revision that the history has.
func (h *history) gone(key string) *clientv3.Event {
	before := h.alive[key]
	delete(h.alive, key)
	return h.tell(&clientv3.Event{Type: clientv3.EventTypeDelete, PrevKv: before,
		Kv: &mvccpb.KeyValue{Key: []byte(key), ModRevision: h.revision}})
}

func (h *history) tell(e *clientv3.Event) *clientv3.Event {
	h.told = append(h.told, e)
	return e
}

// judge lets a checker see responses, and compares it with the ledger. A progress report stands in for a response without
// events, at the history's revision.
func (h *history) judge(compacted int64, responses ...[]*clientv3.Event) string {
	var v Violations
	c := NewChecker("watch", &v, 10, nil, func() int64 { return compacted })
	for _, r := range responses {
		if len(r) == 0 {
			c.Progress(h.revision)
			continue
		}
		c.Response(r)
	}
	h.ledger.close()
	h.ledger.compare(c, h.revision)
	texts, _ := v.All()
	return strings.Join(texts, "\n")
}

func TestChecker(t *testing.T) {
	one := func(e ...*clientv3.Event) []*clientv3.Event { return e }
	for _, row := range []struct {
		name string
		run  func(h *history) string
		want string // part of a violation; none: there is none
	}{
		{"all is well", func(h *history) string {
			a, b, c, d := h.put("a", "1", 0), h.put("b", "1", 0), h.put("a", "2", 0), h.remove("a")
			return h.judge(0, one(a, b), one(c), one(d), nil)
		}, ""},
		{"a key may come back", func(h *history) string {
			a, b, c := h.put("a", "1", 0), h.remove("a"), h.put("a", "2", 0)
			return h.judge(0, one(a), one(b), one(c))
		}, ""},
		{"a lost event shows in the next previous value", func(h *history) string {
			a, _, c := h.put("a", "1", 0), h.put("a", "2", 0), h.put("a", "3", 0)
			return h.judge(0, one(a), one(c))
		}, "before revision 13 of a there was revision 12, and the last one told was 11"},
		{"a lost event is missing in the end", func(h *history) string {
			a, _ := h.put("a", "1", 0), h.put("b", "1", 0)
			return h.judge(0, one(a), nil)
		}, "revision 12 of b was acknowledged and is lost"},
		{"a lost creation", func(h *history) string {
			_, b := h.put("a", "1", 0), h.put("a", "2", 0)
			return h.judge(0, one(b))
		}, "before revision 12 of a there was revision 11, which was not told"},
		{"a lost deletion", func(h *history) string {
			a, _, c := h.put("a", "1", 0), h.remove("a"), h.put("a", "2", 0)
			return h.judge(0, one(a), one(c))
		}, "revision 13 of a has no previous value, and 11 had one"},
		{"a doubled event", func(h *history) string {
			a := h.put("a", "1", 0)
			return h.judge(0, one(a), one(a))
		}, "revision 11 of a is told twice"},
		{"a doubled event in one response", func(h *history) string {
			a := h.put("a", "1", 0)
			return h.judge(0, one(a, a))
		}, "revision 11 of a is told twice"},
		{"a doubled deletion", func(h *history) string {
			a, b := h.put("a", "1", 0), h.remove("a")
			return h.judge(0, one(a), one(b), one(b))
		}, "revision 12 of a is told twice"},
		{"an old event again", func(h *history) string {
			a, b := h.put("a", "1", 0), h.put("a", "2", 0)
			return h.judge(0, one(a), one(b), one(a))
		}, "revision 11 of a comes after revision 12"},
		{"events of two keys in the wrong order", func(h *history) string {
			a, b := h.put("a", "1", 0), h.put("b", "1", 0)
			return h.judge(0, one(b), one(a))
		}, "revision 11 of a comes after revision 12"},
		{"the wrong order in one response", func(h *history) string {
			a, b := h.put("a", "1", 0), h.put("b", "1", 0)
			return h.judge(0, one(b, a))
		}, "revision 11 of a comes after revision 12"},
		{"an event after progress", func(h *history) string {
			a, b := h.put("a", "1", 0), h.put("b", "1", 0)
			return h.judge(0, one(a), nil, one(b))
		}, "revision 12 of b comes after progress at 12"},
		{"a wrong previous value", func(h *history) string {
			a, b := h.put("a", "1", 0), h.put("a", "2", 0)
			wrong := &mvccpb.KeyValue{Key: []byte("a"), Value: []byte("7"), ModRevision: 11, CreateRevision: 11, Version: 1}
			return h.judge(0, one(a), one(&clientv3.Event{Type: b.Type, Kv: b.Kv, PrevKv: wrong}))
		}, "one is lost, or the value is wrong"},
		{"no previous value", func(h *history) string {
			a, b := h.put("a", "1", 0), h.put("a", "2", 0)
			b.PrevKv = nil
			return h.judge(10, one(a), one(b))
		}, "revision 12 of a has no previous value"},
		{"no previous value, and it is compacted", func(h *history) string {
			a, b := h.put("a", "1", 0), h.put("a", "2", 0)
			b.PrevKv = nil
			return h.judge(11, one(a), one(b))
		}, ""},
		{"a wrong version", func(h *history) string {
			a := h.put("a", "1", 0)
			a.Kv.Version = 2
			return h.judge(0, one(a))
		}, "is version 2, created at 11; want version 1, created at 11"},
		{"another value than was written", func(h *history) string {
			a := h.put("a", "1", 0)
			a.Kv.Value = []byte("2")
			return h.judge(0, one(a))
		}, "revision 11 of a is not what was written"},
		{"what nobody wrote", func(h *history) string {
			a := h.put("a", "1", 0)
			h.ledger.acked = nil
			return h.judge(0, one(a))
		}, "is told, and nobody wrote it"},
		{"a write of unknown outcome may be told", func(h *history) string {
			a := h.put("a", "1", 0)
			h.ledger.doubt(h.ledger.acked[0])
			h.ledger.acked = nil
			return h.judge(0, one(a))
		}, ""},
		{"a write of unknown outcome may be missing", func(h *history) string {
			h.ledger.doubt(written{key: "a", sum: 1})
			return h.judge(0)
		}, ""},
		{"a deletion of what is not there", func(h *history) string {
			return h.judge(0, one(h.remove("a")))
		}, "deletes a, which is not there"},
	} {
		got := row.run(newHistory())
		if row.want == "" && got != "" || !strings.Contains(got, row.want) {
			t.Errorf("%s: got %q, want %q", row.name, got, row.want)
		}
	}
}

// The keys of a lease end together, not before their time, and in one response.
func TestChecker_leases(t *testing.T) {
	now := time.Now()
	for _, row := range []struct {
		name    string
		granted time.Time
		split   int
		want    string
	}{
		{"all is well", now.Add(-time.Second), 0, ""},
		{"too early", now.Add(time.Second), 0, "ended 1s too early"},
		{"never granted", time.Time{}, 0, "which nobody was granted"},
		{"at two revisions", now.Add(-time.Second), 1, "are deleted at revisions 13 and 14"},
		{"in two responses", now.Add(-time.Second), 2, "revision 13 comes in two responses"},
	} {
		h := newHistory()
		h.put("a", "1", 7)
		h.put("b", "1", 7)
		if !row.granted.IsZero() {
			h.ledger.grant(7, row.granted)
		}
		h.ledger.expire(7, now)
		h.ledger.expire(7, now.Add(time.Minute)) // a slower watcher
		h.revision++
		h.gone("a")
		if row.split == 1 {
			h.revision++
		}
		h.gone("b")
		responses := [][]*clientv3.Event{h.told[:2], h.told[2:]}
		if row.split != 0 {
			responses = [][]*clientv3.Event{h.told[:2], h.told[2:3], h.told[3:]}
		}
		if got := h.judge(0, responses...); row.want == "" && got != "" || !strings.Contains(got, row.want) {
			t.Errorf("%s: got %q, want %q", row.name, got, row.want)
		}
	}
}

// After a relist nothing of the gap is missed, and all after it is checked.
func TestChecker_Restart(t *testing.T) {
	for _, row := range []struct {
		name string
		lose bool
		want string
	}{{"all is well", false, ""}, {"lost after the gap", true, "revision 15 of c was acknowledged and is lost"}} {
		h := newHistory()
		var v Violations
		c := NewChecker("watch", &v, 10, nil, func() int64 { return 0 })
		c.Response([]*clientv3.Event{h.put("a", "1", 0)})
		h.put("b", "1", 0)
		h.put("b", "2", 0)
		h.remove("a")
		c.Restart(h.revision, map[string]state{"b": stateOf(h.alive["b"])})
		e := h.put("c", "1", 0)
		if !row.lose {
			c.Response([]*clientv3.Event{e})
		}
		c.Response([]*clientv3.Event{h.put("b", "3", 0), h.put("a", "2", 0)}[:1])
		c.Response(h.told[len(h.told)-1:])
		h.ledger.close()
		h.ledger.compare(c, h.revision)
		texts, _ := v.All()
		if got := strings.Join(texts, "\n"); row.want == "" && got != "" || !strings.Contains(got, row.want) {
			t.Errorf("%s: got %q, want %q", row.name, got, row.want)
		}
	}
}

// All violations are counted, some are kept.
func TestViolations(t *testing.T) {
	var v Violations
	for i := range 3 * violationsKept {
		v.addf("%d", i)
	}
	if texts, n := v.All(); len(texts) != violationsKept || n != 3*violationsKept {
		t.Errorf("got %d texts of %d", len(texts), n)
	}
}
