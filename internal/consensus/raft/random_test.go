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

// chaos draws one schedule of faults from a seed.
type chaos struct {
	*cluster
	rng    *rand.Rand
	laws   *laws
	nextID memberID
	readID uint64
	spread bool // the configuration changes
	lease  bool // clocks run at one speed: the leader lease rests on that
	// only is the protocol of all changes; ProtocolAuto: each change draws its own.
	only consensus.Protocol
	loss int // one message in so many is lost
	calm int // of a thousand actions, so many let everything arrive
	rare int // one fault of so many happens: changes get further
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
		if seed%4 == 1 {
			narrowest(o)
		}
		if adapt != nil {
			adapt(o)
		}
	})
	x := &chaos{cluster: c, rng: rng, laws: newLaws(), nextID: 8, spread: rng.IntN(5) > 0, lease: lease}
	x.only = []consensus.Protocol{0, 0, 0, 1, 2, 3, 4, 5}[rng.IntN(8)]
	x.loss, x.calm = []int{15, 15, 100}[rng.IntN(3)], []int{0, 1, 5, 20}[rng.IntN(4)]
	x.rare = []int{1, 1, 3, 10}[rng.IntN(4)]
	c.lossy, c.infer = rng.IntN(2) == 0, seed%3 > 0
	x.laws.watch(c)
	return x
}

func (x *chaos) pick() *node { return x.nodes[x.rng.IntN(len(x.nodes))] }

