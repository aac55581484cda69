package node

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/fast"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/consensus/tally"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/proposals"
)

// observed is a node, member 1 of some voters, and what its ports were asked for.
type observed struct {
	*Node
	asked    []string
	persists []Persist
	taken    []raft.Input
	distance time.Duration // to each other member
}

func newObserved(t *testing.T, voters ...consensus.MemberID) *observed {
	t.Helper()
	config := consensus.Config{Voters: voters}
	for _, id := range voters {
		config.Members = append(config.Members, consensus.Member{ID: id, PeerURLs: []string{"http://" + id.String()}})
	}
	options := raft.Defaults(1)
	options.Fast = raft.FastOptions{Footprint: kv.PayloadFootprint, Revises: kv.Revises}
	o := &observed{}
	asked := func(what string) { o.asked = append(o.asked, what) }
	n, err := New(Options{Raft: options, FirstSession: 1, RetryTicks: 300},
		raft.Restored{Base: consensus.Founding(config)}, Ports{
			Send:         func([]consensus.Message) { asked("Send") },
			Persist:      func(p Persist) { asked("Persist"); o.persists = append(o.persists, p) },
			Apply:        func([]consensus.Entry) { asked("Apply") },
			Install:      func(consensus.SnapshotMeta) { asked("Install") },
			SendSnapshot: func(consensus.MemberID) { asked("SendSnapshot") },
			StopSnapshot: func(consensus.MemberID) { asked("StopSnapshot") },
			Configure:    func(raft.ConfigInForce) { asked("Configure") },
			Observe:      func([]raft.Event) { asked("Observe") },
			Distance:     func(consensus.MemberID) (time.Duration, bool) { return o.distance, true },
			Taken:        func(inputs []raft.Input) { o.taken = append(o.taken, inputs...) },
			Decided:      func([]tally.Decision) { asked("Decided") },
		})
	if err != nil {
		t.Fatal(err)
	}
	o.Node, o.asked = n, nil
	return o
}

// hears lets a member lead.
func (o *observed) hears(leader consensus.MemberID, term consensus.Term) {
	o.Step(time.Unix(1000, 0), raft.Receive{Message: consensus.Message{
		Kind: consensus.MsgHeartbeat, From: leader, To: 1, Term: term, Round: 1,
	}})
}

// waiter waits for a proposal.
type waiter struct {
	routes []proposals.Route
	by     proposals.Passage
	told   int
}

func (w *waiter) Shown(by proposals.Passage) { w.CompleteAfter(by, kv.Result{}, nil) }

func (w *waiter) Complete(kv.Result, error) { w.told++ }

func (w *waiter) CompleteAfter(by proposals.Passage, _ kv.Result, _ error) {
	w.told++
	w.by = by
	w.routes = append(w.routes, by.Route)
}

// clientProposal is what a native client has under way through this node.
func clientProposal(o *observed, w *waiter) consensus.ProposalID {
	id := consensus.ProposalID{Session: consensus.ClientSession(7, 1), Sequence: 1}
	put := kv.Command{Put: &kv.PutOp{Key: []byte("k")}}
	if err := o.proposals.AddFor(id, put.Append(nil), w, true); err != nil {
		panic(err)
	}
	return id
}

