package reconfig_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/reconfig"
)

func step(kind consensus.ChangeKind, id consensus.MemberID) consensus.ChangeStep {
	return consensus.ChangeStep{Kind: kind, Member: member(id)}
}

// roles writes a configuration without the attributes of its members.
func roles(c *consensus.Config) string {
	return fmt.Sprintf("%v out %v learn %v next %v of %v", c.Voters, c.Outgoing, c.Learners, c.LearnersNext, c.IDs())
}

// Ensure that each protocol makes of one request the entry, or the two, that it should: who votes when, who is demoted
// when the joint phase ends, and whom the change removes, named by the entry that can settle it.
func TestNext_protocols(t *testing.T) {
	current := consensus.ConfigID{Index: 7, Term: 2, Stage: 1}
	facts := reconfig.Facts{Active: ids{1, 2, 3, 4, 5}, CaughtUp: ids{1, 2, 3, 4, 5}, Strict: true}
	promote4 := []consensus.ChangeStep{step(consensus.ChangePromote, 4)}
	swap := []consensus.ChangeStep{
		step(consensus.ChangePromote, 4), step(consensus.ChangeRemove, 2), step(consensus.ChangeDemote, 3), step(consensus.ChangeRemove, 5),
	}
	plain := []consensus.ChangeStep{step(consensus.ChangeAddLearner, 6), step(consensus.ChangeRemove, 5)}
	const (
		after4    = "[1 2 3 4] out [] learn [5] next [] of [1 2 3 4 5]"
		joint4    = "[1 2 3 4] out [1 2 3] learn [5] next [] of [1 2 3 4 5]"
		jointSwap = "[1 4] out [1 2 3] learn [] next [3] of [1 2 3 4 5]"
		afterSwap = "[1 4] out [] learn [3] next [] of [1 3 4]"
		learners  = "[1 2 3] out [] learn [4 6] next [] of [1 2 3 4 6]"
	)
	for _, tc := range []struct {
		name  string
		asked consensus.Protocol
		steps []consensus.ChangeStep
		want  consensus.RefusalReason
		by    consensus.Protocol
		first string
		tombs ids
		left  string // what Leave makes of it; empty if there is nothing to leave
		gone  ids    // by the second entry
	}{
		{"auto, one voter", consensus.ProtocolAuto, promote4, 0, consensus.ProtocolSingle, after4, nil, "", nil},
		{"auto, several", consensus.ProtocolAuto, swap, 0, consensus.ProtocolJointEarly, jointSwap, nil, afterSwap, ids{2, 5}},
		{"single, one voter", consensus.ProtocolSingle, promote4, 0, consensus.ProtocolSingle, after4, nil, "", nil},
		{"single, several", consensus.ProtocolSingle, swap, consensus.ReasonProtocol, 0, "", nil, "", nil},
		{"joint, one voter", consensus.ProtocolJoint, promote4, 0, consensus.ProtocolJoint, joint4, nil, after4, nil},
		{"joint, several", consensus.ProtocolJoint, swap, 0, consensus.ProtocolJoint, jointSwap, nil, afterSwap, ids{2, 5}},
		{"joint-early, several", consensus.ProtocolJointEarly, swap, 0, consensus.ProtocolJointEarly, jointSwap, nil, afterSwap, ids{2, 5}},
		{"activate: one entry, which names the removed", consensus.ProtocolActivate, swap, 0, consensus.ProtocolActivate, jointSwap,
			ids{2, 5}, afterSwap, ids{2, 5}},
		{"apply, one voter", consensus.ProtocolApply, promote4, 0, consensus.ProtocolApply, after4, nil, "", nil},
		{"apply, several", consensus.ProtocolApply, swap, 0, consensus.ProtocolApply, jointSwap, nil, afterSwap, ids{2, 5}},
		{"joint, learners only: nothing to join", consensus.ProtocolJoint, plain, 0, consensus.ProtocolJoint, learners, ids{5}, "", nil},
		{"activate, learners only", consensus.ProtocolActivate, plain, 0, consensus.ProtocolActivate, learners, ids{5}, "", nil},
		{"a protocol of the future", 99, promote4, consensus.ReasonProtocol, 0, "", nil, "", nil},
	} {
		before := config(ids{1, 2, 3}, ids{4, 5})
		change, got := reconfig.Next(&before, current, &consensus.ChangeRequest{Protocol: tc.asked, Steps: tc.steps}, &facts)
		if got != tc.want {
			t.Errorf("%s: got reason %d, want %d", tc.name, got, tc.want)
			continue
		}
		if got != consensus.ReasonNone {
			continue
		}
		if change.Protocol != tc.by || change.Replaces != current || change.Abort || !slices.Equal(change.Tombs, tc.tombs) {
			t.Errorf("%s: by %v, replaces %v, abort %v, tombs %v", tc.name, change.Protocol, change.Replaces, change.Abort, change.Tombs)
		}
		if got := roles(&change.Config); got != tc.first {
			t.Errorf("%s: got  %s\nwant %s", tc.name, got, tc.first)
		}
		if change.Config.IsJoint() != (tc.left != "") {
			t.Errorf("%s: joint %v", tc.name, change.Config.IsJoint())
		}
		if tc.left == "" {
			continue
		}
		kept := change.Config.Clone()
		id := consensus.ConfigID{Index: 9, Term: 3}
		left := reconfig.Leave(&change.Config, id, change.Protocol)
		if got := roles(&left.Config); got != tc.left || left.Replaces != id || left.Protocol != tc.by || !slices.Equal(left.Tombs, tc.gone) {
			t.Errorf("%s: left %s, tombs %v, replaces %v\nwant %s, tombs %v", tc.name, got, left.Tombs, left.Replaces, tc.left, tc.gone)
		}
		if diff := cmp.Diff(kept, change.Config); diff != "" {
			t.Errorf("%s: Leave wrote to what it leaves: %s", tc.name, diff)
		}
	}
}

