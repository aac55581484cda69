package membership_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quorate/quorate/internal/base/typed"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
)

// find returns the step whose title begins so.
func find(t *testing.T, p *membership.Plan, title string) membership.PlanStep {
	t.Helper()
	for _, step := range p.Steps {
		if strings.HasPrefix(step.Title, title) {
			return step
		}
	}
	t.Fatalf("there is no step %q in %+v", title, p)
	return membership.PlanStep{}
}

func TestMeasure_sets(t *testing.T) {
	for _, tc := range []struct {
		name   string
		config consensus.Config
		active ids
		want   membership.Strength
	}{
		{"all three", consensus.Config{Voters: ids{1, 2, 3}}, ids{1, 2, 3},
			membership.Strength{Voters: 3, Quorum: 2, Superquorum: 3, Active: 3, Tolerates: 1}},
		{"two of three", consensus.Config{Voters: ids{1, 2, 3}, Learners: ids{4}}, ids{1, 3, 4},
			membership.Strength{Voters: 3, Learners: 1, Quorum: 2, Superquorum: 3, Active: 2, Tolerates: 0}},
		{"a lost quorum", consensus.Config{Voters: ids{1, 2, 3, 4, 5}}, ids{1, 2},
			membership.Strength{Voters: 5, Quorum: 3, Superquorum: 4, Active: 2, Tolerates: -1}},
		{"joint, the outgoing set is the " +
			"weaker", consensus.Config{Voters: ids{3, 4, 5, 6, 7}, Outgoing: ids{1, 2, 3}}, ids{1, 3, 4, 5, 6, 7},
			membership.Strength{Voters: 5, Outgoing: 3, Quorum: 3, OutQuorum: 2, Superquorum: 4, Active: 2, Tolerates: 0}},
		{"joint, the incoming set is the weaker", consensus.Config{Voters: ids{3, 4}, Outgoing: ids{1, 2, 3}}, ids{1, 2, 3, 4},
			membership.Strength{Voters: 2, Outgoing: 3, Quorum: 2, OutQuorum: 2, Superquorum: 2, Active: 2, Tolerates: 0}},
	} {
		if got := membership.Measure(&tc.config, tc.active); got != tc.want {
			t.Errorf("%s: got %+v, want %+v", tc.name, got, tc.want)
		}
	}
}

