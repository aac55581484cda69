package membership_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
)

var protocols = []consensus.Protocol{
	consensus.ProtocolAuto, consensus.ProtocolSingle, consensus.ProtocolJoint, consensus.ProtocolJointEarly,
	consensus.ProtocolActivate, consensus.ProtocolApply,
}

func at(id, place consensus.MemberID) membership.Newcomer {
	n := newcomer(id)
	n.PeerURLs = []string{url(place)}
	return n
}

func learner(id consensus.MemberID) membership.Newcomer {
	n := newcomer(id)
	n.Learner = true
	return n
}

func cordoned(id consensus.MemberID) membership.Newcomer {
	n := newcomer(id)
	n.Cordoned = true
	return n
}

// jobs are jobs of every kind, for a cluster of three voters and a learner, and the phases that they go through.
var jobs = []struct {
	name   string
	spec   membership.Spec
	phases string
}{
	{"add a voter", membership.Spec{Add: []membership.Newcomer{newcomer(7)}}, "join start snapshot catch-up swap decided " +
		"settle"},
	{"add two voters and a learner", membership.Spec{Add: []membership.Newcomer{newcomer(7), learner(8), newcomer(9)}},
		"join start snapshot catch-up swap decided settle"},
	{"add a learner", membership.Spec{Add: []membership.Newcomer{learner(8)}}, "join start snapshot catch-up settle"},
	{"remove a voter", membership.Spec{Remove: ids{2}}, "swap decided settle"},
	{"remove the leader", membership.Spec{Remove: ids{1}}, "drain swap decided settle"},
	{"remove a learner", membership.Spec{Remove: ids{4}}, "swap decided settle"},
	{"remove two, the leader among them", membership.Spec{Remove: ids{1, 3}}, "drain swap decided settle"},
	{"promote a learner", membership.Spec{Promote: ids{4}}, "swap decided settle"},
	{"demote a voter", membership.Spec{Demote: ids{3}}, "swap decided settle"},
	{"demote the leader", membership.Spec{Demote: ids{1}}, "drain swap decided settle"},
	{"update", membership.Spec{Update: []consensus.Member{{ID: 2, PeerURLs: []string{url(22)}}}}, "update settle"},
	{"update, and add a learner", membership.Spec{Add: []membership.Newcomer{learner(8)},
		Update: []consensus.Member{{ID: 2, PeerURLs: []string{url(22)}}}}, "join start snapshot catch-up update settle"},
	{"replace a voter", membership.Spec{Kind: membership.KindReplace, Remove: ids{2}, Add: []membership.Newcomer{newcomer(7)}},
		"join start snapshot catch-up swap decided settle"},
	{"replace the " +
		"leader", membership.Spec{Kind: membership.KindReplace, Remove: ids{1}, Add: []membership.Newcomer{newcomer(7)}},
		"join start snapshot catch-up drain swap decided settle"},
	{"replace a voter by a learner that is " +
		"there", membership.Spec{Kind: membership.KindReplace, Remove: ids{2}, Promote: ids{4}},
		"swap decided settle"},
	{"replace at the same " +
		"URL", membership.Spec{Kind: membership.KindReplace, Remove: ids{2}, Add: []membership.Newcomer{at(7, 2)}},
		"make-room join start snapshot catch-up swap decided settle"},
	{"replace the leader at the same URL", membership.Spec{Remove: ids{1}, Add: []membership.Newcomer{at(7, 1)}},
		"make-room join start snapshot catch-up swap decided settle"},
	{"replace a learner at the same " +
		"URL", membership.Spec{Remove: ids{4}, Add: []membership.Newcomer{{ID: 7, PeerURLs: []string{url(4)},
		Learner: true}}}, "make-room join start snapshot catch-up settle"},
	{"everybody is " +
		"new", membership.Spec{Remove: ids{1, 2, 3, 4}, Add: []membership.Newcomer{newcomer(7), newcomer(8), newcomer(9)}},
		"join start snapshot catch-up swap decided settle"},
	{"all at " +
		"once", membership.Spec{Remove: ids{1}, Demote: ids{2}, Promote: ids{4}, Add: []membership.Newcomer{newcomer(7), learner(8)},
		Update: []consensus.Member{{ID: 3, PeerURLs: []string{url(33)}}}}, "join start snapshot catch-up drain swap decided " +
		"settle"},
	{"drain", membership.Spec{Kind: membership.KindDrain, Drain: ids{1, 3}}, "drain"},
	{"cordon", membership.Spec{Cordon: ids{2}}, "cordon settle"},
	{"cordon the leader and a learner", membership.Spec{Cordon: ids{1, 4}}, "cordon settle"},
	{"cordon a learner that is to vote", membership.Spec{Cordon: ids{4}, Promote: ids{4}}, "cordon swap decided settle"},
	{"add a cordoned voter", membership.Spec{Add: []membership.Newcomer{cordoned(7)}}, "join start snapshot catch-up swap " +
		"decided settle"},
}

