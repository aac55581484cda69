package top

import (
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/base/heavy"
)

// Op is what a call does with keys.
type Op byte

const (
	Put Op = iota + 1
	Delete
	Txn
	Range
	Watch // messages with events that were sent
)

var words = [...]string{"", "put", "delete", "txn", "range", "watch"}

func (o Op) String() string { return words[o] }

// Kinds of weights.
const (
	Operations = iota
	Bytes      // of requests and answers
	Processor  // nanoseconds, estimated
)

// Call is what is counted of a call.
type Call struct {
	Op         Op
	Prefix     []byte // of a key, as Prefix returns it
	User, Host string
	Weights    heavy.Weights
}

// Client is where calls come from.
type Client struct{ User, Host string }

// MaxName is the most bytes of the name of a user, or of a host, that are kept.
const MaxName = 64

const (
	slots = 3
	// Short and Long are how much time the windows cover at most; a third less just after a slot was emptied.
	Short = 10 * time.Second
	Long  = 300 * time.Second
	// step is the time of a slot of the short window.
	step = Short / slots
	// longTurns is how many of them fill a slot of the long one.
	longTurns = int(Long / Short)
)

// Subjects of sketches.
const (
	ofPrefixes = iota
	ofClients
	subjects
)

// slot has a sketch for each subject and each kind of weight.
type slot [subjects][heavy.Kinds]*heavy.Sketch

func newSlot(counters int) (s slot) {
	for subject := range s {
		for by := range s[subject] {
			s[subject][by] = heavy.New(counters, by)
		}
	}
	return s
}

func (s *slot) fold(other *slot) {
	for subject := range s {
		for by := range s[subject] {
			s[subject][by].Fold(other[subject][by])
		}
	}
}

func (s *slot) reset() {
	for subject := range s {
		for by := range s[subject] {
			s[subject][by].Reset()
		}
	}
}

// ring is a window: the current slot, and those before it that are full.
type ring struct {
	slots [slots]slot
	now   int
	full  int
}

func (r *ring) current() *slot { return &r.slots[r.now] }

// turn makes the oldest slot the current one.
func (r *ring) turn() {
	r.now = (r.now + 1) % slots
	r.full = min(r.full+1, slots-1)
	r.current().reset()
}

// Meter counts calls. Use New.
type Meter struct {
	counters int

	mu          sync.Mutex
	begun       time.Time // of the current slot of short
	short, long ring
	turns       int    // of short, since long turned
	key         []byte // reused
}

// New returns a meter with so many counters in each of its sketches.
func New(counters int, now time.Time) *Meter {
	m := &Meter{counters: counters, begun: now, key: make([]byte, 0, max(1+MaxPrefix, 2*MaxName+1))}
	for i := range slots {
		m.short.slots[i], m.long.slots[i] = newSlot(counters), newSlot(counters)
	}
	return m
}

const (
	// MaxCounters is how many counters there are if memory allows it.
	MaxCounters = 128
	minCounters = 16
)

// CountersFor is how many counters a meter may have that takes so many bytes at most.
func CountersFor(bytes int64) int {
	return int(max(minCounters, min(MaxCounters, bytes/Size(1))))
}

// Size is about how much a meter takes at most.
func Size(counters int) int64 {
	// A key is shared by the sketches of a slot that hold it, at best.
	keys := int64(counters) * heavy.Kinds * (80 + 144)
	return 2 * slots * (subjects*heavy.Kinds*int64(heavy.Bytes(counters)) + keys)
}

// Take counts a call.
func (m *Meter) Take(now time.Time, c *Call) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advance(now)
	s := m.short.current()
	m.key = append(append(m.key[:0], byte(c.Op)), c.Prefix[:min(len(c.Prefix), MaxPrefix)]...)
	for by := range heavy.Kinds {
		s[ofPrefixes][by].Add(m.key, c.Weights)
	}
	m.key = AppendClient(m.key[:0], c.User, c.Host)
	for by := range heavy.Kinds {
		s[ofClients][by].Add(m.key, c.Weights)
	}
}

// AppendClient appends the key of a client, for Clientele. Names end before a zero byte: none of ours has one.
func AppendClient(key []byte, user, host string) []byte {
	key = append(key, host[:min(len(host), MaxName)]...)
	return append(append(key, 0), user[:min(len(user), MaxName)]...)
}

// advance empties the slots that are out of the windows at now.
func (m *Meter) advance(now time.Time) {
	passed := now.Sub(m.begun) / step
	if passed <= 0 {
		return
	}
	m.begun = m.begun.Add(passed * step)
	for range min(int(passed), slots*longTurns+1) {
		m.long.current().fold(m.short.current())
		if m.turns++; m.turns == longTurns {
			m.turns = 0
			m.long.turn()
		}
		m.short.turn()
	}
}

// Ranking are the heaviest items of one subject.
type Ranking struct {
	Items []heavy.Item // their keys are for Prefixed or Client
	Floor uint64       // the most that any other item may weigh
	Total heavy.Weights
}

// Report is what a meter counted in a window.
type Report struct {
	Covers            time.Duration // how much time is in it
	Prefixes, Clients Ranking
}

// Report returns the heaviest items of a window, Short or Long, by a kind of weight.
func (m *Meter) Report(now time.Time, window time.Duration, by int) Report {
	var merged [subjects]*heavy.Sketch
	for subject := range merged {
		merged[subject] = heavy.New((slots+1)*m.counters, by)
	}
	m.mu.Lock()
	m.advance(now)
	r, covers := &m.short, max(0, now.Sub(m.begun))
	if window == Long {
		r = &m.long
		covers += time.Duration(m.turns+r.full*longTurns) * step
		for subject := range merged {
			merged[subject].Fold(m.short.current()[subject][by])
		}
	} else {
		covers += time.Duration(r.full) * step
	}
	for back := range r.full + 1 {
		s := &r.slots[(r.now+slots-back)%slots]
		for subject := range merged {
			merged[subject].Fold(s[subject][by])
		}
	}
	m.mu.Unlock()
	return Report{Covers: covers, Prefixes: m.rank(merged[ofPrefixes]), Clients: m.rank(merged[ofClients])}
}

// Busiest is how many hundredths of the processor time of the short window go to one prefix of keys, whatever is done with
// them; 0: there were no calls.
func (m *Meter) Busiest(now time.Time) int64 {
	r := m.Report(now, Short, Processor).Prefixes
	of, most := map[string]uint64{}, uint64(0)
	for _, item := range r.Items {
		_, prefix := Prefixed(item.Key)
		of[prefix] += item.Tally[Processor]
		most = max(most, of[prefix])
	}
	if r.Total[Processor] == 0 {
		return 0
	}
	return int64(float64(most) / float64(r.Total[Processor]) * 100)
}

func (m *Meter) rank(s *heavy.Sketch) (r Ranking) {
	r.Items, r.Floor = s.Heaviest(m.counters)
	r.Total = s.Total()
	return r
}

// Prefixed returns what the key of an item of Report.Prefixes says.
func Prefixed(key string) (op Op, prefix string) { return Op(key[0]), key[1:] }

// Clientele returns what the key of an item of Report.Clients says.
func Clientele(key string) Client {
	host, user, _ := strings.Cut(key, "\x00")
	return Client{User: user, Host: host}
}
