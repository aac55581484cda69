package membership_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
)

func TestSpec_Validate_faults(t *testing.T) {
	named := func(name string, urls ...string) membership.Newcomer {
		return membership.Newcomer{Name: name, PeerURLs: urls}
	}
	many := membership.Spec{}
	for i := range 70 {
		many.Remove = append(many.Remove, consensus.MemberID(i+1))
	}
	for _, tc := range []struct {
		name string
		spec membership.Spec
		want string // faults, one a line; empty: none
	}{
		{"nothing", membership.Spec{}, "nothing is asked for: name members to add, remove, promote, demote, update, cordon, uncordon or drain"},
		{"one of each", membership.Spec{Kind: membership.KindChange, Add: []membership.Newcomer{newcomer(7)}, Remove: ids{1}, Promote: ids{2},
			Demote: ids{3}, Update: []consensus.Member{member(4)}, Protocol: consensus.ProtocolJoint}, ""},
		{"an unknown kind and protocol", membership.Spec{Kind: "explode", Remove: ids{1}, Protocol: 9},
			"the kind \"explode\" is unknown: use change, replace or drain\n" +
				"the protocol is unknown: use one of auto, single, joint, joint-early, activate, apply"},
		{"a member in two lists, and another in three", membership.Spec{Remove: ids{1, 2}, Promote: ids{2, 3}, Demote: ids{3}, Update: []consensus.Member{member(3)}},
			"member 2 is named more than once: one change does one thing to it\nmember 3 is named more than once: one change does one thing to it"},
		{"no id", membership.Spec{Remove: ids{0}}, "a member lacks its id"},
		{"a newcomer with the id of a member", membership.Spec{Remove: ids{7}, Add: []membership.Newcomer{newcomer(7)}},
			"member 7 is named more than once: one change does one thing to it"},
		{"no URLs", membership.Spec{Add: []membership.Newcomer{named("m7"), named("")}, Update: []consensus.Member{{ID: 3}}},
			"newcomer m7 has no peer URL: say where it listens for other members\n" +
				"newcomer 2 has no peer URL: say where it listens for other members\n" +
				"member 3 has no peer URL: say where it listens for other members"},
		{"a URL twice", membership.Spec{Add: []membership.Newcomer{named("a", "http://a:1"), named("b", "http://a:1")}},
			"the URL http://a:1 is given twice"},
		{"two newcomers of one name", membership.Spec{Add: []membership.Newcomer{named("a", "http://a:1"), named("a", "http://b:1")}},
			"two newcomers are called a"},
		{"URLs that do not serve", membership.Spec{Add: []membership.Newcomer{named("a", "10.0.0.1:2380", "http://b", "http://c:1/x")}},
			"newcomer a has a peer URL that does not serve: \"10.0.0.1:2380\" lacks a scheme: write http://10.0.0.1:2380, or https://10.0.0.1:2380 for TLS\n" +
				"newcomer a has a peer URL that does not serve: \"http://b\" lacks a port: write http://host:port\n" +
				"newcomer a has a peer URL that does not serve: \"http://c:1/x\" says more than http://host:port: write http://c:1"},
		{"drain and more", membership.Spec{Drain: ids{1}, Remove: ids{2}},
			"drain goes with no other change: a member that is removed or demoted is drained anyway"},
		{"drain", membership.Spec{Kind: membership.KindDrain, Drain: ids{1}}, ""},
		{"drain nobody", membership.Spec{Kind: membership.KindDrain}, "drain names no member"},
		{"replace one by two", membership.Spec{Kind: membership.KindReplace, Remove: ids{1}, Promote: ids{2}, Add: []membership.Newcomer{newcomer(7)}},
			"replace takes one member out and one in: name one to remove, and one to add or to promote"},
		{"replace by a learner", membership.Spec{Kind: membership.KindReplace, Remove: ids{1}, Promote: ids{2}}, ""},
		{"too many", many, "70 members are named, more than 64: make several changes of it"},
		{"too long", membership.Spec{Add: []membership.Newcomer{named(strings.Repeat("a", 300), "http://"+strings.Repeat("b", 600)+":1")}},
			"newcomer " + strings.Repeat("a", 255) + "… has a name that cannot be: name must have at most 255 bytes\n" +
				"newcomer " + strings.Repeat("a", 255) + "… has a peer URL of more than 512 bytes"},
		{"a name that cannot be printed", membership.Spec{Add: []membership.Newcomer{named("a\n\x1b[2J", "http://b:1")}},
			`newcomer a[2J has a name that cannot be: name "a\n\x1b[2J" must be printable text`},
		{"a name that --name refuses", membership.Spec{Add: []membership.Newcomer{named("a=b", "http://b:1")}},
			`newcomer a=b has a name that cannot be: name "a=b" must not contain = or ,`},
		{"a member that has such a name already", membership.Spec{Update: []consensus.Member{{ID: 1, Name: "a\n",
			PeerURLs: []string{"http://b:1"}}}}, ""},
		{"too many URLs", membership.Spec{Add: []membership.Newcomer{named("a", strings.Split(strings.Repeat("http://a:1 ", 8)+"http://b:1", " ")...)}},
			"newcomer a has 9 peer URLs, more than 8"},
	} {
		got := ""
		if err := tc.spec.Validate(); err != nil {
			got = err.Error()
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
	}
}

func TestSpec_Same_ignoresWhatIsDrawn(t *testing.T) {
	a := membership.Spec{
		Add:    []membership.Newcomer{newcomer(7), {ID: 8, PeerURLs: []string{"http://b:1", "http://a:1"}, Learner: true}},
		Remove: ids{1, 2}, Promote: ids{3}, Demote: ids{4, 5}, Update: []consensus.Member{member(6), member(9)},
	}
	b := membership.Spec{
		Kind:   membership.KindChange,
		Add:    []membership.Newcomer{{ID: 80, PeerURLs: []string{"http://a:1", "http://b:1"}, Learner: true}, at(70, 7)},
		Remove: ids{2, 1}, Promote: ids{3}, Demote: ids{5, 4}, Update: []consensus.Member{member(9), member(6)},
		Expected: consensus.ConfigID{Index: 1},
	}
	b.Add[1].Name = "m7"
	if !a.Same(&b) || !b.Same(&a) {
		t.Error("order, ids and the expected configuration make a difference")
	}
	for name, change := range map[string]func(s *membership.Spec){
		"kind":     func(s *membership.Spec) { s.Kind = membership.KindReplace },
		"protocol": func(s *membership.Spec) { s.Protocol = consensus.ProtocolJoint },
		"remove":   func(s *membership.Spec) { s.Remove = ids{2} },
		"promote":  func(s *membership.Spec) { s.Promote = nil },
		"demote":   func(s *membership.Spec) { s.Demote = ids{4} },
		"update":   func(s *membership.Spec) { s.Update = s.Update[1:] },
		"newcomer": func(s *membership.Spec) { s.Add = s.Add[1:] },
		"its name": func(s *membership.Spec) { s.Add = []membership.Newcomer{s.Add[0], at(70, 7)} },
		"its role": func(s *membership.Spec) { s.Add = []membership.Newcomer{s.Add[1], {PeerURLs: s.Add[0].PeerURLs}} },
		"cordon":   func(s *membership.Spec) { s.Cordon = ids{4} },
		"uncordon": func(s *membership.Spec) { s.Uncordon = ids{4} },
		"its mark": func(s *membership.Spec) { s.Add[0].Cordoned = !s.Add[0].Cordoned },
		"drain":    func(s *membership.Spec) { *s = membership.Spec{Drain: ids{1}} },
		"its URL": func(s *membership.Spec) {
			s.Add = []membership.Newcomer{s.Add[0], {Name: "m7", PeerURLs: []string{"http://c:1"}}}
		},
		"all of it": func(s *membership.Spec) { *s = membership.Spec{} },
	} {
		c := b
		c.Add = slices.Clone(b.Add)
		change(&c)
		if a.Same(&c) {
			t.Errorf("%s makes no difference", name)
		}
	}
}

func TestJob_Encode_readable(t *testing.T) {
	job := membership.Job{
		ID: 0xfedcba9876543210, State: membership.StateRunning, Phase: membership.PhaseSnapshot, Message: "m4 receives the state",
		CancelAsked: true, Created: 1, Started: 2, Updated: 3, Ended: 4,
		Config: consensus.ConfigID{Index: 12, Term: 3, Stage: 1}, Final: consensus.ConfigID{Index: 14, Term: 3},
		Names: []membership.Named{{ID: 0xf3, Name: "m2"}},
		Spec: membership.Spec{
			Kind: membership.KindChange, Protocol: consensus.ProtocolJointEarly, Expected: consensus.ConfigID{Index: 12, Term: 3},
			Add: []membership.Newcomer{cordoned(0xffffffffffffffff), learner(8)}, Remove: ids{0xf3}, Promote: ids{2}, Demote: ids{3},
			Update: []consensus.Member{member(4)}, Drain: ids{5}, Cordon: ids{6}, Uncordon: ids{9},
		},
	}
	encoded := job.Encode()
	got, err := membership.DecodeJob(encoded)
	if diff := cmp.Diff(job, got); err != nil || diff != "" {
		t.Errorf("%v, %s", err, diff)
	}
	for _, words := range []string{
		`"id":"fedcba9876543210"`, `"id":"ffffffffffffffff"`, `"remove":["f3"]`, `"protocol":"joint-early"`, `"config":"12.3.1"`,
		`"final":"14.3.0"`, `"expected":"12.3.0"`, `"phase":"snapshot"`, `"cordon":["6"]`, `"names":[{"id":"f3","name":"m2"}]`, `"cancel_asked":true`,
	} {
		if !strings.Contains(string(encoded), words) {
			t.Errorf("%s lacks %s", encoded, words)
		}
	}
	again, err := json.Marshal(&job)
	if err != nil || string(again) != string(encoded) {
		t.Errorf("it has two forms: %s, %v", again, err)
	}
	later := strings.Replace(string(encoded), `"form":1`, `"form":2`, 1)
	if _, err := membership.DecodeJob([]byte(later)); !errors.Is(err, level.ErrLater) {
		t.Errorf("a job of a later form: %v", err)
	}
	if _, err := membership.DecodeJob([]byte(strings.Replace(string(encoded), `"form":1,`, "", 1))); err == nil ||
		errors.Is(err, level.ErrLater) {
		t.Errorf("a job without a form: %v", err)
	}
	least := membership.Job{ID: 1}
	if got := string(least.Encode()); got != `{"form":1,"id":"1","spec":{"kind":"","protocol":"auto"},"state":"","created":0,"updated":0}` {
		t.Errorf("the least job is %s", got)
	}
}

func TestDecodeJob_tolerant(t *testing.T) {
	got, err := membership.DecodeJob([]byte(`{"form":1,"id":"2a","later":{"x":1},"spec":{"kind":"drain","drain":["3f"],"more":[1]},"state":"queued"}`))
	want := membership.Job{ID: 0x2a, State: membership.StateQueued, Spec: membership.Spec{Kind: membership.KindDrain, Drain: ids{0x3f}}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v, %s", err, diff)
	}
	for _, broken := range []string{
		``, `{}`, `[]`, `{"form":1,"id":"0"}`, `{"form":1,"id":"xyz"}`, `{"form":1,"id":"1","spec":{"protocol":"magic"}}`, `{"form":1,"id":"1","config":"1.2"}`,
		`{"form":1,"id":"1","config":"1.2.300"}`, `{"form":1,"id":"1","spec":{"remove":["-1"]}}`, `{"form":1,"id":"1","message":"` + strings.Repeat("a", 1<<20) + `"}`,
	} {
		if got, err := membership.DecodeJob([]byte(broken)); err == nil {
			t.Errorf("%.60s is a job: %+v", broken, got)
		}
	}
}

func TestSpec_Validate_boundsJob(t *testing.T) {
	spec := membership.Spec{}
	for i := range 64 {
		n := membership.Newcomer{ID: consensus.MemberID(i + 1), Name: fmt.Sprintf("%d%s", i, strings.Repeat("<", 253))}
		for j := range 8 {
			n.PeerURLs = append(n.PeerURLs, fmt.Sprintf("http://%s.%d.%d:2380", strings.Repeat("h", 480), i, j))
		}
		spec.Add = append(spec.Add, n)
	}
	job := membership.Job{ID: 1, Spec: spec}
	if err := spec.Validate(); err != nil {
		t.Fatal(err)
	}
	if _, err := membership.DecodeJob(job.Encode()); err != nil {
		t.Error(err)
	}
}

// A job that decodes means the same after another round.
func FuzzDecodeJob(f *testing.F) {
	f.Add([]byte(`{"form":1,"id":"2a","spec":{"kind":"replace","add":[{"peer_urls":["http://a:1"]}],"remove":["3f"]},"config":"1.2.0"}`))
	f.Fuzz(func(t *testing.T, encoded []byte) {
		job, err := membership.DecodeJob(encoded)
		if err != nil {
			return
		}
		first := job.Encode()
		again, err := membership.DecodeJob(first)
		if err != nil || string(again.Encode()) != string(first) {
			t.Errorf("%q decodes to %q, and that to %q, %v", encoded, first, again.Encode(), err)
		}
		if job.Spec.Validate() == nil && !job.Spec.Same(&again.Spec) {
			t.Errorf("%q asks for something else after another round", first)
		}
	})
}

// Ensure that a change planned while jobs before it wait or run expects what they make of the cluster, and no other job.
func TestSpec_Due(t *testing.T) {
	at := func(index consensus.Index) consensus.ConfigID { return consensus.ConfigID{Index: index, Term: 2} }
	ended := func(from, to consensus.Index) membership.Job {
		return membership.Job{State: membership.StateDone, Config: at(from), Final: at(to)}
	}
	untold := func(j membership.Job) membership.Job {
		j.ID = 99
		return j
	}
	for _, row := range []struct {
		name     string
		expected consensus.ConfigID
		before   []membership.Job
		now      consensus.ConfigID
		want     consensus.ConfigID
	}{
		{"planned without being told of it", at(4), []membership.Job{untold(ended(4, 9))}, at(9), at(4)},
		{"the second was not told of", at(4), []membership.Job{ended(4, 9), untold(ended(9, 12))}, at(12), at(9)},
		{"nothing expected", consensus.ConfigID{}, []membership.Job{ended(4, 9)}, at(9), consensus.ConfigID{}},
		{"no jobs", at(4), nil, at(9), at(4)},
		{"planned before a job that made two changes", at(4), []membership.Job{ended(4, 9)}, at(9), at(9)},
		{"planned while it ran", at(7), []membership.Job{ended(4, 9)}, at(9), at(9)},
		{"two jobs in a row", at(4), []membership.Job{ended(4, 9), ended(9, 12)}, at(12), at(12)},
		{"somebody else between them", at(4), []membership.Job{ended(4, 9), ended(11, 12)}, at(12), at(9)},
		{"somebody else after them", at(4), []membership.Job{ended(4, 9)}, at(20), at(9)},
		{"planned in the cluster as it was founded", consensus.FoundingID(),
			[]membership.Job{{State: membership.StateDone, Config: consensus.FoundingID(), Final: at(9)}}, at(9), at(9)},
		{"one that runs", at(4), []membership.Job{{State: membership.StateRunning, Config: at(4)}}, at(7), at(7)},
		{"one that waits", at(4), []membership.Job{{State: membership.StateQueued}}, at(4), at(4)},
		{"one that never began", at(4), []membership.Job{{State: membership.StateCancelled}}, at(4), at(4)},
		{"planned after it", at(10), []membership.Job{ended(4, 9)}, at(10), at(10)},
	} {
		spec := membership.Spec{Expected: row.expected, After: []membership.JobID{0}}
		if got := spec.Due(row.before, row.now); got != row.want {
			t.Errorf("%s: got %v, want %v", row.name, got, row.want)
		}
	}
}

// Ensure that what is wrong with very long names and URLs is told in a short text.
func TestSpec_Validate_longText(t *testing.T) {
	long := strings.Repeat("<", 1<<20)
	var s membership.Spec
	for range 2 {
		s.Add = append(s.Add, membership.Newcomer{Name: long, PeerURLs: []string{long, long, "x0", "x1", "x2", "x3", "x4"}})
	}
	if err := s.Validate(); err == nil || len(err.Error()) > 16<<10 || !strings.Contains(err.Error(), "more than") {
		t.Errorf("a text of %d bytes", len(fmt.Sprint(err)))
	}
}