// each runs f for every job by every protocol.
func each(t *testing.T, f func(t *testing.T, spec membership.Spec, phases string)) {
	for _, row := range jobs {
		for _, protocol := range protocols {
			spec := row.spec
			spec.Protocol = protocol
			t.Run(fmt.Sprintf("%s by %v", row.name, protocol), func(t *testing.T) { f(t, spec, row.phases) })
		}
	}
}

// Ensure that every job ends as its spec wants it, and goes through its phases, in order.
func TestNext_toTheEnd(t *testing.T) {
	each(t, func(t *testing.T, spec membership.Spec, phases string) {
		c := found(t, 3, 1)
		plan := membership.Draft(&spec, c.view())
		if len(plan.Blockers) > 0 || plan.Done {
			t.Fatalf("the plan is blocked or done: %+v", plan)
		}
		var seen []string
		job := membership.Job{ID: 1, Spec: spec}
		c.run(&job, func(int) {
			if phase := string(membership.Next(&job, c.view()).Phase); len(seen) == 0 || seen[len(seen)-1] != phase {
				seen = append(seen, phase)
			}
		})
		if unmet := c.fulfilled(&spec); job.State != membership.StateDone || unmet != "" {
			t.Fatalf("got %v (%s), %s", job.State, job.Message, unmet)
		}
		if warned := strings.Contains(job.Message, "take --initial-cluster out of"); warned != (len(spec.Remove) > 0) {
			t.Errorf("who removed members that may found the cluster anew is told so: %q", job.Message)
		}
		// Where no voter stays the leader hands over once a newcomer votes.
		handsOverLate := spec.Protocol == consensus.ProtocolSingle && len(spec.Remove) == 4
		if handsOverLate {
			phases = "join start snapshot catch-up swap drain swap decided settle"
		}
		if got := strings.Join(seen, " "); got != phases {
			t.Errorf("got phases %s, want %s", got, phases)
		}
		foreseen := membership.Phases(&spec, found(t, 3, 1).view())
		var can []string
		for _, phase := range membership.Phases(&spec, nil) {
			can = append(can, string(phase))
		}
		for i, phase := range foreseen {
			if !handsOverLate && (i >= len(seen) || string(phase) != seen[i]) {
				t.Errorf("foreseen were %v, got %v", foreseen, seen)
				break
			}
		}
		for _, phase := range seen {
			if !slices.Contains(can, phase) {
				t.Errorf("%s occurs, and is not among %v", phase, can)
			}
		}
		if after := membership.Draft(&spec, c.view()); !after.Done || len(after.Steps)+len(after.Blockers) > 0 {
			t.Errorf("asked for again, it is not done: %+v", after)
		}
		if got := membership.Next(&job, c.view()); got.End != membership.StateDone {
			t.Errorf("asked again after the end: %+v", got)
		}
	})
}

// Ensure that another leader finishes the job, at whatever point the last one stopped, and whether or not the change that
// was under way is lost with it.
func TestNext_anotherLeader(t *testing.T) {
	each(t, func(t *testing.T, spec membership.Spec, _ string) {
		for _, lost := range []bool{false, true} {
			for stop := range 36 {
				c := found(t, 3, 1)
				job := membership.Job{ID: 1, Spec: spec}
				c.run(&job, func(step int) {
					if step != stop && step != stop+3 {
						return
					}
					if lost {
						c.rollBack()
					}
					c.elect(consensus.NoMember)
					decoded, err := membership.DecodeJob(job.Encode()) // all that another leader knows
					if err != nil {
						t.Fatal(err)
					}
					job = decoded
				})
				if unmet := c.fulfilled(&spec); job.State != membership.StateDone || unmet != "" {
					t.Fatalf("stopped at %d, lost %v: got %v (%s), %s", stop, lost, job.State, job.Message, unmet)
				}
			}
		}
	})
}

