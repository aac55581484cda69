package decide_test

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorate/quorate/operator/internal/decide"
)

// world is a made-up Kubernetes with a cluster of members in it. A member is its directory (disk) and, while its pod runs
// on a node that is well, a process.
type world struct {
	rand   *rand.Rand
	want   decide.Want
	kept   decide.Kept
	claims map[string]*decide.Claim
	pods   map[string]*decide.Pod
	node   map[string]int // of a pod
	lost   [4]bool        // nodes
	drain  [4]bool
	disk   map[string]bool // the claim has the member's data
	// The cluster, as its log has it: it exists as long as a quorum of the voters has disks.
	voters, learners map[string]bool
	ids              map[string]uint64
	cordoned         map[string]bool
	job              *job
	nextID           uint64
	revision         int64
	names            map[string]bool // that were ever used by a claim
	broken           string          // a template with which no process starts
	fault            string          // a law that was broken
}

type job struct {
	id      uint64
	add     string
	remove  string
	cancel  bool
	started int
}

func newWorld(seed uint64, members int) *world {
	return &world{rand: rand.New(rand.NewPCG(seed, 1)), want: decide.Want{Prefix: "c-", Members: members, Template: "a",
		Bytes: 1,
		Zones: []string{"x", "y", "z"}, ReplaceAfter: 30 * time.Second}, claims: map[string]*decide.Claim{},
		pods: map[string]*decide.Pod{}, node: map[string]int{}, disk: map[string]bool{}, voters: map[string]bool{},
		learners: map[string]bool{}, ids: map[string]uint64{}, cordoned: map[string]bool{}, names: map[string]bool{}}
}

// up tells whether the process of a member runs and has its data.
func (w *world) up(name string) bool {
	p := w.pods[name]
	return p != nil && p.Running && !p.Recovers && w.disk[name] && !w.lost[w.node[name]]
}

func (w *world) working() (n int) {
	for name := range w.voters {
		if w.up(name) {
			n++
		}
	}
	return n
}

func (w *world) quorum() bool {
	return len(w.voters) > 0 && w.working() >= decide.Quorum(len(w.voters))
}

func sorted[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// observe is what the operator sees.
func (w *world) observe() *decide.Observed {
	o := &decide.Observed{Want: w.want, Kept: w.kept}
	for _, name := range sorted(w.claims) {
		o.Claims = append(o.Claims, *w.claims[name])
	}
	for _, key := range sorted(w.pods) {
		p := *w.pods[key]
		p.NodeLost, p.Draining = w.lost[w.node[key]], w.drain[w.node[key]]
		p.Ready = w.up(key) && w.quorum()
		p.Stuck = 10 * time.Minute
		o.Pods = append(o.Pods, p)
	}
	if !w.quorum() {
		for _, name := range sorted(w.claims) {
			if w.up(name) && w.ids[name] != 0 {
				o.Answers = append(o.Answers, decide.Answer{Member: name, Term: 1, Index: w.revision, Revision: w.revision,
					Voters: sorted(w.voters), Members: sorted(w.voters)})
			}
		}
		return o
	}
	o.Cluster = &decide.Cluster{}
	leader := ""
	for _, name := range sorted(w.voters) {
		if w.up(name) && (leader == "" || w.cordoned[leader]) {
			leader = name
		}
	}
	for _, name := range append(sorted(w.voters), sorted(w.learners)...) {
		up := w.up(name)
		m := decide.Member{ID: w.ids[name], Name: name, Voter: w.voters[name], Joining: w.learners[name], Started: w.disk[name],
			Active: up, CaughtUp: up, Leader: name == leader, Cordoned: w.cordoned[name], Silent: time.Minute}
		o.Cluster.Members = append(o.Cluster.Members, m)
		if w.voters[name] && !up {
			o.Cluster.Blockers = append(o.Cluster.Blockers, name+" is down")
		}
	}
	if w.job != nil {
		o.Cluster.Jobs = []decide.Job{{ID: w.job.id, Cancelled: w.job.cancel, What: "job"}}
		if w.job.started > 20 {
			o.Cluster.Jobs[0].Quiet = time.Hour
		}
		if w.job.add != "" {
			o.Cluster.Jobs[0].Adds = []string{w.job.add}
		}
		if w.job.remove != "" {
			o.Cluster.Jobs[0].Removes = []uint64{w.ids[w.job.remove]}
		}
	}
	return o
}

// advance lets Kubernetes and the cluster do a step of what they do by themselves.
func (w *world) advance() {
	for _, name := range sorted(w.pods) {
		p, c := w.pods[name], w.claims[name]
		switch {
		case p.Recovers:
			p.Ended, p.Succeeded = true, true
			w.voters, w.learners, w.job = map[string]bool{p.Member: true}, map[string]bool{}, nil
			if p.Leaving {
				delete(w.pods, name)
			}
		case p.Leaving && !w.lost[w.node[name]]:
			delete(w.pods, name)
		case p.Leaving:
		case c == nil: // waits for its claim
		case !p.Running && !p.Ended && p.Template != w.broken:
			if w.lost[w.node[name]] {
				w.node[name] = w.rand.IntN(len(w.lost))
				continue
			}
			p.Running = true
			if w.ids[name] != 0 && w.learners[name] {
				w.disk[name] = true
			}
		}
	}
	for _, name := range sorted(w.claims) {
		if c := w.claims[name]; c.Leaving && w.pods[name] == nil {
			delete(w.claims, name)
			delete(w.disk, name)
		}
	}
	w.found()
	w.work()
	if w.quorum() {
		w.revision++
	}
}

// found begins the cluster once all founders run.
func (w *world) found() {
	founders := w.kept.Founders
	for _, name := range founders {
		if p := w.pods[name]; p == nil || !p.Founding || !p.Running || w.lost[w.node[name]] || w.claims[name] == nil ||
			w.disk[name] {
			return
		}
	}
	if len(founders) == 0 {
		return
	}
	if len(w.ids) > 0 {
		w.fault = "a second cluster was founded"
	}
	for _, name := range founders {
		w.nextID++
		w.voters[name], w.ids[name], w.disk[name] = true, w.nextID, true
	}
}

// work lets the cluster carry on with its job.
func (w *world) work() {
	if w.job == nil || !w.quorum() {
		return
	}
	j := w.job
	if j.add != "" && w.ids[j.add] == 0 {
		w.nextID++
		w.ids[j.add], w.learners[j.add] = w.nextID, true
	}
	j.started++
	switch {
	case j.cancel:
		delete(w.learners, j.add)
		w.job = nil
	case j.add != "" && !w.up(j.add):
		if j.started > 60 {
			j.cancel = true
		}
		return
	}
	voters := map[string]bool{}
	for name := range w.voters {
		voters[name] = name != j.remove
	}
	delete(voters, j.remove)
	if j.add != "" {
		voters[j.add] = true
	}
	working := 0
	for name := range voters {
		if w.up(name) {
			working++
		}
	}
	if w.job == nil || working < decide.Quorum(len(voters)) { // the cluster refuses a change after which no quorum works
		return
	}
	w.voters, w.job = voters, nil
	delete(w.learners, j.add)
	delete(w.learners, j.remove)
	delete(w.cordoned, j.remove)
}
