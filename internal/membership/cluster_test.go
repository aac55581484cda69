package membership_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/quorum"
	"github.com/quorate/quorate/internal/consensus/reconfig"
	"github.com/quorate/quorate/internal/membership"
)

type ids = []consensus.MemberID

func url(id consensus.MemberID) string { return fmt.Sprintf("http://10.0.%d.1:2380", id) }

func member(id consensus.MemberID) consensus.Member {
	return consensus.Member{ID: id, Name: fmt.Sprintf("m%d", id), PeerURLs: []string{url(id)}}
}

func newcomer(id consensus.MemberID) membership.Newcomer {
	return membership.Newcomer{ID: id, Name: fmt.Sprintf("m%d", id), PeerURLs: []string{url(id)}}
}

// pretended is a cluster that obeys package reconfig and takes one tick for everything.
type pretended struct {
	t         testing.TB
	config    consensus.Config
	before    consensus.Config // what a roll-back restores
	id        consensus.ConfigID
	idBefore  consensus.ConfigID
	protocol  consensus.Protocol
	pending   *consensus.ConfigChange // by protocol apply, and not applied
	stage     int                     // 0 settled; 1 in the log; 2 committed
	leader    consensus.MemberID
	started   bool // the leader's term
	seen      map[consensus.MemberID]*membership.MemberView
	tombs     ids
	dying     ids
	strict    bool
	limit     int
	last      consensus.Index
	nobody    bool // starts newcomers
	onDisk    bool
	proposals int
}

func found(t testing.TB, voters, learners int) *pretended {
	c := &pretended{
		t: t, strict: true, started: true, leader: 1, last: 5000, id: consensus.ConfigID{Index: 12, Term: 2},
		protocol: consensus.ProtocolSingle, seen: map[consensus.MemberID]*membership.MemberView{},
	}
	for i := range voters + learners {
		id := consensus.MemberID(i + 1)
		c.config.Members = append(c.config.Members, member(id))
		if i < voters {
			c.config.Voters = append(c.config.Voters, id)
		} else {
			c.config.Learners = append(c.config.Learners, id)
		}
		c.seen[id] = &membership.MemberView{
			Started: true, Active: true, CaughtUp: true, Match: 5000, State: "replicate",
			ClientURLs: []string{fmt.Sprintf("http://10.0.%d.1:2379", id)},
		}
	}
	return c
}

func (c *pretended) silence(silent ...consensus.MemberID) *pretended {
	for _, id := range silent {
		m := c.seen[id]
		m.Active, m.CaughtUp, m.SilentMS, m.State = false, false, 12_000, "probe"
	}
	return c
}

func (c *pretended) view() *membership.View {
	v := &membership.View{
		Leader: c.leader, Config: c.config.Clone(), ID: c.id, Protocol: c.protocol, Settled: c.stage == 0,
		Undecided: c.stage == 1, TermStarted: c.started, Last: c.last, Tombstones: slices.Sorted(slices.Values(c.tombs)),
		MaxLearners: c.limit, Strict: c.strict,
	}
	for _, m := range v.Config.Members {
		seen := c.seen[m.ID]
		if seen == nil {
			seen = &membership.MemberView{Active: true, State: "probe"} // the benefit of the doubt
			c.seen[m.ID] = seen
		}
		one := *seen
		one.ID, one.Name, one.PeerURLs = m.ID, m.Name, m.PeerURLs
		if m.ID == c.leader {
			one.Active, one.CaughtUp, one.State = true, true, ""
		}
		v.Members = append(v.Members, one)
	}
	return v
}

func (c *pretended) facts() *reconfig.Facts {
	facts := &reconfig.Facts{Tombstones: c.tombs, MaxLearners: c.limit, Strict: c.strict}
	for _, id := range c.config.IDs() {
		if m := c.seen[id]; m != nil && (m.Active || id == c.leader) {
			facts.Active = append(facts.Active, id)
			if m.CaughtUp {
				facts.CaughtUp = append(facts.CaughtUp, id)
			}
		}
	}
	return facts
}

