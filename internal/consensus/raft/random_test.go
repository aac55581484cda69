package raft_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// laws checks, after every Step, what no schedule of faults may break (Raft paper, figure 3).
type laws struct {
	leaders   map[consensus.Term]memberID
	committed map[consensus.Index]entry // applied by somebody
	highest   consensus.Index           // committed, as any member knows it
	asked     map[[2]uint64]consensus.Index
	broken    string
	reads     int
}

func newLaws() *laws {
	return &laws{
		leaders: map[consensus.Term]memberID{}, committed: map[consensus.Index]entry{}, asked: map[[2]uint64]consensus.Index{},
	}
}

func (l *laws) breach(format string, args ...any) {
	if l.broken == "" {
		l.broken = fmt.Sprintf(format, args...)
	}
}

func (l *laws) check(n *node, out *raft.Output) {
	s := n.replica.Status()
	for _, e := range out.Events {
		if e, ok := e.(raft.BecameLeader); ok {
			if other, ok := l.leaders[e.Term]; ok && other != n.id {
				l.breach("election safety: %v and %v lead term %d", other, n.id, e.Term)
			}
			l.leaders[e.Term] = n.id
			l.complete(n, out, e.Term)
		}
	}
	for i := range out.Apply {
		e := out.Apply[i]
		if before, ok := l.committed[e.Index]; ok && (before.Term != e.Term || string(before.Payload) != string(e.Payload)) {
			l.breach("state machine safety: %v applies %v where %v was applied", n.id, e.Mark(), before.Mark())
		}
		l.committed[e.Index] = e
		if e.Index != n.store.mark.Index+consensus.Index(i)+1 {
			l.breach("%v applies %d after %d", n.id, e.Index, n.store.mark.Index)
		}
	}
	for _, read := range out.Reads {
		l.reads++
		if floor := l.asked[[2]uint64{uint64(n.id), read.ID}]; read.Index < floor {
			l.breach("linearizable read: %v may serve read %d at %d, %d had committed before it was asked", n.id, read.ID, read.Index, floor)
		}
	}
	l.highest = max(l.highest, s.Commit)
}

// complete checks leader completeness: the log of a new leader holds everything committed in earlier terms.
func (l *laws) complete(n *node, out *raft.Output, term consensus.Term) {
	for index, e := range l.committed {
		if index <= n.logBase || e.Term >= term {
			continue
		}
		at := int(index - n.logBase - 1)
		var got mark
		if at < len(n.log) {
			got = n.log[at].Mark()
		}
		for i := range out.Entries {
			if out.Entries[i].Index == index {
				got = out.Entries[i].Mark()
			}
		}
		if got != e.Mark() {
			l.breach("leader completeness: %v leads term %d with %v instead of %v", n.id, term, got, e.Mark())
		}
	}
}

// matching checks the log matching property on all pairs of logs.
func (l *laws) matching(c *cluster) {
	for i, a := range c.nodes {
		for _, b := range c.nodes[i+1:] {
			same := false
			for at := min(a.last(), b.last()); at > max(a.logBase, b.logBase); at-- {
				x, y := a.log[at-a.logBase-1], b.log[at-b.logBase-1]
				if same && (x.Term != y.Term || string(x.Payload) != string(y.Payload)) {
					l.breach("log matching: %v and %v differ at %d and agree later:\n%s\n%s", a.id, b.id, at, a.marks(), b.marks())
				}
				same = same || x.Term == y.Term
			}
		}
	}
}

func (n *node) last() consensus.Index { return n.logBase + consensus.Index(len(n.log)) }

// chaos draws one schedule of faults from a seed.
type chaos struct {
	*cluster
	rng    *rand.Rand
	laws   *laws
	nextID memberID
	readID uint64
	spread bool // single-server changes
	lease  bool // clocks run at one speed: the leader lease rests on that
}

func newChaos(seed uint64, adapt func(*raft.Options)) *chaos {
	rng := rand.New(rand.NewPCG(seed, 1))
	voters := []memberID{1, 2, 3, 4, 5}[:[]int{1, 2, 3, 3, 4, 5}[rng.IntN(6)]]
	var learners []memberID
	if rng.IntN(3) == 0 {
		learners = []memberID{6, 7}[:1+rng.IntN(2)]
	}
	inflight, size, lease := 1+rng.IntN(8), 100+rng.IntN(2000), rng.IntN(4) == 0
	strict := rng.IntN(2) == 0
	c := newCluster(slices.Clone(voters), learners, func(o *raft.Options) {
		o.Seed = seed
		o.MaxInflightMessages, o.MaxMessageBytes, o.MaxUncommittedBytes = inflight, size, 4000
		o.StrictReconfig, o.LeaderLease = strict, lease
		if adapt != nil {
			adapt(o)
		}
	})
	x := &chaos{cluster: c, rng: rng, laws: newLaws(), nextID: 8, spread: rng.IntN(2) == 0, lease: lease}
	c.check = x.laws.check
	return x
}

