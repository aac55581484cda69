package ctl

import (
	"testing"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/survey"
)

// Ensure that a cluster without a leader in the middle of a change is told which of both groups of voters lacks a majority, and of
// whom, and that learners are not counted.
func TestShortage(t *testing.T) {
	member := func(id uint64, name string, role quoratepb.Role) *quoratepb.Member {
		return &quoratepb.Member{Id: id, Name: name, Role: role}
	}
	const voter, learner = quoratepb.Role_ROLE_VOTER, quoratepb.Role_ROLE_LEARNER
	joint := &quoratepb.Cluster{Joint: true, Members: []*quoratepb.Member{
		member(1, "m1", voter), member(2, "m2", quoratepb.Role_ROLE_OUTGOING), member(3, "m3", quoratepb.Role_ROLE_DEMOTING),
		member(4, "m4", quoratepb.Role_ROLE_INCOMING), member(5, "m5", quoratepb.Role_ROLE_INCOMING), member(6, "m6", learner),
	}}
	settled := &quoratepb.Cluster{Members: []*quoratepb.Member{member(1, "m1", voter), member(2, "m2", voter), member(3, "m3", voter),
		member(6, "m6", learner)}}
	for _, tc := range []struct {
		name    string
		cluster *quoratepb.Cluster
		up      []uint64
		want    string
	}{
		{"the newcomers are gone", joint, []uint64{1, 2, 3, 6}, "the cluster has no leader: nothing can be written until 2 of the " +
			"voters before the change (m1, m2, m3) and 2 of the voters after it (m1, m4, m5) are up; of the voters after it 1 " +
			"answer: start 1 more of m4, m5. A change of the voters is under way: it needs a majority of both"},
		{"both lack some", joint, []uint64{4}, "the cluster has no leader: nothing can be written until 2 of the voters before the " +
			"change (m1, m2, m3) and 2 of the voters after it (m4, m1, m5) are up; of the voters before the change 0 answer: start " +
			"2 more of m1, m2, m3, and of the voters after it 1 answer: start 1 more of m1, m5. A change of the voters is under " +
			"way: it needs a majority of both"},
		{"both have a majority", joint, []uint64{1, 2, 4}, ""},
		{"learners do not count", settled, []uint64{1, 6}, "the cluster has no leader: nothing can be written until 2 of its voters " +
			"(m1, m2, m3) are up; of its voters 1 answer: start 1 more of m2, m3"},
		{"nobody tells", nil, []uint64{1}, ""},
	} {
		var members []survey.Member
		for _, id := range tc.up {
			members = append(members, survey.Member{ID: id, Role: survey.Seeking})
		}
		if got := shortage(tc.cluster, members); got != tc.want {
			t.Errorf("%s:\n%s\nwant\n%s", tc.name, got, tc.want)
		}
	}
}