// Ensure that a job that is cancelled at any point ends as if it had not begun, or as if it had not been cancelled.
func TestNext_cancelled(t *testing.T) {
	each(t, func(t *testing.T, spec membership.Spec, phases string) {
		cancelled, late := 0, 0
		for stop := range 36 {
			c := found(t, 3, 1)
			before := c.config.Clone()
			room := ids(nil)
			if strings.HasPrefix(phases, "make-room") {
				room = spec.Remove
			}
			job := membership.Job{ID: 1, Spec: spec}
			last := c.run(&job, func(step int) { job.CancelAsked = job.CancelAsked || step == stop })
			switch unmet := c.fulfilled(&spec); job.State {
			case membership.StateDone:
				if unmet != "" || (job.CancelAsked && !strings.Contains(last.Message, "too late")) {
					t.Fatalf("cancelled at %d, done: %s, %s", stop, last.Message, unmet)
				}
				late++
			case membership.StateCancelled:
				if strings.HasPrefix(last.Message, "cancelled") { // it is shown behind the state
					t.Fatalf("cancelled at %d: %s", stop, last.Message)
				}
				cancelled++
				single := spec.Protocol == consensus.ProtocolSingle
				if single && slices.ContainsFunc(slices.Concat(spec.Remove, spec.Demote), func(id consensus.MemberID) bool {
					return before.IsVoter(id) != c.config.IsVoter(id)
				}) { // it has gone some of its way, and no member that has lost its vote gets it back
					for _, id := range c.config.Voters {
						if !strings.Contains(last.Message, fmt.Sprintf("m%d", id)) {
							t.Errorf("cancelled at %d: %v votes, and nobody is told so: %s", stop, id, last.Message)
						}
					}
					continue
				}
				for _, id := range c.config.IDs() {
					if !before.Contains(id) {
						t.Errorf("cancelled at %d: newcomer %v is still there", stop, id)
					}
				}
				for _, id := range before.IDs() {
					role := before.IsVoter(id) == c.config.IsVoter(id) && before.IsLearner(id) == c.config.IsLearner(id)
					if !role && !slices.Contains(room, id) && !(single && slices.Contains(spec.Promote, id)) {
						t.Errorf("cancelled at %d: %v has another role: %+v", stop, id, c.config)
					}
				}
			default:
				t.Fatalf("cancelled at %d: got %v, %s", stop, job.State, last.Message)
			}
		}
		if cancelled == 0 || late == 0 {
			t.Errorf("cancelled %d times, too late %d times", cancelled, late)
		}
	})
}

// Ensure that joint can be cancelled until the second entry is there, joint-early until the first has committed, and the
// others not at all once they are in the log.
func TestNext_cancelledInSwap(t *testing.T) {
	for _, tc := range []struct {
		protocol consensus.Protocol
		stage    int
		want     membership.State
	}{
		{consensus.ProtocolJoint, 1, membership.StateCancelled},
		{consensus.ProtocolJoint, 2, membership.StateCancelled},
		{consensus.ProtocolJointEarly, 1, membership.StateCancelled},
		{consensus.ProtocolJointEarly, 2, membership.StateDone},
		{consensus.ProtocolActivate, 1, membership.StateDone},
	} {
		c := found(t, 3, 1)
		job := membership.Job{ID: 1, Spec: membership.Spec{Remove: ids{2}, Promote: ids{4}, Protocol: tc.protocol}}
		c.run(&job, func(int) { job.CancelAsked = job.CancelAsked || c.config.IsJoint() && c.stage == tc.stage })
		if job.State != tc.want || !job.CancelAsked {
			t.Errorf("%v in stage %d: got %v (%s), want %v", tc.protocol, tc.stage, job.State, job.Message, tc.want)
		}
	}
}