func (x *chaos) pick() *node { return x.nodes[x.rng.IntN(len(x.nodes))] }

// act does one random thing.
func (x *chaos) act() {
	n := x.pick()
	if n.replica == nil {
		if x.rng.IntN(10) == 0 {
			n.start()
		}
		return
	}
	switch p := x.rng.IntN(1000); {
	case p < 500:
		x.deliverOne()
	case p < 640:
		n.drain()
	case p < 720:
		if len(n.pending) > 0 {
			n.sync(1 + x.rng.IntN(len(n.pending)))
		}
	case p < 860:
		if !x.lease {
			n.step(raft.Tick{})
			break
		}
		if x.rng.IntN(len(x.nodes)) == 0 {
			for _, n := range x.nodes {
				n.step(raft.Tick{})
			}
		}
	case p < 900:
		x.propose(n.id, "c"+strconv.FormatUint(x.nextSeq, 10))
	case p < 930:
		x.readID++
		x.laws.asked[[2]uint64{uint64(n.id), x.readID}] = x.laws.highest
		n.step(raft.Read{IDs: []uint64{x.readID}})
	case p < 940:
		n.slowDisk = !n.slowDisk
	case p < 948:
		n.crash()
	case p < 956:
		n.step(raft.Transfer{To: x.pick().id})
	case p < 964:
		n.step(raft.Compact{Index: n.store.mark.Index})
	case p < 972:
		n.step(raft.Unreachable{Member: x.pick().id})
	case p < 980:
		x.partition()
	case p < 990:
		x.reconfigure(n)
	case p < 993:
		n.step(raft.Campaign{})
	default:
		n.slowDisk = false
		n.sync(len(n.pending))
	}
}

func (x *chaos) deliverOne() {
	if len(x.net) == 0 {
		return
	}
	at := 0
	if x.rng.IntN(4) == 0 {
		at = x.rng.IntN(len(x.net)) // out of order
	}
	m := x.net[at]
	if x.rng.IntN(20) != 0 { // else it stays, and is delivered again
		x.net = slices.Delete(x.net, at, at+1)
	}
	if x.rng.IntN(15) != 0 { // else it is lost
		x.deliver(m)
	}
}

func (x *chaos) partition() {
	clear(x.blocked)
	if x.rng.IntN(2) == 0 {
		return
	}
	split, oneWay := x.rng.IntN(1<<9), x.rng.IntN(4) == 0
	for i, a := range x.nodes {
		for j, b := range x.nodes {
			left, right := split>>i&1, split>>j&1
			if left < right || (left > right && !oneWay) {
				x.blocked[[2]memberID{a.id, b.id}] = true
			}
		}
	}
}

func (x *chaos) reconfigure(n *node) {
	if !x.spread {
		return
	}
	other := x.pick().id
	switch x.rng.IntN(4) {
	case 0:
		if len(x.nodes) < 9 {
			n = x.nodes[x.rng.IntN(len(x.nodes))]
			if n.replica != nil {
				x.change(n.id, consensus.ChangeAddLearner, testMember(x.nextID))
				x.add(x.nextID, consensus.Config{})
				x.nextID++
			}
		}
	case 1:
		x.change(n.id, consensus.ChangePromote, consensus.Member{ID: other})
	case 2:
		x.change(n.id, consensus.ChangeRemove, consensus.Member{ID: other})
	case 3:
		x.change(n.id, consensus.ChangeAddVoter, testMember(other))
	}
}

// heal ends all faults and lets the cluster converge: it must elect a leader and commit on all of its members.
func (x *chaos) heal() error {
	clear(x.blocked)
	for _, n := range x.nodes {
		n.slowDisk = false
		if n.replica == nil {
			n.start()
		}
		n.sync(len(n.pending))
	}
	for range 40 {
		x.tick(10)
		if leader := x.leader(); leader != nil && leader.replica.Status().TermStarted {
			break
		}
	}
	leader := x.leader()
	if leader == nil {
		return fmt.Errorf("no leader after all faults ended")
	}
	x.propose(leader.id, "last")
	x.tick(60)
	leader = x.leader()
	if leader == nil {
		return fmt.Errorf("the leader was lost without a fault")
	}
	want := leader.replica.Status()
	for _, id := range want.Config.IDs() {
		if got := x.node(id).replica.Status(); got.Applied != want.LastIndex {
			return fmt.Errorf("member %v applied %d of %d", id, got.Applied, want.LastIndex)
		}
	}
	return nil
}

func (x *chaos) dump() string {
	var b strings.Builder
	for _, n := range x.nodes {
		if n.replica == nil {
			fmt.Fprintf(&b, "%v: down\n", n.id)
			continue
		}
		s := n.replica.Status()
		fmt.Fprintf(&b, "%v: %v term %d leader %v commit %d applied %d durable %d last %d config %v %s removed %v %+v\n", n.id, s.Role,
			s.Term, s.Leader, s.Commit, s.Applied, s.Durable, s.LastIndex, s.ConfigID, describeConfig(&s.Config), s.Removed, s.Progress)
	}
	return b.String()
}

