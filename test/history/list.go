package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Lists records elements that are appended to lists, and what readers saw of them. Every element is appended once, by a
// transaction that compares the revision that was read: whatever is lost, doubled or reordered shows in the order of the
// elements. It is safe for concurrent use.
type Lists struct {
	mu      sync.Mutex
	begun   time.Time
	doubt   doubt
	appends map[string][]appended // by key
	reads   map[string][]listRead
}

type appended struct {
	element    string
	begin, end int64
	revision   int64
	unknown    bool
}

type listRead struct {
	elements   []string
	begin, end int64
}

// NewLists returns an empty history that begins now.
func NewLists() *Lists {
	return &Lists{begun: time.Now(), appends: map[string][]appended{}, reads: map[string][]listRead{}}
}

func (l *Lists) since() int64 { return int64(time.Since(l.begun)) }

// LosePower makes every answer count as none until power is back, and that of every operation that began before then.
func (l *Lists) LosePower() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.doubt.lost = true
}

// PowerBack ends what LosePower began.
func (l *Lists) PowerBack() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.doubt = doubt{resumed: l.since()}
}

func (l *Lists) addAppend(key, element string, begin, revision int64, unknown bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := appended{element: element, begin: begin, end: l.since(), revision: revision, unknown: unknown || l.doubt.holds(begin)}
	l.appends[key] = append(l.appends[key], a)
}

// addRead notes a read, and reports whether it may be trusted. A process whose power was lost may answer with a write that no
// disk has: a later life gives its revision to another write, and a transaction that compares with that revision would
// replace it.
func (l *Lists) addRead(key, value string, begin int64) (trusted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.doubt.holds(begin) {
		return false
	}
	l.reads[key] = append(l.reads[key], listRead{elementsOf(value), begin, l.since()})
	return true
}

// Acked returns how many appends were acknowledged.
func (l *Lists) Acked() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, appends := range l.appends {
		for i := range appends {
			if !appends[i].unknown {
				n++
			}
		}
	}
	return n
}

func elementsOf(value string) []string {
	if value == "" {
		return nil
	}
	return strings.Split(value, ",")
}

// Appenders is how many lists RunAppender uses.
const Appenders = 3

// RunAppender appends elements to lists, one after another, until ctx ends.
func RunAppender(ctx context.Context, client *clientv3.Client, id int, random *rand.Rand, lists *Lists) {
	for n := 0; ctx.Err() == nil; n++ {
		lists.appendOne(client, fmt.Sprintf("list%d", random.IntN(Appenders)), fmt.Sprintf("%d-%d", id, n))
		select {
		case <-ctx.Done():
		case <-time.After(opPause):
		}
	}
}

// appendOne is not cut short by the end of the test, so that few answers are lost.
func (l *Lists) appendOne(client *clientv3.Client, key, element string) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	begin := l.since()
	got, err := client.Get(ctx, key)
	if err != nil {
		return
	}
	value, mod := "", int64(0)
	if len(got.Kvs) > 0 {
		value, mod = string(got.Kvs[0].Value), got.Kvs[0].ModRevision
	}
	if !l.addRead(key, value, begin) {
		return
	}
	longer := strings.TrimPrefix(value+","+element, ",")
	begin = l.since()
	txn, err := client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", mod)).
		Then(clientv3.OpPut(key, longer)).Commit()
	switch {
	case err != nil:
		l.addAppend(key, element, begin, 0, true)
	case txn.Succeeded:
		l.addAppend(key, element, begin, txn.Header.Revision, false)
	default: // nothing was appended, if the answer can be trusted
		l.mu.Lock()
		trusted := !l.doubt.holds(begin)
		l.mu.Unlock()
		if !trusted {
			l.addAppend(key, element, begin, 0, true)
		}
	}
}