// Ensure that a plan has the right numbers before, during and after, for one to seven voters.
func TestDraft_strength(t *testing.T) {
	quorums, supers, stands := []int{0, 1, 2, 2, 3, 3, 4, 4, 5, 5}, []int{0, 1, 2, 3, 3, 4, 5, 6, 6, 7}, []int{0, 0, 0, 1, 1, 2, 2, 3, 3, 4}
	of := func(n, learners int) membership.Strength {
		return membership.Strength{
			Voters: n, Learners: learners, Quorum: quorums[n], Superquorum: supers[n], Active: n, Tolerates: stands[n],
		}
	}
	joint := func(out, in int) membership.Strength {
		s := of(in, 0)
		s.Outgoing, s.OutQuorum = out, quorums[out]
		if stands[out] < stands[in] {
			s.Active, s.Tolerates = out, stands[out]
		}
		return s
	}
	for n := 1; n <= 7; n++ {
		last := consensus.MemberID(n)
		for _, tc := range []struct {
			name          string
			spec          membership.Spec
			learners      int // while they catch up
			title         string
			during, after membership.Strength
			protocol      consensus.Protocol
		}{
			{"add one", membership.Spec{Add: []membership.Newcomer{newcomer(8)}}, 1, "make m8 a voter in one " +
				"step", of(n+1, 0), of(n+1, 0),
				consensus.ProtocolSingle},
			{"add two", membership.Spec{Add: []membership.Newcomer{newcomer(8), newcomer(9)}}, 2, "make m8 and m9 voters in " +
				"one joint step",
				joint(n, n+2), of(n+2, 0), consensus.ProtocolJointEarly},
			{"replace", membership.Spec{Remove: ids{last}, Add: []membership.Newcomer{newcomer(8)}}, 1,
				fmt.Sprintf("swap m%d for m8 in one joint step", n), joint(n, n), of(n, 0), consensus.ProtocolJointEarly},
			{"replace by activate", membership.Spec{Remove: ids{last}, Add: []membership.Newcomer{newcomer(8)},
				Protocol: consensus.ProtocolActivate}, 1, fmt.Sprintf("swap m%d for m8 in one joint "+
				"step", n), joint(n, n), of(n, 0),
				consensus.ProtocolActivate},
			{"add one by apply", membership.Spec{Add: []membership.Newcomer{newcomer(8)}, Protocol: consensus.ProtocolApply}, 1,
				"make m8 a voter in one " +
					"step", func() membership.Strength { s := of(n, 1); return s }(), of(n+1, 0), consensus.ProtocolApply},
			{"a learner", membership.Spec{Add: []membership.Newcomer{learner(8)}}, 1, "add " +
				"m8", of(n, 1), of(n, 1), consensus.ProtocolAuto},
			{"remove", membership.Spec{Remove: ids{last}}, 0, fmt.Sprintf("remove m%d in one "+
				"step", n), of(max(n-1, 1), 0), of(max(n-1, 1), 0),
				consensus.ProtocolSingle},
		} {
			if n == 1 && tc.name == "remove" {
				continue // the last voter
			}
			p := membership.Draft(&tc.spec, found(t, n, 0).view())
			if len(p.Blockers) > 0 {
				t.Errorf("%s to %d: blocked: %v", tc.name, n, p.Blockers)
				continue
			}
			if p.Now != of(n, 0) || p.Protocol != tc.protocol {
				t.Errorf("%s to %d: got %+v now, by %v", tc.name, n, p.Now, p.Protocol)
			}
			if tc.learners > 0 {
				if join := find(t, &p, "stream"); join.During != of(n, tc.learners) || join.After != of(n, tc.learners) {
					t.Errorf("%s to %d: got %+v while newcomers catch up", tc.name, n, join)
				}
			}
			step := find(t, &p, tc.title)
			if step.During != tc.during {
				t.Errorf("%s to %d: during: %s", tc.name, n, cmp.Diff(tc.during, step.During))
			}
			if step.After != tc.after || p.Steps[len(p.Steps)-1].After != tc.after {
				t.Errorf("%s to %d: after: %s", tc.name, n, cmp.Diff(tc.after, step.After))
			}
		}
	}
}

func TestDraft_steps(t *testing.T) {
	for _, tc := range []struct {
		name string
		spec membership.Spec
		want []string
	}{
		{"replace the leader where it is", membership.Spec{Remove: ids{1}, Add: []membership.Newcomer{at(7, 1)}}, []string{
			"hand leadership from m1 to m2 or m3, whichever has most of the log", "remove m1 first: its URL is taken " +
				"over", "add m7 (http://10.0.1.1:2380) as a learner",
			"stream the state to m7, then the log", "make m7 a voter in one step", "settle: m1 may be switched off"}},
		{"reset", membership.Spec{Remove: ids{2}, Add: []membership.Newcomer{{Name: "m2", PeerURLs: []string{url(2)}}}}, []string{
			"remove m2 first: its URL is taken over", "add m2 (http://10.0.2.1:2380) as a learner",
			"stream the state to m2, then the log", "make m2 a voter in one step", "settle: the former m2 is gone for ever"}},
		{"many " +
			"things", membership.Spec{Remove: ids{2}, Demote: ids{3}, Promote: ids{4}, Update: []consensus.Member{{ID: 1, PeerURLs: []string{"http://h:1"}}}},
			[]string{"make m4 a voter, remove m2, make m3 a learner and change the peer URLs of m1 to http://h:1 in one " +
				"joint step",
				"settle: m2 may be switched off"}},
		{"demote", membership.Spec{Demote: ids{3}}, []string{"make m3 a learner in one step", "settle: the change is final"}},
		{"update", membership.Spec{Update: []consensus.Member{{ID: 3, PeerURLs: []string{"http://h:1"}}}},
			[]string{"change the peer URLs of m3 to http://h:1 in one step"}},
		{"newcomers without " +
			"names", membership.Spec{Add: []membership.Newcomer{{PeerURLs: []string{"http://a:1"}}, {PeerURLs: []string{"http://b:1"}, Learner: true}}},
			[]string{"add http://a:1 and http://b:1 as learners", "stream the state to http://a:1 and http://b:1, then the log",
				"make http://a:1 a voter in one step", "settle: the change is final"}},
		{"drain", membership.Spec{Kind: membership.KindDrain, Drain: ids{1, 2}}, []string{"hand leadership from m1 to m3"}},
		{"cordon the leader", membership.Spec{Cordon: ids{1, 2}}, []string{"cordon m1 and m2", "hand leadership from m1 to " +
			"m3"}},
		{"cordon, and make a voter of it", membership.Spec{Cordon: ids{4}, Promote: ids{4}}, []string{
			"cordon m4", "make m4 a voter in one step", "settle: the change is final"}},
		{"a learner of a former attempt", membership.Spec{Add: []membership.Newcomer{{PeerURLs: []string{url(4)}}}},
			[]string{"make m4 a voter in one step", "settle: the change is final"}},
	} {
		p := membership.Draft(&tc.spec, found(t, 3, 1).view())
		var got []string
		for _, step := range p.Steps {
			got = append(got, step.Title)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" || len(p.Blockers) > 0 || p.Done {
			t.Errorf("%s: blocked by %v, done %v: %s", tc.name, p.Blockers, p.Done, diff)
		}
	}
}