// act does one random thing.
func (x *chaos) act() {
	n := x.pick()
	if n.off {
		return
	}
	if n.replica == nil {
		if x.rng.IntN(10) == 0 {
			n.start()
		}
		return
	}
	p := x.rng.IntN(1000)
	if x.rare > 1 && (p >= 930 && p < 956 || p >= 962 && p < 974) && x.rng.IntN(x.rare) > 0 {
		p = 0
	}
	switch {
	case p >= 500 && p < 500+x.calm:
		x.settle()
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
	case p < 870:
		n.apply(1 + x.rng.IntN(len(n.toApply)+1))
	case p < 900:
		x.propose(n.id, "c"+strconv.FormatUint(x.nextSeq, 10))
	case p < 930:
		x.readID++
		x.laws.asked[[2]uint64{uint64(n.id), x.readID}] = x.laws.highest
		n.step(raft.Read{IDs: []uint64{x.readID}, Spread: x.infer})
	case p < 940:
		n.slowDisk = !n.slowDisk
	case p < 948:
		n.crash()
	case p < 956:
		n.step(raft.Transfer{To: x.pick().id})
	case p < 962:
		x.compact(n)
	case p < 968:
		n.step(raft.Unreachable{Member: x.pick().id})
	case p < 974:
		x.partition()
	case p < 987:
		x.reconfigure()
	case p < 990:
		n.step(raft.Campaign{})
	case p < 993:
		n.holdApply = !n.holdApply
	case p < 995:
		n.flush()
	case p < 996:
		x.switchOff(n)
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
	if x.rng.IntN(x.loss) != 0 { // else it is lost
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

// compact also checks that the log and the store agree on what a snapshot stands for.
func (x *chaos) compact(n *node) {
	n.compact(n.store.position.Index)
	got, want := n.replica.Base(), n.store.meta()
	if got.Position != want.Position {
		return // the log keeps more
	}
	if got.ConfigID != want.ConfigID || got.Protocol != want.Protocol || got.Open != want.Open ||
		describeConfig(&got.Config) != describeConfig(&want.Config) || !slices.Equal(got.Tombs, want.Tombs) {
		x.laws.breach("%v: the log says of %v: %+v, the store %+v", n.id, got.Position, got, want)
	}
}

// switchOff takes a member away for ever once it may be.
func (x *chaos) switchOff(n *node) {
	if x.laws.retired[n.id] {
		n.crash()
		n.off = true
	}
}

// reconfigure asks somebody for some change: of one member or several, by any protocol, expecting any configuration.
func (x *chaos) reconfigure() {
	n := x.pick()
	if !x.spread || n.replica == nil {
		return
	}
	request := consensus.ChangeRequest{Protocol: x.only}
	if x.only == consensus.ProtocolAuto {
		request.Protocol = consensus.Protocol(x.rng.IntN(6))
	}
	switch x.rng.IntN(12) {
	case 0:
		request.Expected = n.replica.InForce().ID
	case 1:
		request.Expected = x.pick().store.about.ConfigID
	}
	if x.rng.IntN(8) == 0 {
		x.request(n.id, consensus.ChangeRequest{Expected: request.Expected, Abort: true})
		return
	}
	for range []int{1, 1, 1, 2, 2, 3, 4}[x.rng.IntN(7)] {
		step := consensus.ChangeStep{Kind: chaosKinds[x.rng.IntN(len(chaosKinds))], Member: consensus.Member{ID: x.pick().id}}
		if step.Kind == consensus.ChangeAddLearner || step.Kind == consensus.ChangeAddVoter {
			if x.alive() >= 8 {
				continue
			}
			step.Member = testMember(x.nextID)
			x.add(x.nextID, consensus.Config{})
			x.nextID++
		}
		request.Steps = append(request.Steps, step)
	}
	if len(request.Steps) > 0 {
		x.request(n.id, request)
	}
}

var chaosKinds = []consensus.ChangeKind{
	consensus.ChangeAddVoter, consensus.ChangeAddLearner, consensus.ChangePromote, consensus.ChangeRemove, consensus.ChangeUpdate,
	consensus.ChangeDemote, consensus.ChangeCordon, consensus.ChangeUncordon,
}

// alive counts the members that are not out of the game.
func (x *chaos) alive() int {
	alive := 0
	for _, n := range x.nodes {
		if !x.laws.retired[n.id] && !n.off {
			alive++
		}
	}
	return alive
}

// heal ends all faults and lets the cluster converge: it must elect a leader, commit on all of its members, and end the
// change that was under way. Members that were removed for ever may be away.
func (x *chaos) heal() error {
	clear(x.blocked)
	away := x.rng.IntN(2) == 0
	for _, n := range x.nodes {
		if away {
			x.switchOff(n)
		}
		if n.off {
			continue
		}
		n.slowDisk, n.holdApply = false, false
		if n.replica == nil {
			n.start()
		}
		n.sync(len(n.pending))
		n.apply(len(n.toApply))
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
	if last := leader.rules(&raft.Status{Commit: want.LastIndex, Applied: want.LastIndex}); want.ConfigID != last || !want.ConfigSettled {
		return fmt.Errorf("the change %v never ends: config %v, settled %v", last, want.ConfigID, want.ConfigSettled)
	}
	for _, id := range want.Config.IDs() {
		if got := x.node(id).replica.Status(); got.Applied != want.LastIndex {
			return fmt.Errorf("member %v applied %d of %d", id, got.Applied, want.LastIndex)
		}
	}
	return x.yields()
}

// yields checks that a cordoned member does not lead on once all others are up and have caught up, however often it tried
// before to hand over.
func (x *chaos) yields() error {
	for range 150 {
		leader := x.leader()
		if leader == nil {
			return fmt.Errorf("the leader was lost in handing over")
		}
		if s := leader.replica.Status(); !s.Config.Cordoned(leader.id) {
			return nil
		}
		x.tick(10)
	}
	return fmt.Errorf("the cordoned member %v leads on", x.leader().id)
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
			x.laws.intersections(x.cluster)
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
// Raft, and that the cluster comes back once the faults end. RAFT_SEED=n plays one schedule, RAFT_RUNS=n more of them, from seed 1 or RAFT_SEED on.
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
		if os.Getenv("RAFT_RUNS") == "" {
			runs = 1
		}
	}
	committed, reads, changes := 0, 0, map[consensus.Protocol]int{}
	for seed := first; seed < first+uint64(runs); seed++ {
		x := newChaos(seed, nil)
		if err := x.run(6000); err != nil {
			t.Fatalf("RAFT_SEED=%d: %v\n%s", seed, err, x.dump())
		}
		committed += len(x.laws.committed)
		reads += x.laws.reads
		for protocol, n := range x.laws.protocols {
			changes[protocol] += n
		}
	}
	t.Logf("seeds %d to %d: %d entries committed, %d reads answered, changes %v", first, first+uint64(runs)-1, committed, reads, changes)
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
		{"two changes", func(f *raft.Faults) { f.TwoChanges = true }, "uncommitted changes"},
		{"learners count", func(f *raft.Faults) { f.CountLearners = true }, "s"},
		{"leaders count their disk too soon", func(f *raft.Faults) { f.DurableTooSoon = true }, "s"},
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
		if i%50 == 0 {
			x.laws.intersections(x.cluster)
		}
		if x.laws.broken != "" {
			return fmt.Errorf("step %d: %s", i, x.laws.broken)
		}
	}
	return nil
}