// run plays a schedule; it returns the first broken law.
func (x *chaos) run(steps int) error {
	for i := range steps {
		x.act()
		if len(x.net) > 2000 {
			x.net = x.net[1000:]
		}
		if i%50 == 0 {
			x.laws.matching(x.cluster)
		}
		if x.laws.broken != "" {
			return fmt.Errorf("step %d: %s", i, x.laws.broken)
		}
	}
	if err := x.heal(); err != nil {
		return err
	}
	x.laws.matching(x.cluster)
	if x.laws.broken != "" {
		return fmt.Errorf("healing: %s", x.laws.broken)
	}
	return nil
}

// Ensure that no schedule of losses, repeats, reorderings, slow disks, crashes and membership changes breaks a law of
// Raft, and that the cluster comes back once the faults end. RAFT_SEED=n plays one schedule, RAFT_RUNS=n more of them.
func TestReplica_Step_chaos(t *testing.T) {
	first, runs := uint64(1), 120
	if testing.Short() {
		runs = 20
	}
	if s := os.Getenv("RAFT_RUNS"); s != "" {
		runs, _ = strconv.Atoi(s)
	}
	if s := os.Getenv("RAFT_SEED"); s != "" {
		first, _ = strconv.ParseUint(s, 10, 64)
		runs = 1
	}
	committed, reads := 0, 0
	for seed := first; seed < first+uint64(runs); seed++ {
		x := newChaos(seed, nil)
		if err := x.run(6000); err != nil {
			t.Fatalf("RAFT_SEED=%d: %v\n%s", seed, err, x.dump())
		}
		committed += len(x.laws.committed)
		reads += x.laws.reads
	}
	t.Logf("seeds %d to %d: %d entries committed, %d reads answered", first, first+uint64(runs)-1, committed, reads)
}

// Ensure that the laws are really checked: with a rule of the protocol switched off, some schedule breaks one.
func TestReplica_Step_faultsAreFound(t *testing.T) {
	for _, tc := range []struct {
		name    string
		disable func(*raft.Faults)
		want    string
	}{
		{"votes are forgotten", func(f *raft.Faults) { f.VoteTwice = true }, "safety"},
		{"acknowledged before durable", func(f *raft.Faults) { f.AckBeforeDurable = true }, "s"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for seed := uint64(1); seed < 3000; seed++ {
				x := newChaos(seed, func(o *raft.Options) { tc.disable(&o.Faults) })
				if err := attempt(x); err != nil && strings.Contains(err.Error(), tc.want) {
					t.Logf("seed %d: %v", seed, err)
					return
				}
			}
			t.Fatal("no schedule broke a law")
		})
	}
}

// attempt runs a schedule whose broken law may also show as a panic of package invariant.
func attempt(x *chaos) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("safety: %v", p)
		}
	}()
	for i := range 6000 {
		x.act()
		if x.laws.broken != "" {
			return fmt.Errorf("step %d: %s", i, x.laws.broken)
		}
	}
	return nil
}

// Ensure the same for faults that need a certain turn of events: it is played with the fault and without.
func TestReplica_Step_faultsOfOneTurn(t *testing.T) {
	play := func(faults raft.Faults, turn func(c *cluster, l *laws)) string {
		c := newCluster([]memberID{1, 2, 3}, []memberID{4, 5}, func(o *raft.Options) { o.Faults = faults })
		l := newLaws()
		c.check = l.check
		c.elect(1)
		for _, id := range []memberID{2, 3} {
			for _, other := range []memberID{1, 4, 5} {
				c.cut(id, other)
			}
		}
		turn(c, l)
		return l.broken
	}
	deposed := func(c *cluster) {
		c.node(2).step(raft.Unreachable{Member: 1})
		c.node(3).step(raft.Unreachable{Member: 1})
		c.tick(3, 2)
		c.propose(2, "theirs")
		c.settle()
	}
	for _, tc := range []struct {
		name   string
		faults raft.Faults
		turn   func(c *cluster, l *laws)
		want   string
	}{
		{"a commit that only learners hold", raft.Faults{CountLearners: true}, func(c *cluster, _ *laws) {
			c.propose(1, "ours")
			c.settle()
			deposed(c)
		}, "leader completeness"},
		{"a read from a deposed leader", raft.Faults{SkipReadRound: true}, func(c *cluster, l *laws) {
			deposed(c)
			l.asked[[2]uint64{1, 7}] = l.highest
			c.node(1).step(raft.Read{IDs: []uint64{7}})
			c.settle()
		}, "linearizable read"},
	} {
		if got := play(raft.Faults{}, tc.turn); got != "" {
			t.Errorf("%s: without the fault: %s", tc.name, got)
		}
		if got := play(tc.faults, tc.turn); !strings.Contains(got, tc.want) {
			t.Errorf("%s: with the fault, broken: %q", tc.name, got)
		}
	}
}