// CheckNow reads all lists through a client and returns what is wrong with the history. No operation may run.
func (l *Lists) CheckNow(ctx context.Context, client *clientv3.Client) ([]string, error) {
	final := map[string]string{}
	for n := range Appenders {
		key := fmt.Sprintf("list%d", n)
		got, err := client.Get(ctx, key)
		if err != nil {
			return nil, err
		}
		if len(got.Kvs) > 0 {
			final[key] = string(got.Kvs[0].Value)
		}
	}
	return l.Check(final), nil
}

// Check returns what is wrong with the history, given the lists at the end.
func (l *Lists) Check(final map[string]string) (wrong []string) {
	keys := map[string]bool{}
	for key := range l.appends {
		keys[key] = true
	}
	for key := range final {
		keys[key] = true
	}
	for key := range keys {
		for _, w := range l.checkKey(key, elementsOf(final[key])) {
			wrong = append(wrong, key+": "+w)
		}
	}
	slices.Sort(wrong)
	return wrong
}

func (l *Lists) checkKey(key string, final []string) (wrong []string) {
	place := map[string]int{}
	for i, element := range final {
		if _, twice := place[element]; twice {
			wrong = append(wrong, element+" was appended twice")
		}
		place[element] = i
	}
	known := map[string]appended{}
	for _, a := range l.appends[key] {
		known[a.element] = a
		if _, there := place[a.element]; !there && !a.unknown {
			wrong = append(wrong, fmt.Sprintf("%s was acknowledged at revision %d and is lost", a.element, a.revision))
		}
	}
	wrong = append(wrong, orderOf(final, known)...)
	return append(wrong, l.checkReads(key, final, place)...)
}

// orderOf checks that the order of a list is that of time and of revisions, and that every element was appended.
func orderOf(final []string, known map[string]appended) (wrong []string) {
	var after *appended // of the acknowledged ones behind, the one that ended first
	next := int64(0)    // revision of the acknowledged one behind
	for i := len(final) - 1; i >= 0; i-- {
		a, ok := known[final[i]]
		switch {
		case !ok:
			wrong = append(wrong, final[i]+" was appended by nobody")
			continue
		case after != nil && after.end < a.begin:
			wrong = append(wrong, fmt.Sprintf("%s stands before %s, which was acknowledged before it began",
				a.element, after.element))
		case a.unknown:
			continue
		}
		if next != 0 && a.revision >= next {
			wrong = append(wrong, fmt.Sprintf("%s has revision %d, the next one %d", a.element, a.revision, next))
		}
		next = a.revision
		if after == nil || a.end < after.end {
			after = &a
		}
	}
	return wrong
}

// checkReads checks that every reader saw a beginning of the list, and as much of it as was acknowledged or seen before.
func (l *Lists) checkReads(key string, final []string, place map[string]int) (wrong []string) {
	type fact struct {
		end  int64
		want int // elements that an operation that begins later must see
	}
	var facts []fact
	for _, a := range l.appends[key] {
		if at, there := place[a.element]; there && !a.unknown {
			facts = append(facts, fact{a.end, at + 1})
		}
	}
	for _, r := range l.reads[key] {
		facts = append(facts, fact{r.end, len(r.elements)})
	}
	slices.SortFunc(facts, func(a, b fact) int { return int(a.end - b.end) })
	reads := slices.Clone(l.reads[key])
	slices.SortFunc(reads, func(a, b listRead) int { return int(a.begin - b.begin) })
	want := 0
	for _, r := range reads {
		for len(facts) > 0 && facts[0].end < r.begin {
			want = max(want, facts[0].want)
			facts = facts[1:]
		}
		if len(r.elements) > len(final) || !slices.Equal(r.elements, final[:len(r.elements)]) {
			wrong = append(wrong, fmt.Sprintf("a reader saw %d elements that are no beginning of the list", len(r.elements)))
		}
		if len(r.elements) < want {
			wrong = append(wrong, fmt.Sprintf("a reader saw %d elements after %d were known", len(r.elements), want))
		}
	}
	return wrong
}