// propose does what the leader's core does. It fails the test if the request is refused: Next has seen what the leader sees.
func (c *pretended) propose(request *consensus.ChangeRequest) {
	c.t.Helper()
	c.proposals++
	if request.Abort {
		undecided := c.protocol == consensus.ProtocolJoint || c.protocol == consensus.ProtocolJointEarly && c.stage == 1
		if !c.config.IsJoint() || !undecided || request.Expected != c.id || !c.started {
			c.t.Fatalf("an abort is refused in %v by %v, stage %d", c.config, c.protocol, c.stage)
		}
		change := reconfig.Abort(&c.config, c.id, c.protocol)
		c.enter(change.Config)
		return
	}
	if c.stage != 0 || !c.started {
		c.t.Fatalf("a change is proposed while another is under way: %v", request)
	}
	change, reason := reconfig.Next(&c.config, c.id, request, c.facts())
	if reason != consensus.ReasonNone {
		c.t.Fatalf("%v is refused in %v for reason %d", request, c.config, reason)
	}
	c.protocol = change.Protocol
	if change.Protocol == consensus.ProtocolApply {
		c.pending, c.stage, c.onDisk = &change, 1, false
		return
	}
	c.enter(change.Config)
}

func (c *pretended) enter(next consensus.Config) {
	c.before, c.idBefore = c.config, c.id
	for _, id := range c.config.IDs() {
		if !next.Contains(id) {
			c.dying = append(c.dying, id)
		}
	}
	c.config, c.stage, c.onDisk = next, 1, false
	c.last++
	c.id = consensus.ConfigID{Index: c.last, Term: c.id.Term}
}

func (c *pretended) reachable() bool {
	active := c.facts().Active
	enough := func(voters ids) bool {
		n := 0
		for _, id := range voters {
			if slices.Contains(active, id) {
				n++
			}
		}
		return n >= quorum.Majority(len(voters))
	}
	return enough(c.config.Voters) && (!c.config.IsJoint() || enough(c.config.Outgoing))
}

// tick lets everything go on by one step.
func (c *pretended) tick() {
	if c.reachable() {
		switch {
		case !c.started:
			c.started = true
		case c.stage == 1 && !c.onDisk:
			c.onDisk = true // others hold it, and the leader does not know it yet
		case c.pending != nil:
			change := c.pending
			c.pending = nil
			c.enter(change.Config)
			c.stage = 2
		case c.stage == 1:
			c.stage = 2
			if c.protocol == consensus.ProtocolActivate && c.config.IsJoint() {
				id := c.id
				c.enter(c.config.Settle())
				c.id, c.stage = consensus.ConfigID{Index: id.Index, Term: id.Term, Stage: 1}, 2
			}
		case c.stage == 2 && c.config.IsJoint():
			c.enter(c.config.Settle())
		case c.stage == 2:
			c.stage = 0
			c.tombs = append(c.tombs, c.dying...)
			c.dying = nil
		}
	}
	if c.stage != 1 && !slices.Contains(c.config.Voters, c.leader) || c.stage == 0 && c.config.Cordoned(c.leader) {
		c.elect(consensus.NoMember)
	}
	for _, id := range c.config.Learners {
		c.catchUp(c.seen[id])
	}
}

func (c *pretended) catchUp(m *membership.MemberView) {
	switch {
	case m == nil || (!m.Started && !m.Active && c.nobody):
	case !m.Started && m.Match == 0 && m.State == "probe":
		m.State, m.Active = "snapshot", true
		m.Snapshot = &membership.TransferView{Sent: 3 << 20, Total: 12 << 20, BytesPerSecond: 1 << 20}
	case m.State == "snapshot":
		m.State, m.Snapshot, m.Started, m.Match = "replicate", nil, true, c.last-2000
	case m.State == "replicate" && m.Active:
		m.Match, m.CaughtUp = c.last, true
	}
}

// elect makes a member lead, or one that can; what was in the log only may be rolled back.
func (c *pretended) elect(id consensus.MemberID) {
	if id == consensus.NoMember {
		for _, other := range c.config.Voters {
			if m := c.seen[other]; other != c.leader && m != nil && m.Active && m.CaughtUp && !c.config.Cordoned(other) {
				id = other
			}
		}
	}
	if id == consensus.NoMember {
		return
	}
	c.leader, c.started = id, false
}

