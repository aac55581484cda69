package decide_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
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
	line
	other    *line // which a recovery ended, or began apart: it may have a quorum, too
	ids      map[string]uint64
	nextID   uint64
	revision int64
	names    map[string]bool // that were ever used by a claim
	broken   string          // a template with which no process starts
	fault    string          // a law that was broken

	recoveries int                      // without a majority
	begun      map[string]bool          // pods of commands whose containers were started, whatever anybody was told
	ran        bool                     // the command of the recovery that the status has, or had last, changed the survivor
	leftOut    map[string]bool          // by a recovery: each disk may have what the survivor lacks
	log        map[string]*write        // of a disk
	acked      map[string]told          // by the id of a loss
	knows      map[string]configuration // of a disk
	terms      uint64
	began      *write          // the log of the survivor when it was recovered last
	asked      map[string]bool // by somebody who was told that those are gone for ever who led without it
	runs       decide.Recovery // that the command was started for
	survivors  []string        // that answered when members began to be stopped
	lives      int
	meddled    bool              // an old status was put back
	slow       bool              // pods that were deleted go after a while
	damaged    map[string]bool   // disks on which the process ends each time it starts
	lived      map[string]uint64 // the number of the epoch of a disk
	liar       string            // a member that tells what is not so
	denied     string            // a member of which the liar says that it was removed
	lies       int               // how
	elects     bool              // the others have no leader for a moment
}

// line is a cluster with its epoch.
type line struct {
	epoch            decide.Epoch
	voters, learners map[string]bool
	cordoned         map[string]bool
	job              *job
	log              *write // all that it has acknowledged
	term             uint64 // of its leader; 0: it has none
	unsettled        int    // steps until the last change is settled
}

func newLine(epoch decide.Epoch, voters ...string) line {
	l := line{epoch: epoch, voters: map[string]bool{}, learners: map[string]bool{}, cordoned: map[string]bool{}}
	for _, name := range voters {
		l.voters[name] = true
	}
	return l
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
		pods: map[string]*decide.Pod{}, node: map[string]int{}, disk: map[string]bool{}, line: newLine(decide.ParseEpoch("0")),
		ids: map[string]uint64{}, names: map[string]bool{}, begun: map[string]bool{}, lived: map[string]uint64{},
		leftOut: map[string]bool{}, log: map[string]*write{}, damaged: map[string]bool{}, acked: map[string]told{},
		asked: map[string]bool{}, knows: map[string]configuration{}}
}

// up tells whether the process of a member runs and has its data.
func (w *world) up(name string) bool {
	p := w.pods[name]
	return p != nil && p.Running && !p.Recovers && w.disk[name] && !w.damaged[name] && !w.lost[w.node[name]]
}

// on tells whether the member is up, and its data are of the line.
func (w *world) on(l *line, name string) bool { return w.up(name) && w.lived[name] == l.epoch.Number }

func (w *world) working() int { return w.workingOf(&w.line) }

func (w *world) workingOf(l *line) (n int) {
	for name := range l.voters {
		if w.on(l, name) {
			n++
		}
	}
	return n
}

func (w *world) quorum() bool {
	return len(w.voters) > 0 && w.working() >= decide.Quorum(len(w.voters))
}

// life is another one at each call.
func (w *world) life() string {
	w.lives++
	return strconv.Itoa(w.lives)
}

// turn lets the other line be the cluster, if it has a quorum and the first has none, or is older, and claims do not tell that it
// counts no more: so does the operator take it.
func (w *world) turn() {
	var claims []decide.Claim
	for _, c := range w.claims {
		claims = append(claims, *c)
	}
	if w.other == nil || w.other.epoch.Former(decide.Newest(claims)) || w.workingOf(w.other) < decide.Quorum(len(w.other.voters)) ||
		w.quorum() && w.epoch.Number > w.other.epoch.Number {
		return
	}
	former := w.line
	w.line, w.other = *w.other, &former
	w.drop()
}