// Ensure that a job waits for what time or the operator can cure, and says for what.
func TestNext_waits(t *testing.T) {
	replace := membership.Spec{Remove: ids{2}, Add: []membership.Newcomer{newcomer(7)}}
	for _, tc := range []struct {
		name    string
		cluster func(c *pretended)
		spec    membership.Spec
		phase   membership.Phase
		want    string
	}{
		{"a leader of a new term", func(c *pretended) { c.started = false }, replace, membership.PhaseJoin, "its first entry"},
		{"another change", func(c *pretended) { c.stage = 2 }, replace, membership.PhaseJoin, "config 12.2.0 by single"},
		{"a newcomer that nobody has started", func(c *pretended) {
			c.config.Learners, c.config.Members = ids{7}, append(c.config.Members, member(7))
			c.view()
			c.seen[7].ClientURLs = nil
		}, replace, membership.PhaseStart, "m7 has not started yet: run `quorate --name m7 --join http://10.0.1.1:2380 " +
			"--listen-peer-urls http://10.0.7.1:2380 --initial-advertise-peer-urls http://10.0.7.1:2380` on its machine, " +
			"with your flags for data, clients and TLS"},
		{"a learner that fell silent", func(c *pretended) {
			c.config.Learners, c.config.Members = ids{7}, append(c.config.Members, member(7))
			c.seen[7] = &membership.MemberView{Started: true, Match: 10, SilentMS: 4200}
		}, replace, membership.PhaseStart, "m7 has not answered for 4.2 s: start it again"},
		{"a snapshot", func(c *pretended) {
			c.config.Learners, c.config.Members = ids{7}, append(c.config.Members, member(7))
			c.seen[7] = &membership.MemberView{Active: true, State: "snapshot",
				Snapshot: &membership.TransferView{Sent: 3 << 29, Total: 3 << 30, BytesPerSecond: 80 << 20}}
		}, replace, membership.PhaseSnapshot, "m7 has received 1.5 GiB of 3.0 GiB of the state at 80.0 MiB a second"},
		{"the log", func(c *pretended) {
			c.config.Learners, c.config.Members = ids{7}, append(c.config.Members, member(7))
			c.seen[7] = &membership.MemberView{Active: true, Started: true, State: "replicate", Match: 1000}
		}, replace, membership.PhaseCatchUp, "m7 is 4000 entries of the log behind"},
		{"a quorum", func(c *pretended) { c.silence(3) }, membership.Spec{Remove: ids{2}}, membership.PhaseSwap,
			"removing m2 would leave 2 voters of which only 1 answers: start m3 first, or remove m3 instead"},
		{"somebody to lead", func(c *pretended) { c.silence(2, 3) }, membership.Spec{Drain: ids{1}}, membership.PhaseDrain,
			"m1 cannot hand leadership over: m2 and m3 do not answer or are behind"},
		{"somebody who may lead", nil, membership.Spec{Drain: ids{1, 2, 3}}, membership.PhaseDrain, "leave one out"},
	} {
		c := found(t, 3, 0)
		if tc.cluster != nil {
			tc.cluster(c)
		}
		got := membership.Next(&membership.Job{ID: 1, State: membership.StateRunning, Spec: tc.spec}, c.view())
		if !got.Wait || got.Phase != tc.phase || !strings.Contains(got.Message, tc.want) {
			t.Errorf("%s: got %+v, want %s: %s", tc.name, got, tc.phase, tc.want)
		}
	}
}

// Ensure that a job fails when nothing can help it, and leaves word of what it leaves behind.
func TestNext_fails(t *testing.T) {
	for _, tc := range []struct {
		name    string
		spec    membership.Spec
		cluster func(c *pretended)
		want    string
	}{
		{"remove a non-member", membership.Spec{Remove: ids{0x3f}}, nil,
			"member 3f is unknown; members are 1 (m1), 2 (m2), 3 (m3) and 4 (m4)"},
		{"promote a non-member", membership.Spec{Promote: ids{0x3f}}, nil, "member 3f is unknown"},
		{"demote somebody who is gone", membership.Spec{Demote: ids{0x3f}}, func(c *pretended) { c.tombs = ids{0x3f} },
			"member 3f was removed for ever"},
		{"drain a non-member", membership.Spec{Drain: ids{0x3f}}, nil, "member 3f is unknown"},
		{"update a non-member", membership.Spec{Update: []consensus.Member{{ID: 0x3f, PeerURLs: []string{url(5)}}}}, nil,
			"member 3f is unknown"},
		{"somebody removed the newcomer", membership.Spec{Add: []membership.Newcomer{newcomer(7)}},
			func(c *pretended) { c.tombs = ids{7} }, "newcomer m7 (7) was removed by somebody else"},
		{"somebody promoted the newcomer", membership.Spec{Add: []membership.Newcomer{learner(7)}}, func(c *pretended) {
			c.config.Voters, c.config.Members = ids{1, 2, 3, 7}, append(c.config.Members, member(7))
		}, "m7 was to stay a learner"},
		{"a newcomer without an id", membership.Spec{Add: []membership.Newcomer{newcomer(0)}}, nil, "has no id"},
		{"another configuration", membership.Spec{Remove: ids{2}, Expected: consensus.ConfigID{Index: 9, Term: 1}}, nil,
			"the configuration is 12.2.0, the plan expects 9.1.0: plan again"},
		{"drain in another configuration", membership.Spec{Drain: ids{1}, Expected: consensus.ConfigID{Index: 9, Term: 1}}, nil,
			"the configuration is 12.2.0, the plan expects 9.1.0: plan again"},
		{"the limit of learners", membership.Spec{Add: []membership.Newcomer{learner(7)}}, func(c *pretended) { c.limit = 1 },
			"the cluster may have 1 learner (--max-learners), and this needs 2"},
	} {
		c := found(t, 3, 1)
		if tc.cluster != nil {
			tc.cluster(c)
		}
		job := membership.Job{ID: 1, Spec: tc.spec}
		got := c.run(&job, nil)
		if got.End != membership.StateFailed || !strings.Contains(got.Message, tc.want) || c.proposals > 0 {
			t.Errorf("%s: got %+v, want %s", tc.name, got, tc.want)
		}
	}
}