// Ensure that each field of what the core puts out has its effect, alone, and that nothing is asked for where the core puts out
// nothing.
func TestNode_perform_everyField(t *testing.T) {
	message, entry := []consensus.Message{{Kind: consensus.MsgHeartbeat, To: 2}}, []consensus.Entry{{Index: 2, Term: 1}}
	written := raft.Output{
		Seq: 1, Hard: &consensus.HardState{Term: 1}, Reset: &consensus.SnapshotMeta{Position: consensus.Position{Index: 1}},
		Entries: entry, Records: []consensus.RecordChange{{Record: consensus.Record{Term: 3}}},
	}
	persisted := func(o *observed) bool {
		b := &o.persists[0].Batch
		return o.persists[0].Seq == 1 && b.Hard == written.Hard && b.Reset == written.Reset && len(b.Entries) == 1 && len(b.Witness) == 1
	}
	fields := map[string]bool{}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[raft.Output]()) {
		fields[field.Name] = true
	}
	for field, row := range map[string]struct {
		out   raft.Output
		asks  string
		check func(o *observed) bool
	}{
		"Config":       {raft.Output{Config: &raft.ConfigInForce{}}, "Configure", nil},
		"Send":         {raft.Output{Send: message}, "Send", nil},
		"Seq":          {raft.Output{Seq: 1}, "Persist", func(o *observed) bool { return o.persists[0].Seq == 1 }},
		"Hard":         {written, "Persist", persisted},
		"Reset":        {written, "Persist", persisted},
		"Entries":      {written, "Persist", func(o *observed) bool { return o.gathering.last == 2 }},
		"Records":      {written, "Persist", persisted},
		"SendAfter":    {raft.Output{SendAfter: message}, "Persist", func(o *observed) bool { return len(o.persists[0].After) == 1 }},
		"Evaluate":     {raft.Output{Evaluate: make([]fast.Evaluation, 1)}, "Persist", func(o *observed) bool { return len(o.persists[0].Evaluate) == 1 }},
		"Install":      {raft.Output{Install: &consensus.SnapshotMeta{}}, "Install", nil},
		"Apply":        {raft.Output{Apply: entry}, "Apply", nil},
		"StopSnapshot": {raft.Output{StopSnapshot: []consensus.MemberID{2}}, "StopSnapshot", nil},
		"NeedSnapshot": {raft.Output{NeedSnapshot: []raft.SnapshotRequest{{To: 2}}}, "SendSnapshot", nil},
		"Events":       {raft.Output{Events: []raft.Event{raft.Removed{}}}, "Observe", nil},
		"Inferred": {raft.Output{Inferred: &[2]consensus.Index{1, 2}}, "", func(o *observed) bool {
			w := &waiter{}
			o.Resolve([]consensus.Entry{{Index: 2, Term: 1, Proposal: clientProposal(o, w)}}, make([]kv.Result, 1))
			return slices.Equal(w.routes, []proposals.Route{proposals.RouteInferred})
		}},
		"Commit": {raft.Output{
			Commit: raft.Commit{Upto: 2, Waited: consensus.Waited{WaitedFor: 2, DiskTook: 3, AllTook: 4}}, Ready: 1,
		}, "", func(o *observed) bool {
			w := &waiter{}
			o.Resolve([]consensus.Entry{{Index: 2, Term: 1, Proposal: clientProposal(o, w)}}, make([]kv.Result, 1))
			return w.by.Waited == consensus.Waited{WaitedFor: 2, DiskTook: 3, AllTook: 4} && w.by.Known.Equal(o.now) && w.by.Ready.IsZero()
		}},
		"Ready": {raft.Output{Ready: 2}, "", func(o *observed) bool {
			w := &waiter{}
			o.Resolve([]consensus.Entry{{Index: 2, Term: 1, Proposal: clientProposal(o, w)}}, make([]kv.Result, 1))
			return w.by.Ready.Equal(o.now) && w.by.Known.IsZero()
		}},
		"Decided":     {raft.Output{}, "Decided", nil}, // the rest needs what is under way
		"Reads":       {raft.Output{}, "", nil},
		"ReadsWaited": {raft.Output{ReadsWaited: consensus.Waited{WaitedFor: 2}}, "", nil},
		"FailedReads": {raft.Output{}, "", nil},
		"Refusals":    {raft.Output{}, "", nil},
	} {
		o, w := newObserved(t, 1, 2), &waiter{}
		o.now = time.Unix(1000, 0)
		switch field {
		case "Decided":
			decision := tally.Decision{}
			decision.Proposal, decision.Reply = clientProposal(o, w), (&kv.Result{}).Append(nil)
			row.out.Decided = []tally.Decision{decision}
			row.check = func(*observed) bool { return w.told == 1 }
		case "Refusals":
			row.out.Refusals = []consensus.Refusal{{ID: clientProposal(o, w), Reason: consensus.ReasonStaleConfig}}
			row.check = func(o *observed) bool { return o.proposals.Unsent() == 1 }
		case "Reads", "ReadsWaited", "FailedReads":
			o.AddReader(&Reader{To: w})
			id := o.reads.take(1, time.Time{})
			if field != "FailedReads" {
				row.out.Reads = []consensus.ReadIndex{{ID: id}}
				row.check = func(o *observed) bool {
					return w.told == 1 && w.by.Known.Equal(o.now) && w.by.Waited == row.out.ReadsWaited
				}
			} else {
				row.out.FailedReads = []uint64{id}
				row.check = func(o *observed) bool { return o.reads.waiting() }
			}
		}
		var want []string
		if row.asks != "" {
			want = []string{row.asks}
		}
		if o.perform(&row.out); !slices.Equal(o.asked, want) {
			t.Errorf("%s: asks for %v, want %v", field, o.asked, want)
		} else if row.check != nil && !row.check(o) {
			t.Errorf("%s is not performed", field)
		}
		delete(fields, field)
	}
	if o := newObserved(t, 1, 2); len(fields) > 0 {
		t.Errorf("%v are not looked at", fields)
	} else if o.perform(&raft.Output{}); len(o.asked) > 0 {
		t.Errorf("nothing is to be done, and %v is asked for", o.asked)
	}
}

