package k8s

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Violations collects what servers did wrong: all are counted, the first ones kept. It is safe for concurrent use.
type Violations struct {
	mu    sync.Mutex
	texts []string
	count int
}

const violationsKept = 20

func (v *Violations) addf(format string, arguments ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.count++; v.count <= violationsKept {
		v.texts = append(v.texts, fmt.Sprintf(format, arguments...))
	}
}

// All returns the texts of the first ones, and how many there were.
func (v *Violations) All() ([]string, int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]string(nil), v.texts...), v.count
}

// state is the last that a watcher was told of a key.
type state struct {
	modified, created, version int64
	lease                      int64
	sum                        uint32
	dead                       bool
}

func stateOf(kv *mvccpb.KeyValue) state {
	return state{modified: kv.ModRevision, created: kv.CreateRevision, version: kv.Version, lease: kv.Lease, sum: sum(kv.Value)}
}

// seen is an event that a watcher was told of. Of a deletion, sum and lease are those of the value that it ended.
type seen struct {
	revision int64
	key      string
	deleted  bool
	sum      uint32
	lease    int64
}

// span is a range of revisions, both ends included.
type span struct{ from, to int64 }

// Checker follows what one watch of a prefix is told, and finds what is lost, doubled, out of order or has the wrong
// previous value as soon as that shows. A ledger compares later what it was told with what was written.
type Checker struct {
	name       string
	violations *Violations
	compacted  func() int64 // no watcher may count on previous values up to this revision
	states     map[string]state
	last       int64 // revision of the last event
	reached    int64 // all up to this revision was told
	told       []seen
	gaps       []span // what no client asked for: the watch was compacted away, and began anew from a list
}

// NewChecker begins with a list of all keys at a revision; the watch begins after that.
func NewChecker(name string, v *Violations, at int64, listed map[string]state, compacted func() int64) *Checker {
	c := &Checker{name: name, violations: v, compacted: compacted, states: map[string]state{}, last: at, reached: at}
	maps.Copy(c.states, listed)
	return c
}

// Restart continues from a list at a later revision, after a watch that could not go on.
func (c *Checker) Restart(at int64, listed map[string]state) {
	c.gaps = append(c.gaps, span{c.reached + 1, at})
	for key, s := range c.states {
		if _, there := listed[key]; !there {
			s.dead = true
			c.states[key] = s
		}
	}
	maps.Copy(c.states, listed)
	c.last, c.reached = max(c.last, at), max(c.reached, at)
}

// Progress notes that the watch has told all up to a revision.
func (c *Checker) Progress(revision int64) { c.reached = max(c.reached, revision) }

// Response takes the events of one response.
func (c *Checker) Response(got []*clientv3.Event) {
	before := c.last
	for _, e := range got {
		c.event(e, before)
	}
	c.reached = max(c.reached, c.last)
}

func (c *Checker) event(e *clientv3.Event, before int64) {
	key, revision := string(e.Kv.Key), e.Kv.ModRevision
	was, known := c.states[key]
	switch {
	case known && was.modified == revision:
		c.violations.addf("%s: revision %d of %s is told twice", c.name, revision, key)
		return
	case known && revision < was.modified || revision < c.last:
		c.violations.addf("%s: revision %d of %s comes after revision %d", c.name, revision, key, c.last)
		return
	case revision <= before:
		c.violations.addf("%s: revision %d comes in two responses", c.name, revision)
	case revision <= c.reached:
		c.violations.addf("%s: revision %d of %s comes after progress at %d", c.name, revision, key, c.reached)
	}
	c.previous(e, was, known && !was.dead)
	c.last = max(c.last, revision)
	now := seen{revision: revision, key: key, deleted: e.Type == clientv3.EventTypeDelete}
	if now.deleted {
		now.sum, now.lease = was.sum, was.lease
		was.dead, was.modified = true, revision
		c.states[key] = was
	} else {
		s := stateOf(e.Kv)
		now.sum, now.lease = s.sum, s.lease
		c.states[key] = s
	}
	c.told = append(c.told, now)
}

// previous compares an event with what was told of its key before.
func (c *Checker) previous(e *clientv3.Event, was state, alive bool) {
	key, revision := string(e.Kv.Key), e.Kv.ModRevision
	switch {
	case alive && e.PrevKv == nil:
		if revision-1 > c.compacted() {
			c.violations.addf("%s: revision %d of %s has no previous value, and %d had one", c.name, revision, key,
				was.modified)
		}
	case alive && stateOf(e.PrevKv) != was:
		c.violations.addf("%s: before revision %d of %s there was revision %d, and the last one told was %d: "+
			"one is lost, or the value is wrong", c.name, revision, key, e.PrevKv.ModRevision, was.modified)
	case !alive && e.PrevKv != nil:
		c.violations.addf("%s: before revision %d of %s there was revision %d, which was not told", c.name, revision, key,
			e.PrevKv.ModRevision)
	case !alive && e.Type == clientv3.EventTypeDelete:
		c.violations.addf("%s: revision %d deletes %s, which is not there", c.name, revision, key)
	}
	if e.Type == clientv3.EventTypeDelete {
		return
	}
	wantCreated, wantVersion := revision, int64(1)
	if alive {
		wantCreated, wantVersion = was.created, was.version+1
	}
	if e.Kv.CreateRevision != wantCreated || e.Kv.Version != wantVersion {
		c.violations.addf("%s: revision %d of %s is version %d, created at %d; want version %d, created at %d", c.name,
			revision, key, e.Kv.Version, e.Kv.CreateRevision, wantVersion, wantCreated)
	}
}

// skipped reports whether a revision lies where the watch had a gap.
func (c *Checker) skipped(revision int64) bool {
	return slices.ContainsFunc(c.gaps, func(g span) bool { return g.from <= revision && revision <= g.to })
}