func TestDraft_blockers(t *testing.T) {
	replace := membership.Spec{Remove: ids{2}, Add: []membership.Newcomer{newcomer(0)}}
	replace.Add[0].PeerURLs = []string{url(7)}
	for _, tc := range []struct {
		name    string
		cluster *pretended
		spec    membership.Spec
		also    func(c *pretended)
		want    []string
	}{
		{"an invalid spec", found(t, 3, 0), membership.Spec{Remove: ids{2}, Demote: ids{2}}, nil,
			[]string{"member 2 is named more than once: one change does one thing to it"}},
		{"non-members", found(t, 3, 0), membership.Spec{Remove: ids{0x3f}, Promote: ids{0x4f}}, nil,
			[]string{"member 3f is unknown; members are 1 (m1), 2 (m2) and 3 (m3)", "member 4f is unknown; members are 1 " +
				"(m1), 2 (m2) and 3 (m3)"}},
		{"a URL in use", found(t, 3, 0), membership.Spec{Remove: ids{2}, Add: []membership.Newcomer{at(0, 1)}}, nil,
			[]string{"URL http://10.0.1.1:2380 belongs to m1: choose another, or remove m1 in the same change"}},
		{"a URL in use by another name", found(t, 3, 1), membership.Spec{Add: []membership.Newcomer{at(9, 4)}}, nil,
			[]string{"URL http://10.0.4.1:2380 belongs to m4: choose another, or remove m4 in the same change"}},
		{"an update to a URL in " +
			"use", found(t, 3, 0), membership.Spec{Update: []consensus.Member{{ID: 2, PeerURLs: []string{url(1)}}}}, nil,
			[]string{"URL http://10.0.1.1:2380 belongs to m1: choose another, or remove m1 in the same change"}},
		{"two dead of five, one more to go", found(t, 5, 0).silence(4, 5), membership.Spec{Remove: ids{2}}, nil,
			[]string{"removing m2 would leave 4 voters of which only 2 answer: start m4 or m5 first"}},
		{"one dead of three, another to go", found(t, 3, 0).silence(3), membership.Spec{Remove: ids{2}}, nil,
			[]string{"removing m2 would leave 2 voters of which only 1 answers: start m3 first, or remove m3 instead"}},
		{"the last voter", found(t, 1, 1), membership.Spec{Remove: ids{1}}, nil,
			[]string{"this would leave no voter at all: m1 is the last; add or promote another in the same change"}},
		{"demoting everybody", found(t, 2, 0), membership.Spec{Demote: ids{1, 2}}, nil,
			[]string{"this would leave no voter at all: m1 and m2 are the last; add or promote another in the same change"}},
		{"apply from two to one", found(t, 2, 0), membership.Spec{Remove: ids{2}, Protocol: consensus.ProtocolApply}, nil,
			[]string{"apply cannot go from two voters to one: use single, or auto"}},
		{"a learner that lags", found(t, 3, 1), membership.Spec{Promote: ids{4}}, func(c *pretended) {
			c.seen[4].CaughtUp, c.seen[4].Match = false, 1000
		}, []string{"m4 has not caught up: m4 is 4000 entries of the log behind; wait"}},
		{"a learner that is silent", found(t, 3, 1).silence(4), membership.Spec{Promote: ids{4}}, nil,
			[]string{"m4 cannot be promoted: m4 has not answered for 12 s: start it again"}},
		{"another change", found(t, 3, 0), replace, func(c *pretended) {
			c.id, c.protocol, c.stage = consensus.ConfigID{Index: 12, Term: 3}, consensus.ProtocolJoint, 1
		}, []string{"another change is under way (config 12.3.0 by joint): wait until it is final"}},
		{"a new leader", found(t, 3, 0), replace, func(c *pretended) { c.started = false },
			[]string{"m1 has led for a moment only and a majority has not answered it yet: try again"}},
		{"no longer as it was founded", found(t, 3, 0), membership.Spec{Remove: ids{2}, Expected: consensus.FoundingID()}, nil,
			[]string{"the configuration is 12.2.0, the plan expects 0.1.0: plan again"}},
		{"another " +
			"configuration", found(t, 3, 0), membership.Spec{Remove: ids{2}, Expected: consensus.ConfigID{Index: 11, Term: 2}}, nil,
			[]string{"the configuration is 12.2.0, the plan expects 11.2.0: plan again"}},
		{"too many " +
			"learners", found(t, 3, 1), membership.Spec{Add: []membership.Newcomer{learner(7)}}, func(c *pretended) { c.limit = 1 },
			[]string{"the cluster may have 1 learner (--max-learners), and this needs 2: raise the limit, add fewer members " +
				"at a time, or remove a learner first"}},
		{"drain to nobody", found(t, 3, 0).silence(2, 3), membership.Spec{Drain: ids{1}}, nil,
			[]string{"m1 cannot hand leadership over: m2 and m3 do not answer or are behind; start one of them, or wait"}},
		{"drain everybody", found(t, 1, 0), membership.Spec{Drain: ids{1}}, nil,
			[]string{"m1 cannot hand leadership over: every voter is to be drained; leave one out"}},
		{"no room without a " +
			"quorum", found(t, 3, 0).silence(3), membership.Spec{Remove: ids{2}, Add: []membership.Newcomer{at(7, 2)}}, nil,
			[]string{"removing m2 would leave 2 voters of which only 1 answers: start m3 first, or remove m3 instead"}},
		{"a voter that was rolled back", found(t, 3, 0).silence(3), membership.Spec{Remove: ids{2}},
			func(c *pretended) { c.seen[3].State = membership.RolledBack },
			[]string{"removing m2 would leave 2 voters of which only 1 answers: m3 was rolled back: start it with " +
				typed.Emptied + ", and run `quorate member reset m3`, or remove m3 instead"}},
		{"somebody else at the address of one", found(t, 3, 0).silence(3), membership.Spec{Remove: ids{2}},
			func(c *pretended) { c.seen[3].State = membership.OtherHistory },
			[]string{"removing m2 would leave 2 voters of which only 1 answers: a process of another history of this cluster " +
				"answers at the address of m3: stop it, move its data directory aside, and start m3 with its own, or remove " +
				"m3 instead"}},
		{"one that lost its disk, and one that is down", found(t, 5, 0).silence(3, 4), membership.Spec{Remove: ids{2}},
			func(c *pretended) { c.seen[3].State = membership.LostItsDisk },
			[]string{"removing m2 would leave 4 voters of which only 2 answer: m3 lost its disk: if it was moved and has " +
				"its data elsewhere, stop the process that answers at its address; else start it with " +
				typed.Emptied + ", and run `quorate member reset m3`; start m4 first"}},
	} {
		if tc.also != nil {
			tc.also(tc.cluster)
		}
		p := membership.Draft(&tc.spec, tc.cluster.view())
		if diff := cmp.Diff(tc.want, p.Blockers); diff != "" || p.Done {
			t.Errorf("%s: done %v: %s", tc.name, p.Done, diff)
		}
		blocked := membership.BlockedError{Plan: p}
		for _, words := range tc.want {
			if !strings.Contains(blocked.Error(), words) {
				t.Errorf("%s: the error says %q", tc.name, blocked.Error())
			}
		}
	}
}

