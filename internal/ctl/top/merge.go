package top

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/heavy"
)

// Kinds of weights of the sketches that answers are added in, but for the ones of watchers: these have watchers as their first.
const (
	operations = iota
	bytes
	processor
)

// part is of how many parts of a unit the rates of sketches count: half a call a second is five hundred.
const part = 1000

// row is an item, with rates a second.
type row struct {
	prefix, operation string // of a prefix
	user, host        string // of a client
	operations, bytes float64
	processors        float64 // that work for it all the time
	watchers          float64
	share             float64 // of what it is ranked by
	most              float64 // the most that it may have of that
}

// summary is what all members answered.
type summary struct {
	rows     []row
	total    row
	floor    float64 // an item that is not in rows has at most so much of what they are ranked by
	covers   time.Duration
	oneOf    uint32
	watchers uint32 // of so many watchers one was counted
	answered []source
	missing  []source
}

// ranking returns the ranking of an answer that is shown, and the one that has its watchers.
func (v *view) ranking(a *quoratepb.TopAnswer) (shown, watching *quoratepb.TopRanking) {
	if v.clients {
		return a.GetClients(), a.GetWatching()
	}
	return a.GetPrefixes(), a.GetWatched()
}

// kind is the weight by which the members have ranked.
func (v *view) kind() int {
	switch v.by {
	case byBytes:
		return bytes
	case byProcessor:
		return processor
	}
	return operations
}

// summarize adds what members answered.
func summarize(sources []source, v *view) *summary {
	s := &summary{oneOf: 1, watchers: 1}
	calls := heavy.New(len(sources)*mostRows, v.kind())
	watches := heavy.New(len(sources)*mostRows, operations)
	for _, one := range sources {
		if one.answer == nil {
			s.missing = append(s.missing, one)
			continue
		}
		s.answered = append(s.answered, one)
		covers := max(1, one.answer.GetCoversMs())
		s.covers = max(s.covers, time.Duration(covers)*time.Millisecond)
		s.oneOf = max(s.oneOf, one.answer.GetOneOf())
		s.watchers = max(s.watchers, one.answer.GetOneWatcherOf())
		shown, watching := v.ranking(one.answer)
		add(calls, shown, func(n uint64) uint64 { return rate(n, covers) }, countsOf)
		add(watches, watching, func(n uint64) uint64 { return n }, watchersOf)
	}
	s.join(v, calls, watches)
	return s
}

// rate makes a rate a second of a count, in parts.
func rate(n uint64, millis int64) uint64 {
	return uint64(math.Round(min(float64(n)*part*1000/float64(millis), 1<<60)))
}

func countsOf(c *quoratepb.TopCounts) heavy.Weights {
	return heavy.Weights{operations: c.GetOperations(), bytes: c.GetBytes(), processor: c.GetProcessorNs()}
}

func watchersOf(c *quoratepb.TopCounts) heavy.Weights {
	return heavy.Weights{operations: c.GetWatchers()}
}

// add adds a ranking of a member to a sketch.
func add(
	s *heavy.Sketch, r *quoratepb.TopRanking, scale func(uint64) uint64, of func(*quoratepb.TopCounts) heavy.Weights,
) {
	scaled := func(c *quoratepb.TopCounts) heavy.Weights {
		w := of(c)
		for i := range w {
			w[i] = scale(w[i])
		}
		return w
	}
	floor := scale(r.GetFloor())
	for _, row := range r.GetRows() {
		s.AddItem(heavy.Item{Key: keyOf(row), Tally: scaled(row.GetCounts()), Most: scale(row.GetMost())}, floor)
	}
	s.AddRest(scaled(r.GetTotal()), floor)
}

// mostName is what is kept of a prefix or a name, in bytes: members send no longer ones.
const mostName = 64

// keyOf is the key of an item. No part of it but the last may have a zero byte.
func keyOf(r *quoratepb.TopRow) string {
	cut := func(text string) string { return strings.ReplaceAll(text[:min(len(text), mostName)], "\x00", "") }
	return cut(r.GetOperation()) + "\x00" + cut(r.GetUser()) + "\x00" + cut(r.GetHost()) + "\x00" +
		string(r.GetPrefix()[:min(len(r.GetPrefix()), mostName)])
}

// watchOperation is the operation whose rows have the watchers of a prefix.
const watchOperation = "watch"

// watchKey is the key of the watchers of an item; empty: another operation has them.
func watchKey(key string) string {
	operation, rest, _ := strings.Cut(key, "\x00")
	if operation == "" || operation == watchOperation {
		return "\x00" + rest
	}
	return ""
}

// callKey is the key of the calls of an item that has watchers.
func (v *view) callKey(key string) string {
	if v.clients {
		return key
	}
	return watchOperation + key
}

// join makes the rows of two sketches.
func (s *summary) join(v *view, calls, watches *heavy.Sketch) {
	called, callFloor := calls.Heaviest(math.MaxInt)
	watched, watchFloor := watches.Heaviest(math.MaxInt)
	s.total = rowOf("\x00\x00\x00", calls.Total())
	s.total.watchers = float64(watches.Total()[operations])
	if v.by == byWatchers {
		known := byKey(called)
		for _, item := range watched {
			r := rowOf(v.callKey(item.Key), known[v.callKey(item.Key)].Tally)
			r.watchers, r.most = float64(item.Tally[operations]), float64(item.Most)
			s.rows = append(s.rows, r)
		}
		s.floor = float64(watchFloor)
	} else {
		known := byKey(watched)
		for _, item := range called {
			r := rowOf(item.Key, item.Tally)
			r.watchers, r.most = float64(known[watchKey(item.Key)].Tally[operations]), v.unit(item.Most)
			s.rows = append(s.rows, r)
		}
		s.floor = v.unit(callFloor)
	}
	whole := v.ranked(&s.total)
	for i := range s.rows {
		if whole > 0 {
			s.rows[i].share = min(1, v.ranked(&s.rows[i])/whole)
		}
	}
	slices.SortStableFunc(s.rows, func(a, b row) int { return cmp.Compare(v.ranked(&b), v.ranked(&a)) })
}

func byKey(items []heavy.Item) map[string]heavy.Item {
	m := make(map[string]heavy.Item, len(items))
	for _, item := range items {
		m[item.Key] = item
	}
	return m
}

func rowOf(key string, w heavy.Weights) row {
	fields := strings.SplitN(key, "\x00", 4)
	return row{operation: fields[0], user: fields[1], host: fields[2], prefix: fields[3],
		operations: float64(w[operations]) / part, bytes: float64(w[bytes]) / part,
		processors: float64(w[processor]) / part / float64(time.Second)}
}

// unit turns a weight by which the rows are ranked into the unit of the row.
func (v *view) unit(n uint64) float64 {
	if v.by == byProcessor {
		return float64(n) / part / float64(time.Second)
	}
	return float64(n) / part
}

// ranked is what a row is ranked by.
func (v *view) ranked(r *row) float64 {
	switch v.by {
	case byBytes:
		return r.bytes
	case byProcessor:
		return r.processors
	case byWatchers:
		return r.watchers
	}
	return r.operations
}

// beyond returns the rest of a list after n rows: how many rows, and the most that any item which is not shown may have.
func (s *summary) beyond(v *view, n int) (rows int, most float64) {
	most = s.floor
	for i := min(n, len(s.rows)); i < len(s.rows); i++ {
		most = max(most, s.rows[i].most)
	}
	return max(0, len(s.rows)-n), most
}
