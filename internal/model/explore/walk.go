package explore

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/consensus/rules"
	"github.com/quorate/quorate/internal/model"
)

// profile aims the walks at one kind of failure.
type profile int

const (
	anything      profile = iota
	churn                 // reported proposals, then elections and partial replication without commits
	skipping              // records without a leader's entry, slow proposals, skipped entries and retries
	oldTerms              // half-lost fast rounds of an old term meet fast rounds of a new one
	changes               // configuration rounds between the fast rounds
	rivals                // competing changes of two leaders
	reading               // reads of every kind
	foreignCommit         // reads while commit knowledge of later terms comes in by pre-votes of restarted members
	leasing               // lease rounds, elections, transfers, reads
	losing                // recovery from a lost quorum
	diskless              // disks that are lost, or replaced by old copies
	profiles
)

var profileNames = [profiles]string{"anything", "churn", "skipping", "old-terms", "changes", "rivals", "reading",
	"foreign-commit", "leasing", "losing", "diskless"}

// Profiles returns the names of the kinds of walks.
func Profiles() []string { return profileNames[:] }

// WalkOptions say where and how long to walk.
type WalkOptions struct {
	Rules    rules.Set
	Clusters []string // names; empty: all
	Profile  string   // of Profiles; empty: drawn for each walk
	Seed     uint64
	First    uint64        // number of the first walk
	Walks    uint64        // number of walks; 0: until the time is over
	Time     time.Duration // 0: without limit
	Length   int           // mean number of steps; 0: 70
}

// Stats counts the events of a run of walks.
type Stats struct {
	Walks, Steps                             int64
	Fast, Slow, Aborted, Elections, Inferred int64
	Hints, Reads, Snapshots                  int64
	Recoveries, Disks                        int64
	Lies                                     int64 // second payloads that a voter recorded
	Skipped                                  int64 // walks with a skipped entry in the committed log
	Changes                                  int64 // configuration entries committed
	Elapsed                                  time.Duration
}

func (o *WalkOptions) complete() (profile, error) {
	if len(o.Clusters) == 0 {
		o.Clusters = everywhere()
	}
	for _, name := range o.Clusters {
		if scenarios[name] == nil {
			return 0, fmt.Errorf("there is no cluster %q: there are %v", name, Scenarios())
		}
	}
	if o.Length == 0 {
		o.Length = 70
	}
	if o.Walks == 0 && o.Time == 0 {
		return 0, fmt.Errorf("give a number of walks, or a time")
	}
	at := profile(slices.Index(profileNames[:], o.Profile))
	if at < 0 && o.Profile != "" {
		return 0, fmt.Errorf("there is no profile %q: there are %v", o.Profile, Profiles())
	}
	return at, nil
}

// Walk takes random walks until a law breaks or the work is done. The same seed and number give the same walk.
func Walk(o WalkOptions) (*Finding, Stats, error) {
	var st Stats
	prof, err := o.complete()
	if err != nil {
		return nil, st, err
	}
	start := time.Now()
	var s model.State
	w := &walker{s: &s}
	for i := o.First; o.Walks == 0 || i < o.First+o.Walks; i++ {
		if i%64 == 0 && o.Time > 0 && time.Since(start) > o.Time {
			break
		}
		w.r = rand.New(rand.NewPCG(o.Seed, i))
		w.prepare(o.Rules, scenarios[o.Clusters[int(i%uint64(len(o.Clusters)))]], prof)
		bad := w.walk(o.Length/2 + w.r.IntN(o.Length))
		st.count(w)
		if bad != "" {
			trace, broken := shrink(w.m, slices.Clone(w.trace), bad)
			st.Elapsed = time.Since(start)
			return &Finding{Broken: broken, Walk: i, model: w.m, trace: trace}, st, nil
		}
	}
	st.Elapsed = time.Since(start)
	return nil, st, nil
}

func (st *Stats) count(w *walker) {
	st.Walks++
	st.Steps += int64(len(w.trace))
	for _, a := range w.trace {
		switch a.Kind {
		case model.Decide:
			st.Fast++
		case model.Answer:
			st.Slow++
		case model.AnswerAbort:
			st.Aborted++
		case model.Record:
			if w.s.A[a.B].Payload != 0 {
				st.Lies++
			}
		case model.Win:
			st.Elections++
		case model.Infer:
			st.Inferred++
		case model.PreVote:
			st.Hints++
		case model.Serve:
			st.Reads++
		case model.Snapshot:
			st.Snapshots++
		case model.Survive:
			st.Recoveries++
		case model.Lose:
			st.Disks++
		}
	}
	l := &w.s.Committed
	end := w.m.StoreAt(l, l.N)
	if end.Skipped != [model.MaxProposals][2]uint32{} {
		st.Skipped++
	}
	for k := range l.N {
		if l.E[k].Kind == model.ConfigEntry {
			st.Changes++
		}
	}
}

// walk takes up to so many steps and returns a broken law.
func (w *walker) walk(steps int) string {
	w.m.Begin(w.s)
	w.trace, w.queue, w.away = w.trace[:0], w.queue[:0], -1
	for try := 0; len(w.trace) < steps && try < steps*6; try++ {
		if len(w.queue) == 0 {
			w.fill()
			continue
		}
		a := w.queue[0]
		w.queue = w.queue[1:]
		if a.Kind == model.Win {
			a.M = w.someQuorum(a.A)
		}
		ok, bad := w.m.Step(w.s, a)
		if !ok {
			continue
		}
		w.trace = append(w.trace, a)
		if bad != "" {
			return bad
		}
	}
	return ""
}

// someQuorum returns the votes of a candidate, or fewer votes that are still a quorum.
func (w *walker) someQuorum(i int8) uint8 {
	x := &w.s.M[i]
	votes := x.Votes
	at, _ := w.m.Config(&x.Log)
	if !w.m.Quorum(at, votes) || w.chance(50) {
		return votes
	}
	for range 3 {
		if v := w.n(model.MaxMembers); v != i && model.Has(votes, v) && w.m.Quorum(at, votes&^model.Bit(v)) {
			votes &^= model.Bit(v)
		}
	}
	return votes
}