func TestDraft_warnings(t *testing.T) {
	for _, tc := range []struct {
		name    string
		cluster *pretended
		spec    membership.Spec
		want    []string
	}{
		{"two of three stay", found(t, 3, 0), membership.Spec{Remove: ids{2}}, []string{
			"afterwards the cluster stands no failure, now it stands 1 failure", "2 voters stand no more failures than 1, " +
				"and each write needs one more of them"}},
		{"room first", found(t, 3, 0), membership.Spec{Remove: ids{2}, Add: []membership.Newcomer{at(7, 2)}}, []string{
			"m2 must go before its successor can join: until that one has caught up, the cluster stands no failure",
			"somebody must start m7: `quorate --name m7 --join http://10.0.1.1:2380 --listen-peer-urls http://10.0.2.1:2380 " +
				"--initial-advertise-peer-urls http://10.0.2.1:2380`, with your flags for data, clients and TLS",
			`during "remove m2 first: its URL is taken over" the cluster stands no failure, now it stands 1 failure`}},
		{"what is so already", found(t, 3, 1), membership.Spec{Promote: ids{3, 4}, Remove: ids{0x3f}}, []string{
			"member 3f is removed already", "m3 votes already", "4 voters stand no more failures than 3, and each write " +
				"needs one more of them"}},
		{"a silent one stays", found(t, 5, 0).silence(5), membership.Spec{Demote: ids{4}}, []string{
			"afterwards the cluster stands no failure, now it stands 1 failure",
			"4 voters stand no more failures than 3, and each write needs one more of them",
			"m5 stays a voter and has not answered for 12 s"}},
		{"against the odds", found(t, 3, 0).silence(3), membership.Spec{Remove: ids{2}}, []string{
			"afterwards the cluster cannot write, now it stands no failure",
			"2 voters stand no more failures than 1, and each write needs one more of them", "m3 stays a voter and has not " +
				"answered for 12 s"}},
	} {
		tc.cluster.tombs = ids{0x3f}
		tc.cluster.strict = tc.name != "against the odds"
		p := membership.Draft(&tc.spec, tc.cluster.view())
		if diff := cmp.Diff(tc.want, p.Warnings); diff != "" || len(p.Blockers) > 0 {
			t.Errorf("%s: blocked by %v: %s", tc.name, p.Blockers, diff)
		}
	}
}

