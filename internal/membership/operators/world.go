package operators

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/quorum"
	"github.com/quorate/quorate/internal/membership"
)

// Rules are the rules that can be dropped. The zero value has them all.
type Rules struct {
	Planner         membership.Faults
	PlansAreWishes  bool // a plan does not name the configuration and the jobs that it showed
	AnyAddress      bool // peer URLs are changed without looking for the member there, and the former ones are forgotten
	NobodyAnnounces bool // a member that moved does not tell
}

// process is one process and its data directory. It is a member if the configuration holds its id.
type process struct {
	id  consensus.MemberID
	up  bool
	old bool // its directory is an old copy: it answers and never catches up
	url string
}

// job is a job of the queue, and what the laws want to know of it.
type job struct {
	membership.Job
	version  uint64
	promised int  // voters, as the plan showed them; negative: no plan was shown
	unknown  bool // when it was accepted there were jobs that the plan had not shown
}

// plan is what an operator was shown and has not begun.
type plan struct {
	spec   membership.Spec
	title  string
	voters int
	jobs   int // that there were
}

// world is a cluster, its processes, its queue of jobs, and an operator with a plan.
type world struct {
	rules     *Rules
	config    consensus.Config
	index     consensus.Index // of the configuration
	tombs     []consensus.MemberID
	processes []process
	jobs      []job
	plan      *plan
	hours     int
	drawn     consensus.MemberID // the highest id that was given out
	budget    int                // voters that there may be
	broken    string
}

const hourMS = 61 * 60 * 1000 // and a minute

func name(id consensus.MemberID) string { return fmt.Sprintf("m%d", id) }

func home(id consensus.MemberID) string { return fmt.Sprintf("http://host%d:2380", id) }

// begin is a healthy cluster of some voters.
func begin(voters int, rules *Rules) *world {
	w := &world{rules: rules, index: 10, budget: voters}
	for range voters {
		w.drawn++
		id := w.drawn
		w.config.Voters = append(w.config.Voters, id)
		w.config.Members = append(w.config.Members, consensus.Member{ID: id, Name: name(id), PeerURLs: []string{home(id)}})
		w.processes = append(w.processes, process{id: id, up: true, url: home(id)})
	}
	return w
}

func (w *world) clone() *world {
	c := *w
	c.config = w.config.Clone()
	c.tombs, c.processes, c.jobs = slices.Clone(w.tombs), slices.Clone(w.processes), slices.Clone(w.jobs)
	return &c
}

func (w *world) id() consensus.ConfigID { return consensus.ConfigID{Index: w.index, Term: 2} }

// break notes the first law that broke.
func (w *world) breaks(format string, args ...any) {
	if w.broken == "" {
		w.broken = fmt.Sprintf(format, args...)
	}
}

func (w *world) process(id consensus.MemberID) *process {
	at := slices.IndexFunc(w.processes, func(p process) bool { return p.id == id })
	if at < 0 {
		return nil
	}
	return &w.processes[at]
}

// heard reports whether others reach a member: it is up, and where another dials it.
func (w *world) heard(id consensus.MemberID) bool {
	p := w.process(id)
	known, ok := w.config.Member(id)
	return ok && p != nil && p.up && slices.Contains(known.DialURLs(), p.url)
}

// fit lists the members that could take part in a commit.
func (w *world) fit() []consensus.MemberID {
	var ids []consensus.MemberID
	for _, id := range w.config.IDs() {
		if w.heard(id) && !w.process(id).old {
			ids = append(ids, id)
		}
	}
	return ids
}

func among(voters, ids []consensus.MemberID) (n int) {
	for _, id := range voters {
		if slices.Contains(ids, id) {
			n++
		}
	}
	return n
}

// works reports whether a majority of the voters works.
func (w *world) works() bool {
	return among(w.config.Voters, w.fit()) >= quorum.Majority(len(w.config.Voters))
}

// leader is the first voter that could lead; none without a majority.
func (w *world) leader() consensus.MemberID {
	fit := w.fit()
	for _, id := range w.config.Voters {
		if slices.Contains(fit, id) && w.works() {
			return id
		}
	}
	return consensus.NoMember
}

// view is what the leader sees.
func (w *world) view() *membership.View {
	v := &membership.View{
		Leader: w.leader(), Config: w.config.Clone(), ID: w.id(), Protocol: consensus.ProtocolSingle, Settled: true,
		TermStarted: true, Last: 1000, Tombstones: slices.Sorted(slices.Values(w.tombs)), Strict: true,
		Now: int64(w.hours+1) * hourMS, Faults: w.rules.Planner,
	}
	fit := w.fit()
	for i := range v.Config.Members {
		known := &v.Config.Members[i]
		one := membership.MemberView{
			ID: known.ID, Name: known.Name, PeerURLs: known.PeerURLs, Active: w.heard(known.ID),
			CaughtUp: slices.Contains(fit, known.ID), State: "probe",
		}
		if p := w.process(known.ID); p != nil {
			one.Started, one.Match = true, 900
		}
		if one.CaughtUp {
			one.State = "replicate"
		}
		v.Members = append(v.Members, one)
	}
	return v
}

// anHour passes under one leader, which sees it.
func (w *world) anHour() {
	w.hours++
	for i := range w.jobs {
		if j := &w.jobs[i]; j.Started > 0 && !j.State.Ended() {
			j.WaitedMS += hourMS
		}
	}
}