// Ensure that an abort goes back to the voters before, removes no member, and keeps those that were to join as learners that
// do not promote themselves.
func TestAbort(t *testing.T) {
	before := config(ids{1, 2, 3}, ids{4, 5})
	facts := reconfig.Facts{Active: ids{1, 2, 3, 4}, CaughtUp: ids{1, 2, 3, 4}}
	request := consensus.ChangeRequest{Protocol: consensus.ProtocolJoint, Steps: []consensus.ChangeStep{
		step(consensus.ChangePromote, 4), step(consensus.ChangeRemove, 2), step(consensus.ChangeDemote, 3),
		step(consensus.ChangeRemove, 5), step(consensus.ChangeAddVoter, 6),
		{Kind: consensus.ChangeAddLearner, Member: consensus.Member{ID: 7, PeerURLs: member(7).PeerURLs, Promote: true}},
	}}
	joint, reason := reconfig.Next(&before, consensus.ConfigID{Index: 7, Term: 2}, &request, &facts)
	if reason != consensus.ReasonNone {
		t.Fatalf("reason %d", reason)
	}
	kept, id := joint.Config.Clone(), consensus.ConfigID{Index: 8, Term: 2}
	back := reconfig.Abort(&joint.Config, id, joint.Protocol)
	if got, want := roles(&back.Config), "[1 2 3] out [] learn [4 5 6 7] next [] of [1 2 3 4 5 6 7]"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if !back.Abort || back.Replaces != id || len(back.Tombs) > 0 || back.Protocol != consensus.ProtocolJoint {
		t.Errorf("abort %v, replaces %v, tombs %v, by %v", back.Abort, back.Replaces, back.Tombs, back.Protocol)
	}
	for _, m := range back.Config.Members {
		if m.Promote {
			t.Errorf("%v promotes itself", m.ID)
		}
	}
	if diff := cmp.Diff(kept, joint.Config); diff != "" {
		t.Errorf("Abort wrote to what it takes back: %s", diff)
	}
}

// updated is the update of a member to the URLs of another one.
func updated(id, to consensus.MemberID) consensus.ChangeStep {
	return consensus.ChangeStep{Kind: consensus.ChangeUpdate, Member: consensus.Member{ID: id, PeerURLs: member(to).PeerURLs}}
}