// Ensure that a plan tells the command that takes the change back.
func TestDraft_undo(t *testing.T) {
	for _, tc := range []struct {
		name string
		spec membership.Spec
		want string
	}{
		{"add", membership.Spec{Add: []membership.Newcomer{newcomer(7)}}, "remove m7"},
		{"add without a name", membership.Spec{Add: []membership.Newcomer{{PeerURLs: []string{url(7)}}}}, "remove ID"},
		{"add one that has its " +
			"id", membership.Spec{Add: []membership.Newcomer{{ID: 0x77, PeerURLs: []string{url(7)}}}}, "remove 77"},
		{"add a learner of a former " +
			"attempt", membership.Spec{Add: []membership.Newcomer{{PeerURLs: []string{url(4)}}}}, "demote m4"},
		{"remove a voter", membership.Spec{Remove: ids{2}}, "add m2 --peer-urls http://10.0.2.1:2380"},
		{"remove a learner", membership.Spec{Remove: ids{4}},
			"add m4 --peer-urls http://10.0.4.1:2380 --learner"},
		{"replace", membership.Spec{Kind: membership.KindReplace, Remove: ids{2}, Add: []membership.Newcomer{newcomer(7)}},
			"replace m7 --name m2 --peer-urls http://10.0.2.1:2380"},
		{"reset", membership.Spec{Kind: membership.KindReplace, Remove: ids{2},
			Add: []membership.Newcomer{{Name: "m2", PeerURLs: []string{url(2)}}}}, ""},
		{"replace by one of the same name", membership.Spec{Kind: membership.KindReplace, Remove: ids{2},
			Add: []membership.Newcomer{{Name: "m2", PeerURLs: []string{url(7)}}}},
			"replace ID --name m2 --peer-urls http://10.0.2.1:2380"},
		{"replace by a learner", membership.Spec{Kind: membership.KindReplace, Remove: ids{2}, Promote: ids{4}},
			"change --add m2=http://10.0.2.1:2380 --demote m4"},
		{"a name and a URL that a shell would read", membership.Spec{Kind: membership.KindReplace, Remove: ids{2},
			Add: []membership.Newcomer{{Name: "it's new", PeerURLs: []string{url(7)}}}},
			`replace 'it'\''s new' --name m2 --peer-urls http://10.0.2.1:2380`},
		{"promote", membership.Spec{Promote: ids{4}}, "demote m4"},
		{"demote two", membership.Spec{Demote: ids{2, 3}}, "promote m2 m3"},
		{"update", membership.Spec{Update: []consensus.Member{{ID: 3, PeerURLs: []string{"http://h:1"}}}},
			"update m3 --peer-urls http://10.0.3.1:2380"},
		{"demote and promote", membership.Spec{Demote: ids{2}, Promote: ids{4}}, "change --promote m2 --demote m4"},
		{"drain", membership.Spec{Drain: ids{1}}, ""},
		{"cordon", membership.Spec{Cordon: ids{1, 2}}, "uncordon m1 m2"},
		{"cordon and demote", membership.Spec{Cordon: ids{2}, Demote: ids{2}}, "change --promote m2 --uncordon m2"},
		{"what is so already", membership.Spec{Promote: ids{2}}, ""},
		{"what cannot be", membership.Spec{Remove: ids{0x3f}}, ""},
	} {
		p := membership.Draft(&tc.spec, found(t, 3, 1).view())
		if want := strings.TrimSuffix("quorate member "+tc.want, "quorate member "); p.Undo != want {
			t.Errorf("%s: got %q, want %q", tc.name, p.Undo, want)
		}
	}
}

