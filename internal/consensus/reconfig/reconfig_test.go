package reconfig_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/reconfig"
)

type ids = []consensus.MemberID

func member(id consensus.MemberID) consensus.Member {
	return consensus.Member{ID: id, PeerURLs: []string{fmt.Sprintf("http://m%d:2380", id)}}
}

func config(voters, learners ids) consensus.Config {
	c := consensus.Config{Voters: voters, Learners: learners}
	for id := consensus.MemberID(1); id < 10; id++ {
		if c.IsVoter(id) || c.IsLearner(id) {
			c.Members = append(c.Members, member(id))
		}
	}
	return c
}

func TestNext_rules(t *testing.T) {
	current := consensus.ConfigID{Index: 7, Term: 2}
	active := reconfig.Facts{Active: ids{1, 2, 3, 4}, CaughtUp: ids{1, 2, 3, 4}, Tombstones: ids{9}, MaxLearners: 1, Strict: true}
	for _, tc := range []struct {
		name             string
		voters, learners ids
		kind             consensus.ChangeKind
		member           consensus.Member
		expected         consensus.ConfigID
		facts            reconfig.Facts
		want             consensus.RefusalReason
		wantV, wantL     ids
	}{
		{name: "add a voter", voters: ids{1, 2, 3}, kind: consensus.ChangeAddVoter, member: member(5), wantV: ids{1, 2, 3, 5}},
		{name: "add a learner", voters: ids{1, 2, 3}, kind: consensus.ChangeAddLearner, member: member(5),
			wantV: ids{1, 2, 3}, wantL: ids{5}},
		{name: "too many learners", voters: ids{1}, learners: ids{4}, kind: consensus.ChangeAddLearner, member: member(5),
			want: consensus.ReasonTooManyLearners},
		{name: "learners that are joining are not limited", voters: ids{1}, learners: ids{4}, kind: consensus.ChangeAddLearner,
			member: consensus.Member{ID: 5, PeerURLs: member(5).PeerURLs, Joining: true}, wantV: ids{1}, wantL: ids{4, 5}},
		{name: "a lone voter may add a voter", voters: ids{1}, kind: consensus.ChangeAddVoter, member: member(2),
			facts: reconfig.Facts{Active: ids{1}, CaughtUp: ids{1}, Strict: true}, wantV: ids{1, 2}},
		{name: "two voters, one silent: no third", voters: ids{1, 2}, kind: consensus.ChangeAddVoter, member: member(3),
			facts: reconfig.Facts{Active: ids{1}, CaughtUp: ids{1}, Strict: true}, want: consensus.ReasonQuorumLost},
		{name: "not strict: the operator's risk", voters: ids{1, 2}, kind: consensus.ChangeAddVoter, member: member(3),
			facts: reconfig.Facts{Active: ids{1}}, wantV: ids{1, 2, 3}},
		{name: "known id", voters: ids{1, 2}, kind: consensus.ChangeAddVoter, member: member(2), want: consensus.ReasonMemberExists},
		{name: "id of the dead", voters: ids{1, 2}, kind: consensus.ChangeAddVoter, member: member(9), want: consensus.ReasonMemberRemoved},
		{name: "url in use", voters: ids{1, 2}, kind: consensus.ChangeAddLearner,
			member: consensus.Member{ID: 5, PeerURLs: member(2).PeerURLs}, want: consensus.ReasonPeerURLExists},
		{name: "promote", voters: ids{1, 2, 3}, learners: ids{4}, kind: consensus.ChangePromote, member: member(4), wantV: ids{1, 2, 3, 4}},
		{name: "promote a laggard", voters: ids{1, 2, 3}, learners: ids{5}, kind: consensus.ChangePromote, member: member(5),
			want: consensus.ReasonLearnerLags},
		{name: "promote one that has caught up and is silent now", voters: ids{1, 2, 3}, learners: ids{4},
			kind: consensus.ChangePromote, member: member(4),
			facts: reconfig.Facts{Active: ids{1, 2, 3}, CaughtUp: ids{1, 2, 3, 4}, Strict: true}, want: consensus.ReasonLearnerLags},
		{name: "promote a voter", voters: ids{1, 2, 3}, kind: consensus.ChangePromote, member: member(3), want: consensus.ReasonNotLearner},
		{name: "promote nobody", voters: ids{1, 2, 3}, kind: consensus.ChangePromote, member: member(8), want: consensus.ReasonMemberNotFound},
		{name: "remove a voter", voters: ids{1, 2, 3}, kind: consensus.ChangeRemove, member: member(1), wantV: ids{2, 3}},
		{name: "remove a learner", voters: ids{1}, learners: ids{4}, kind: consensus.ChangeRemove, member: member(4), wantV: ids{1}},
		{name: "remove the last voter", voters: ids{1}, learners: ids{4}, kind: consensus.ChangeRemove, member: member(1),
			want: consensus.ReasonLastVoter},
		{name: "remove a live voter while another is dead", voters: ids{1, 2, 3}, kind: consensus.ChangeRemove, member: member(2),
			facts: reconfig.Facts{Active: ids{1, 2}, CaughtUp: ids{1, 2}, Strict: true}, want: consensus.ReasonQuorumLost},
		{name: "remove a voter while another answers and lags", voters: ids{1, 2, 3}, kind: consensus.ChangeRemove,
			member: member(2), facts: reconfig.Facts{Active: ids{1, 2, 3}, CaughtUp: ids{1, 2}, Strict: true},
			want: consensus.ReasonQuorumLost},
		{name: "remove the voter that lags", voters: ids{1, 2, 3}, kind: consensus.ChangeRemove, member: member(3),
			facts: reconfig.Facts{Active: ids{1, 2, 3}, CaughtUp: ids{1, 2}, Strict: true}, wantV: ids{1, 2}},
		{name: "remove the dead voter", voters: ids{1, 2, 3}, kind: consensus.ChangeRemove, member: member(3),
			facts: reconfig.Facts{Active: ids{1, 2}, CaughtUp: ids{1, 2}, Strict: true}, wantV: ids{1, 2}},
		{name: "remove what was removed", voters: ids{1}, kind: consensus.ChangeRemove, member: member(9), want: consensus.ReasonMemberRemoved},
		{name: "update", voters: ids{1, 2}, kind: consensus.ChangeUpdate,
			member: consensus.Member{ID: 2, PeerURLs: []string{"http://new:1"}}, wantV: ids{1, 2}},
		{name: "update to a url in use", voters: ids{1, 2}, kind: consensus.ChangeUpdate,
			member: consensus.Member{ID: 2, PeerURLs: member(1).PeerURLs}, want: consensus.ReasonPeerURLExists},
		{name: "cordon a voter", voters: ids{1, 2}, kind: consensus.ChangeCordon, member: member(2), wantV: ids{1, 2}},
		{name: "cordon a learner", voters: ids{1}, learners: ids{4}, kind: consensus.ChangeCordon, member: member(4),
			wantV: ids{1}, wantL: ids{4}},
		{name: "cordon the last voter", voters: ids{1}, learners: ids{4}, kind: consensus.ChangeCordon, member: member(1),
			want: consensus.ReasonAllCordoned},
		{name: "cordon nobody", voters: ids{1, 2}, kind: consensus.ChangeCordon, member: member(8), want: consensus.ReasonMemberNotFound},
		{name: "cordon what was removed", voters: ids{1}, kind: consensus.ChangeCordon, member: member(9),
			want: consensus.ReasonMemberRemoved},
		{name: "uncordon what is not cordoned", voters: ids{1, 2}, kind: consensus.ChangeUncordon, member: member(2),
			want: consensus.ReasonNoChange},
		{name: "another configuration expected", voters: ids{1, 2}, kind: consensus.ChangeRemove, member: member(2),
			expected: consensus.ConfigID{Index: 6, Term: 2}, want: consensus.ReasonStaleConfig},
		{name: "no member named", voters: ids{1, 2}, kind: consensus.ChangeRemove, want: consensus.ReasonBadRequest},
		{name: "no such kind", voters: ids{1, 2}, kind: 77, member: member(2), want: consensus.ReasonBadRequest},
	} {
		facts := active
		if tc.facts.Active != nil {
			facts = tc.facts
		}
		before := config(tc.voters, tc.learners)
		kept := before.Clone()
		change, got := reconfig.Next(&before, current,
			&consensus.ChangeRequest{
				Steps: []consensus.ChangeStep{{Kind: tc.kind, Member: tc.member}}, Expected: tc.expected,
			}, &facts)
		if diff := cmp.Diff(kept, before); diff != "" {
			t.Errorf("%s: the current configuration was written to: %s", tc.name, diff)
		}
		if got != tc.want {
			t.Errorf("%s: got reason %d, want %d", tc.name, got, tc.want)
			continue
		}
		if got != consensus.ReasonNone {
			continue
		}
		after := change.Config
		if !cmp.Equal(after.Voters, tc.wantV) || !cmp.Equal(after.Learners, tc.wantL) || change.Replaces != current {
			t.Errorf("%s: got voters %v, learners %v", tc.name, after.Voters, after.Learners)
		}
		if len(after.Members) != len(after.Voters)+len(after.Learners) {
			t.Errorf("%s: %d members for %d voters and %d learners", tc.name, len(after.Members), len(after.Voters), len(after.Learners))
		}
	}
}