// Ensure what the rules say where several steps meet.
func TestNext_severalSteps(t *testing.T) {
	facts := reconfig.Facts{Active: ids{1, 2, 3, 4}, CaughtUp: ids{1, 2, 3, 4}, Strict: true}
	sameURL := consensus.Member{ID: 6, PeerURLs: member(2).PeerURLs}
	for _, tc := range []struct {
		name     string
		voters   ids
		learners ids
		protocol consensus.Protocol
		steps    []consensus.ChangeStep
		want     consensus.RefusalReason
	}{
		{"one member twice", ids{1, 2, 3}, ids{4}, 0,
			[]consensus.ChangeStep{step(consensus.ChangePromote, 4), step(consensus.ChangeRemove, 4)}, consensus.ReasonBadRequest},
		{"no step", ids{1, 2, 3}, nil, 0, nil, consensus.ReasonBadRequest},
		{"the URL of who leaves is taken until it has left", ids{1, 2, 3}, nil, 0,
			[]consensus.ChangeStep{step(consensus.ChangeRemove, 2), {Kind: consensus.ChangeAddVoter, Member: sameURL}},
			consensus.ReasonPeerURLExists},
		{"two newcomers with one URL", ids{1, 2, 3}, nil, 0,
			[]consensus.ChangeStep{step(consensus.ChangeAddLearner, 5),
				{Kind: consensus.ChangeAddLearner, Member: consensus.Member{ID: 6, PeerURLs: member(5).PeerURLs}}},
			consensus.ReasonPeerURLExists},
		{"two take each other's place", ids{1, 2, 3}, nil, 0, []consensus.ChangeStep{updated(1, 2), updated(2, 1)}, 0},
		{"three move round", ids{1, 2, 3}, nil, 0, []consensus.ChangeStep{updated(1, 2), updated(2, 3), updated(3, 1)}, 0},
		{"two move to one place", ids{1, 2, 3}, nil, 0, []consensus.ChangeStep{updated(1, 5), updated(2, 5)},
			consensus.ReasonPeerURLExists},
		{"one moves to where another one stays", ids{1, 2, 3}, nil, 0, []consensus.ChangeStep{updated(1, 2), updated(2, 3)},
			consensus.ReasonPeerURLExists},
		{"everybody goes", ids{1, 2}, nil, consensus.ProtocolJoint,
			[]consensus.ChangeStep{step(consensus.ChangeRemove, 1), step(consensus.ChangeRemove, 2)}, consensus.ReasonLastVoter},
		{"everybody is demoted", ids{1, 2}, nil, consensus.ProtocolActivate,
			[]consensus.ChangeStep{step(consensus.ChangeDemote, 1), step(consensus.ChangeDemote, 2)}, consensus.ReasonLastVoter},
		{"a learner is demoted", ids{1, 2}, ids{4}, 0, []consensus.ChangeStep{step(consensus.ChangeDemote, 4)}, consensus.ReasonNoChange},
		{"nobody is demoted", ids{1, 2}, nil, 0, []consensus.ChangeStep{step(consensus.ChangeDemote, 8)}, consensus.ReasonMemberNotFound},
		{"two unheard voters join three", ids{1, 2, 3}, nil, consensus.ProtocolJoint,
			[]consensus.ChangeStep{step(consensus.ChangeAddVoter, 5), step(consensus.ChangeAddVoter, 6)}, 0},
		{"three unheard voters join three", ids{1, 2, 3}, nil, consensus.ProtocolJoint,
			[]consensus.ChangeStep{step(consensus.ChangeAddVoter, 5), step(consensus.ChangeAddVoter, 6), step(consensus.ChangeAddVoter, 7)},
			consensus.ReasonQuorumLost},
		{"2 -> 1 by apply: the survivor might never learn of it", ids{1, 2}, nil, consensus.ProtocolApply,
			[]consensus.ChangeStep{step(consensus.ChangeRemove, 2)}, consensus.ReasonProtocol},
		{"2 -> 1 by apply, by a demotion", ids{1, 2}, nil, consensus.ProtocolApply,
			[]consensus.ChangeStep{step(consensus.ChangeDemote, 2)}, consensus.ReasonProtocol},
		{"2 -> another one by apply", ids{1, 2}, ids{4}, consensus.ProtocolApply,
			[]consensus.ChangeStep{step(consensus.ChangeRemove, 1), step(consensus.ChangeRemove, 2), step(consensus.ChangePromote, 4)},
			consensus.ReasonProtocol},
		{"2 -> 1 by any other", ids{1, 2}, nil, consensus.ProtocolActivate, []consensus.ChangeStep{step(consensus.ChangeRemove, 2)}, 0},
		{"3 -> 1 by apply", ids{1, 2, 3}, nil, consensus.ProtocolApply,
			[]consensus.ChangeStep{step(consensus.ChangeRemove, 2), step(consensus.ChangeRemove, 3)}, 0},
	} {
		before := config(tc.voters, tc.learners)
		request := consensus.ChangeRequest{Protocol: tc.protocol, Steps: tc.steps}
		if _, got := reconfig.Next(&before, consensus.ConfigID{Index: 3, Term: 1}, &request, &facts); got != tc.want {
			t.Errorf("%s: got reason %d, want %d", tc.name, got, tc.want)
		}
	}
	joint := config(ids{1, 2}, nil)
	joint.Outgoing = ids{1}
	request := consensus.ChangeOne(consensus.ChangeRemove, member(2))
	if _, got := reconfig.Next(&joint, consensus.ConfigID{}, &request, &facts); got != consensus.ReasonChangePending {
		t.Errorf("while joint: got reason %d", got)
	}
}