// Ensure that a command that is given again after its job is done finds nothing to do, and that a mistyped URL is no reason
// to remove a member.
func TestDraft_done(t *testing.T) {
	expected := consensus.ConfigID{Index: 3, Term: 1}
	again := membership.Newcomer{PeerURLs: []string{url(3)}}
	for _, tc := range []struct {
		name string
		spec membership.Spec
		want bool
	}{
		{"added", membership.Spec{Add: []membership.Newcomer{again}}, true},
		{"replaced", membership.Spec{Remove: ids{0x3f}, Add: []membership.Newcomer{again}, Expected: expected}, true},
		{"not removed", membership.Spec{Remove: ids{2}, Add: []membership.Newcomer{again}}, false},
		{"unknown", membership.Spec{Remove: ids{0x4f}, Add: []membership.Newcomer{again}}, false},
		{"promoted", membership.Spec{Promote: ids{1, 2}}, true},
		{"demoted", membership.Spec{Demote: ids{4}}, true},
		{"has the URLs", membership.Spec{Update: []consensus.Member{{ID: 2, PeerURLs: []string{url(2)}}}}, true},
		{"drained", membership.Spec{Drain: ids{2}}, true},
		{"leads", membership.Spec{Drain: ids{1}}, false},
		{"a learner", membership.Spec{Add: []membership.Newcomer{{PeerURLs: []string{url(4)}, Learner: true}}}, true},
		{"a voter", membership.Spec{Add: []membership.Newcomer{{PeerURLs: []string{url(3)}, Learner: true}}}, false},
	} {
		c := found(t, 3, 1)
		c.tombs = ids{0x3f}
		p := membership.Draft(&tc.spec, c.view())
		if p.Done != tc.want || (p.Done && len(p.Steps)+len(p.Blockers)+len(p.Warnings) > 0) {
			t.Errorf("%s: got %+v, want done %v", tc.name, p, tc.want)
		}
	}
}

// Ensure that making a plan writes to nothing that it was given.
func TestDraft_changesNothing(t *testing.T) {
	c := found(t, 3, 1)
	v, same := c.view(), c.view()
	spec := membership.Spec{Remove: ids{1, 2}, Promote: ids{4}, Add: []membership.Newcomer{at(0, 2)}}
	kept := spec
	kept.Add = slices.Clone(spec.Add)
	membership.Draft(&spec, v)
	if diff := cmp.Diff(same, v) + cmp.Diff(kept, spec); diff != "" {
		t.Error(diff)
	}
}