func (c *pretended) rollBack() {
	if c.stage != 1 {
		return
	}
	if c.pending != nil {
		c.pending, c.stage = nil, 0
		return
	}
	c.config, c.id, c.dying = c.before, c.idBefore, nil
	c.stage = 0
	if c.config.IsJoint() {
		c.stage = 2
	}
}

// run takes a job to its end, or to the point where nothing happens any more, and calls between before each step.
func (c *pretended) run(j *membership.Job, between func(step int)) (last membership.Action) {
	c.t.Helper()
	j.State = membership.StateRunning
	idle := 0
	for step := 0; idle < 8; step++ {
		if step > 200 {
			c.t.Fatalf("the job does not end: %+v in %+v", last, c.config)
		}
		if between != nil {
			between(step)
		}
		v := c.view()
		if step == 0 && j.Config == (consensus.ConfigID{}) {
			j.Config = v.ID
		}
		action := membership.Next(j, v)
		if again := membership.Next(j, c.view()); !reflect.DeepEqual(action, again) {
			c.t.Fatalf("asked again, Next says something else: %s", cmp.Diff(action, again))
		}
		c.act(j, action)
		j.Phase = action.Phase // as a leader notes it
		if action.End != "" {
			return action
		}
		idle++
		if !action.Wait || action.Message != last.Message {
			idle = 0
		}
		last = action
		c.tick()
	}
	return last
}

func (c *pretended) act(j *membership.Job, action membership.Action) {
	c.t.Helper()
	what := 0
	for _, set := range []bool{action.Wait, action.Change != nil, action.Transfer != consensus.NoMember, action.End != ""} {
		if set {
			what++
		}
	}
	if what != 1 || action.Message == "" || action.Phase == "" {
		c.t.Fatalf("an action says one thing, and describes it: %+v", action)
	}
	switch {
	case action.Change != nil:
		c.propose(action.Change)
	case action.Transfer != consensus.NoMember:
		if !slices.Contains(c.config.Voters, action.Transfer) || action.Transfer == c.leader {
			c.t.Fatalf("leadership goes from %v to %v", c.leader, action.Transfer)
		}
		c.elect(action.Transfer)
	case action.End != "":
		j.State, j.Message, j.Phase = action.End, action.Message, action.Phase
	}
}

// fulfilled tells what of the spec is not so; empty if all is.
func (c *pretended) fulfilled(s *membership.Spec) string {
	for _, id := range s.Remove {
		if c.config.Contains(id) || !slices.Contains(c.tombs, id) {
			return fmt.Sprintf("%v is not removed", id)
		}
	}
	for i, id := range slices.Concat(s.Cordon, s.Uncordon) {
		if m, _ := c.config.Member(id); m.Cordoned != (i < len(s.Cordon)) || c.config.Cordoned(c.leader) {
			return fmt.Sprintf("%v is cordoned: %v; %v leads", id, m.Cordoned, c.leader)
		}
	}
	want := slices.Clone(s.Promote)
	learn := slices.Clone(s.Demote)
	for _, n := range s.Add {
		if n.Learner {
			learn = append(learn, n.ID)
		} else {
			want = append(want, n.ID)
		}
	}
	for _, id := range want {
		if !slices.Contains(c.config.Voters, id) {
			return fmt.Sprintf("%v is no voter", id)
		}
	}
	for _, id := range learn {
		if !slices.Contains(c.config.Learners, id) {
			return fmt.Sprintf("%v is no learner", id)
		}
	}
	for _, u := range s.Update {
		if m, _ := c.config.Member(u.ID); !slices.Equal(m.PeerURLs, u.PeerURLs) {
			return fmt.Sprintf("%v has %v", u.ID, m.PeerURLs)
		}
	}
	if slices.Contains(s.Drain, c.leader) {
		return "a drained member leads"
	}
	if c.stage != 0 || c.config.IsJoint() {
		return "the configuration is not settled"
	}
	return ""
}