// drop notes whose disks may have what the cluster lacks, since they are of the other line.
func (w *world) drop() {
	for name := range w.other.voters {
		w.leftOut[name] = w.disk[name]
	}
	for name := range w.other.learners {
		w.leftOut[name] = w.disk[name]
	}
	for name := range w.voters {
		delete(w.leftOut, name)
	}
}

// lose lets nodes be lost or well, and notes that processes on them may have run meanwhile.
func (w *world) lose(lost [4]bool) {
	for name, p := range w.pods {
		if at := w.node[name]; w.lost[at] != lost[at] {
			p.Life = w.life()
		}
	}
	w.lost = lost
}

// recovered is what the command does to the survivor's data, by the operator or by hand.
func (w *world) recovered(survivor string) {
	w.recoveries, w.ran = w.recoveries+1, false
	former := w.line
	w.line = newLine(decide.ParseEpoch(fmt.Sprintf("%d-%d", w.lived[survivor]+1, w.recoveries)), survivor)
	w.other, w.lived[survivor] = &former, w.epoch.Number
	w.line.log, w.began, w.knows[survivor] = w.log[survivor], w.log[survivor], configuration{voters: []string{survivor}}
	w.drop()
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
		p.Name, p.NodeLost, p.Draining = key, w.lost[w.node[key]] && !p.Homeless, w.drain[w.node[key]]
		p.Ready = w.serves(key)
		p.Stuck = 10 * time.Minute
		o.Pods = append(o.Pods, p)
	}
	if w.turn(); !w.quorum() {
		for _, name := range sorted(w.claims) {
			if w.up(name) && w.ids[name] != 0 {
				last, knows := w.log[name].last(), w.knows[name]
				o.Answers = append(o.Answers, decide.Answer{Member: name, Epoch: w.lived[name], Term: w.log[name].lastTerm(), Index: last, Revision: last,
					Voters: knows.voters, Members: slices.Concat(knows.voters, knows.learners)})
			}
		}
		return o
	}
	leader := w.leaderOf(&w.line)
	o.Cluster = &decide.Cluster{Epoch: w.epoch, Term: w.term, Unsettled: w.unsettled > 0, By: leader, Leader: w.ids[leader], Others: w.told(leader)}
	for _, name := range append(sorted(w.voters), sorted(w.learners)...) {
		up := w.on(&w.line, name)
		m := decide.Member{ID: w.ids[name], Name: name, Voter: w.voters[name], Joining: w.learners[name], Started: w.disk[name],
			Active: up, CaughtUp: up, Leader: name == leader, DiskLost: w.damaged[name], Cordoned: w.cordoned[name], Silent: time.Minute}
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
	w.lie(o)
	return o
}

// advance lets Kubernetes and the cluster do a step of what they do by themselves.
func (w *world) advance() {
	for _, name := range sorted(w.pods) {
		p, c := w.pods[name], w.claims[name]
		switch {
		case p.Recovers:
			w.command(name, p)
		case p.Leaving && !w.lost[w.node[name]]:
			if !w.slow || w.rand.IntN(2) == 0 { // until its kubelet ends it the process works
				delete(w.pods, name)
			}
		case p.Leaving:
		case w.damaged[name] && !w.lost[w.node[name]]:
			p.Running, p.Life = w.rand.IntN(2) == 0, w.life()
		case c == nil: // waits for its claim
		case !p.Running && !p.Ended && p.Template != w.broken:
			if w.lost[w.node[name]] {
				w.node[name] = w.rand.IntN(len(w.lost))
				continue
			}
			p.Running, p.Life = true, w.life()
			if w.ids[name] != 0 && w.learners[name] {
				w.disk[name], w.lived[name] = true, w.epoch.Number
			}
		}
	}
	for _, name := range sorted(w.claims) {
		if c := w.claims[name]; c.Leaving && w.pods[name] == nil && w.pods[name+"-recover"] == nil {
			delete(w.claims, name)
			delete(w.disk, name)
			delete(w.log, name)
			delete(w.damaged, name)
		}
	}
	w.found()
	w.turn()
	w.work()
	w.write()
}

