package ranking

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

// Row is an item, with rates a second.
type Row struct {
	Prefix, Operation string // of a prefix
	User, Host        string // of a client
	Operations, Bytes float64
	Processors        float64 // that work for it all the time, estimated
	Watchers          float64
	Share             float64 // of what it is ranked by
	Most              float64 // the most that it may have of that
}

// Summary is what all members answered.
type Summary struct {
	Rows     []Row
	Total    Row
	Floor    float64 // an item that is not in Rows has at most so much of what they are ranked by
	Covers   time.Duration
	OneOf    uint32 // of so many small calls one was counted
	Watchers uint32 // of so many watchers one was counted
}

// Ways to rank.
const (
	ByOperations = "ops"
	ByBytes      = "bytes"
	ByProcessor  = "cpu"
	ByWatchers   = "watchers"
)

// View is what is shown.
type View struct {
	By      string // one of the ways to rank
	Clients bool   // instead of prefixes
}

// Weight is the one by which members are asked to rank.
func (v View) Weight() quoratepb.TopWeight {
	switch v.By {
	case ByBytes:
		return quoratepb.TopWeight_TOP_WEIGHT_BYTES
	case ByProcessor:
		return quoratepb.TopWeight_TOP_WEIGHT_PROCESSOR
	}
	return quoratepb.TopWeight_TOP_WEIGHT_OPERATIONS
}

// ranking returns the ranking of an answer that is shown, and the one that has its watchers.
func (v View) ranking(a *quoratepb.TopAnswer) (shown, watching *quoratepb.TopRanking) {
	if v.Clients {
		return a.GetClients(), a.GetWatching()
	}
	return a.GetPrefixes(), a.GetWatched()
}

// kind is the weight by which the members have ranked.
func (v View) kind() int {
	switch v.By {
	case ByBytes:
		return bytes
	case ByProcessor:
		return processor
	}
	return operations
}

// Summarize adds what members answered.
func Summarize(answers []*quoratepb.TopAnswer, v View) *Summary {
	s := &Summary{OneOf: 1, Watchers: 1}
	calls := heavy.New(max(1, len(answers))*mostRows, v.kind())
	watches := heavy.New(max(1, len(answers))*mostRows, operations)
	for _, answer := range answers {
		covers := max(1, answer.GetCoversMs())
		s.Covers = max(s.Covers, time.Duration(covers)*time.Millisecond)
		s.OneOf = max(s.OneOf, answer.GetOneOf())
		s.Watchers = max(s.Watchers, answer.GetOneWatcherOf())
		shown, watching := v.ranking(answer)
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

// mostRows is how many rows of a ranking a member sends.
const mostRows = 128

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
func (v View) callKey(key string) string {
	if v.Clients {
		return key
	}
	return watchOperation + key
}

// join makes the rows of two sketches.
func (s *Summary) join(v View, calls, watches *heavy.Sketch) {
	called, callFloor := calls.Heaviest(math.MaxInt)
	watched, watchFloor := watches.Heaviest(math.MaxInt)
	s.Total = rowOf("\x00\x00\x00", calls.Total())
	s.Total.Watchers = float64(watches.Total()[operations])
	if v.By == ByWatchers {
		known := byKey(called)
		for _, item := range watched {
			r := rowOf(v.callKey(item.Key), known[v.callKey(item.Key)].Tally)
			r.Watchers, r.Most = float64(item.Tally[operations]), float64(item.Most)
			s.Rows = append(s.Rows, r)
		}
		s.Floor = float64(watchFloor)
	} else {
		known := byKey(watched)
		for _, item := range called {
			r := rowOf(item.Key, item.Tally)
			r.Watchers, r.Most = float64(known[watchKey(item.Key)].Tally[operations]), v.unit(item.Most)
			s.Rows = append(s.Rows, r)
		}
		s.Floor = v.unit(callFloor)
	}
	whole := v.Ranked(&s.Total)
	for i := range s.Rows {
		if whole > 0 {
			s.Rows[i].Share = min(1, v.Ranked(&s.Rows[i])/whole)
		}
	}
	slices.SortStableFunc(s.Rows, func(a, b Row) int { return cmp.Compare(v.Ranked(&b), v.Ranked(&a)) })
}

func byKey(items []heavy.Item) map[string]heavy.Item {
	m := make(map[string]heavy.Item, len(items))
	for _, item := range items {
		m[item.Key] = item
	}
	return m
}

func rowOf(key string, w heavy.Weights) Row {
	fields := strings.SplitN(key, "\x00", 4)
	return Row{Operation: fields[0], User: fields[1], Host: fields[2], Prefix: fields[3],
		Operations: float64(w[operations]) / part, Bytes: float64(w[bytes]) / part,
		Processors: float64(w[processor]) / part / float64(time.Second)}
}

// unit turns a weight by which the rows are ranked into the unit of the row.
func (v View) unit(n uint64) float64 {
	if v.By == ByProcessor {
		return float64(n) / part / float64(time.Second)
	}
	return float64(n) / part
}

// Ranked is what a row is ranked by.
func (v View) Ranked(r *Row) float64 {
	switch v.By {
	case ByBytes:
		return r.Bytes
	case ByProcessor:
		return r.Processors
	case ByWatchers:
		return r.Watchers
	}
	return r.Operations
}

// Beyond returns the rest of a list after n rows: how many rows, and the most that any item which is not shown may have.
func (s *Summary) Beyond(v View, n int) (rows int, most float64) {
	most = s.Floor
	for i := min(n, len(s.Rows)); i < len(s.Rows); i++ {
		most = max(most, s.Rows[i].Most)
	}
	return max(0, len(s.Rows)-n), most
}