// Ensure that a job planned for the cluster as it was founded goes on in the configurations that it makes itself, and does
// not begin in another one.
func TestNext_foundingConfiguration(t *testing.T) {
	for _, start := range []consensus.ConfigID{consensus.FoundingID(), {Index: 12, Term: 2}} {
		c := found(t, 3, 0)
		c.id = start
		job := membership.Job{ID: 1, Spec: membership.Spec{
			Kind: membership.KindReplace, Remove: ids{2}, Add: []membership.Newcomer{newcomer(7)},
			Expected: consensus.FoundingID(),
		}}
		got := c.run(&job, nil)
		if done := got.End == membership.StateDone; done != (start == consensus.FoundingID()) {
			t.Errorf("from configuration %v: got %+v", start, got)
		}
	}
}

// Ensure that a removal that is complete is not asked for again, whichever leader made it, and that a learner which an attempt
// before this one has left behind is taken over, and not removed by a cancellation.
func TestNext_goesOnFromWhatIsThere(t *testing.T) {
	c := found(t, 3, 1)
	c.tombs = ids{0x3f}
	job := membership.Job{ID: 1, Spec: membership.Spec{Remove: ids{0x3f}, Add: []membership.Newcomer{at(7, 4)}}}
	job.Spec.Add[0].Name = "m4"
	if got := c.run(&job, nil); got.End != membership.StateDone || !cmp.Equal(c.config.Voters, ids{1, 2, 3, 4}) {
		t.Errorf("got %+v, voters %v", got, c.config.Voters)
	}
	c = found(t, 3, 1).silence(4)
	c.nobody = true
	job = membership.Job{ID: 1, CancelAsked: true, Spec: membership.Spec{Add: []membership.Newcomer{at(7, 4)}}}
	job.Spec.Add[0].Name = ""
	if got := c.run(&job, nil); got.End != membership.StateCancelled || !c.config.Contains(4) {
		t.Errorf("got %+v, %+v", got, c.config)
	}
}

// Ensure that for every small change in every small cluster the plan is blocked if, and only if, the job does not end.
func TestDraft_keepsItsWord(t *testing.T) {
	runs, blocked := 0, 0
	for _, protocol := range protocols {
		for code := range 27 * 3 * 4 * 8 {
			if protocol != consensus.ProtocolAuto && code%5 != int(protocol)%5 {
				continue // each has its fifth
			}
			spec := membership.Spec{Protocol: protocol}
			rest := code
			draw := func(n int) int { x := rest % n; rest /= n; return x }
			for id := consensus.MemberID(1); id <= 3; id++ {
				switch draw(3) {
				case 1:
					spec.Remove = append(spec.Remove, id)
				case 2:
					spec.Demote = append(spec.Demote, id)
				}
			}
			switch draw(3) {
			case 1:
				spec.Remove = append(spec.Remove, 4)
			case 2:
				spec.Promote = ids{4}
			}
			spec.Add = [][]membership.Newcomer{nil, {newcomer(7)}, {at(7, 2)}, {newcomer(7), newcomer(8)}}[draw(4)]
			if spec.Validate() != nil {
				continue
			}
			c := found(t, 3, 1)
			for id := consensus.MemberID(2); id <= 4; id++ {
				if draw(2) == 1 {
					c.silence(id)
				}
			}
			if !c.reachable() {
				continue // it has no leader for long
			}
			plan := membership.Draft(&spec, c.view())
			job := membership.Job{ID: 1, Spec: spec}
			c.run(&job, nil)
			runs++
			if done := job.State == membership.StateDone; done != (len(plan.Blockers) == 0) {
				t.Fatalf("%+v: planned %q, got %v: %s", spec, plan.Blockers, job.State, job.Message)
			}
			if len(plan.Blockers) > 0 {
				blocked++
				continue
			}
			want := membership.Measure(&c.config, c.view().Config.IDs())
			after := plan.Steps[len(plan.Steps)-1].After
			if after.Voters != want.Voters || after.Learners != want.Learners {
				t.Fatalf("%+v: planned %+v, got %+v", spec, after, want)
			}
		}
	}
	if runs < 3000 || blocked < 500 || blocked > runs-500 {
		t.Errorf("%d runs, %d of them blocked, do not say much", runs, blocked)
	}
}