// command is `quorate recover` on a survivor's claim, once a node has taken its pod and started it. It refuses a log that does not
// end where the consent saw it. The status of the pod lags behind: of one that is deleted nobody may ever hear that it was started, and
// one that was killed may have done everything.
func (w *world) command(name string, p *decide.Pod) {
	c := w.claims[p.Member]
	switch {
	case p.Ended && p.Leaving || p.Leaving && p.Homeless:
		delete(w.pods, name)
		return
	case !p.Homeless && w.lost[w.node[name]]:
		if w.begun[name] && !p.Ended && c != nil && w.rand.IntN(4) == 0 { // the node runs on, and is not heard
			w.execute(p)
		}
		return
	case p.Homeless:
		p.Homeless = p.Compares || w.rand.IntN(2) == 0
		return
	case !p.Leaving && (p.Ended || c == nil || c.Leaving && !w.begun[name] || p.Template == w.broken):
		return
	case !w.begun[name] && p.Template != w.broken && w.rand.IntN(3) == 0:
		w.begun[name] = true
		p.Started = w.rand.IntN(2) == 0 // else it is told later
		return
	case p.Leaving:
		if w.begun[name] && w.rand.IntN(2) == 0 {
			w.execute(p)
		}
		delete(w.pods, name)
		return
	case !w.begun[name]:
		return
	}
	p.Started, p.Ended = true, true
	p.Succeeded = w.execute(p)
	if p.Said = "the log ends elsewhere"; p.Succeeded && w.rand.IntN(4) == 0 {
		p.Succeeded, p.Said = false, "killed"
	}
}

// execute runs the command, and tells whether it ended well.
func (w *world) execute(p *decide.Pod) bool {
	for _, l := range []*line{&w.line, w.other} {
		if l != nil && len(l.voters) == 1 && l.voters[p.Member] && w.lived[p.Member] == l.epoch.Number { // it was recovered already
			return true
		}
	}
	if l := w.other; l != nil && l.voters[p.Member] && w.lived[p.Member] == l.epoch.Number && !w.voters[p.Member] && !w.quorum() {
		former := w.line // it was recovered by hand, and nobody has noted that
		w.line, w.other = *l, &former
	}
	if w.log[p.Member].last() != w.runs.Index || !w.disk[p.Member] || w.quorum() ||
		!w.voters[p.Member] && !w.learners[p.Member] {
		return false
	}
	w.recovered(p.Member)
	w.ran = true
	return true
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
	if len(w.ids) > 0 && len(w.disk) > 0 {
		w.fault = "a second cluster was founded"
	}
	w.line, w.other = newLine(decide.ParseEpoch(strconv.Itoa(w.recoveries))), nil // nothing is left of a former one, nor of the status
	for _, name := range founders {
		w.nextID++
		w.voters[name], w.ids[name], w.disk[name], w.lived[name] = true, w.nextID, true, w.epoch.Number
	}
}

// work lets the cluster carry on with its job.
func (w *world) work() {
	if w.quorum() {
		w.unsettled = max(0, w.unsettled-1)
	}
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
	case j.add != "" && !w.on(&w.line, j.add):
		if j.started > 60 {
			j.cancel = true
		}
		return
	case j.add != "" && w.rand.IntN(2) == 0: // it has the log, and does not vote yet
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
		if w.on(&w.line, name) {
			working++
		}
	}
	if w.job == nil || working < decide.Quorum(len(voters)) { // the cluster refuses a change after which no quorum works
		return
	}
	w.voters, w.job, w.unsettled = voters, nil, w.rand.IntN(4)
	delete(w.learners, j.add)
	delete(w.learners, j.remove)
	delete(w.cordoned, j.remove)
}