// Ensure that the core is given what came and what waits, and nothing beside it.
func TestNode_Step_givesNothingEmpty(t *testing.T) {
	o := newObserved(t, 1, 2)
	o.hears(2, 2)
	o.Step(time.Unix(1000, 0)) // asks for a session
	o.taken = nil
	if o.Step(time.Unix(1000, 0), raft.Unreachable{Member: 9}); len(o.taken) != 1 {
		t.Errorf("one thing came, and the core was given %v", o.taken)
	}
}

// Ensure that with a new leader all that is unanswered is asked again at once, and that nothing is while no leader is known.
func TestNode_follow_asksAgain(t *testing.T) {
	o := newObserved(t, 1, 2, 3)
	o.hears(2, 2)
	clientProposal(o, &waiter{})
	o.Read(func() {})
	o.Step(time.Unix(1000, 0))
	if o.reads.waiting() || o.proposals.Unsent() > 0 {
		t.Fatal("not sent")
	}
	vote := raft.Receive{Message: consensus.Message{Kind: consensus.MsgVoteReply, From: 3, To: 1, Term: 3, Reject: true}}
	if o.Step(time.Unix(1000, 0), vote); o.leader != consensus.NoMember || o.term != 3 {
		t.Fatalf("leader %v in term %d", o.leader, o.term)
	}
	o.reads.take(0, time.Time{}) // which the core gave up
	if o.proposals.Unsent() > 0 {
		t.Error("asked again without a leader")
	}
	if o.hears(3, 3); !o.reads.waiting() || o.proposals.Unsent() != 2 { // the proposal, and a session
		t.Errorf("asked again under the new leader: reads %t, proposals %d of 2", o.reads.waiting(), o.proposals.Unsent())
	}
}

// Ensure that each tick decides whether this member counts who holds what it proposes, by how far the leader is.
func TestNode_Step_decidesEachTick(t *testing.T) {
	o := newObserved(t, 1, 2, 3)
	o.hears(2, 2)
	for _, far := range []bool{true, false, true} {
		if o.distance = 0; far {
			o.distance = time.Second
		}
		if o.Step(time.Unix(1000, 0)); o.counts == far {
			t.Errorf("far away: %t; counts %t before a tick", far, o.counts)
		}
		if o.Step(time.Unix(1000, 0), raft.Tick{}); o.counts != far {
			t.Errorf("far away: %t; counts %t", far, o.counts)
		}
	}
}

// failing is a table of results that cannot be read.
type failing struct{ proposals.ResultTable }

var errUnreadable = errors.New("unreadable")

func (failing) Result(consensus.ProposalID) (kv.Result, bool, error) {
	return kv.Result{}, false, errUnreadable
}

// Ensure that a snapshot whose results cannot be read is none that this node goes on with: a caller that waits would be told
// nothing, or lies.
func TestNode_Restored_unreadable(t *testing.T) {
	o, shown := newObserved(t, 1, 2), false
	clientProposal(o, &waiter{})
	o.Read(func() { shown = true })
	o.reads.answered([]consensus.ReadIndex{{ID: o.reads.take(1, time.Time{}), Index: 5}}, proposals.Passage{})
	meta := consensus.SnapshotMeta{Position: consensus.Position{Index: 9, Term: 1}}
	if err := o.Restored(meta, failing{}); !errors.Is(err, errUnreadable) || shown {
		t.Errorf("got %v; a read was served: %t", err, shown)
	}
}

// Ensure that a command that is proposed while no member leads waits here: it would come back from the core, and what has left
// once is not offered on the fast path any more.
func TestNode_Step_withoutLeader(t *testing.T) {
	n := newObserved(t, 1, 2)
	if _, err := n.Propose(&kv.Command{Put: &kv.PutOp{Key: []byte("k")}}, nil); err != nil {
		t.Fatal(err)
	}
	if n.Step(time.Unix(1000, 0), raft.Unreachable{Member: 2}); !n.proposals.Waiting() {
		t.Error("the core was given what it can only refuse")
	}
}