func ExampleNext() {
	now := config(ids{1, 2, 3}, nil)
	facts := reconfig.Facts{Active: ids{1, 2}, CaughtUp: ids{1, 2}, Strict: true} // member 3 is down
	for _, id := range (ids{2, 3}) {
		request := consensus.ChangeOne(consensus.ChangeRemove, consensus.Member{ID: id})
		change, reason := reconfig.Next(&now, consensus.ConfigID{Index: 1, Term: 1}, &request, &facts)
		if reason == consensus.ReasonQuorumLost {
			fmt.Printf("remove %v: refused, the two others would be no quorum\n", id)
			continue
		}
		fmt.Printf("remove %v: voters %v, never again %v\n", id, change.Config.Voters, change.Tombs)
	}
	// Output:
	// remove 2: refused, the two others would be no quorum
	// remove 3: voters [1 2], never again [3]
}

// Ensure that a member is bound to one data directory, once.
func TestNext_bind(t *testing.T) {
	facts := reconfig.Facts{Active: ids{1, 2, 3}, CaughtUp: ids{1, 2, 3}, Tombstones: ids{9}, Strict: true}
	own, other := consensus.StorageID{1}, consensus.StorageID{2}
	bound := config(ids{1, 2, 3}, nil)
	bound.Members[1].Storage = own
	for _, tc := range []struct {
		name    string
		id      consensus.MemberID
		storage consensus.StorageID
		want    consensus.RefusalReason
	}{
		{"one that is not bound", 3, other, consensus.ReasonNone},
		{"to nothing", 3, consensus.StorageID{}, consensus.ReasonBadRequest},
		{"again", 2, own, consensus.ReasonNoChange},
		{"to another directory", 2, other, consensus.ReasonBound},
		{"one that is no member", 7, other, consensus.ReasonMemberNotFound},
		{"one that was removed", 9, other, consensus.ReasonMemberRemoved},
	} {
		request := consensus.ChangeOne(consensus.ChangeBind, consensus.Member{ID: tc.id, Storage: tc.storage})
		change, got := reconfig.Next(&bound, consensus.ConfigID{Index: 7, Term: 2}, &request, &facts)
		m, _ := change.Config.Member(tc.id)
		if got != tc.want || got == consensus.ReasonNone && m.Storage != tc.storage {
			t.Errorf("%s: reason %v, bound to %v", tc.name, got, m.Storage)
		}
	}
}
