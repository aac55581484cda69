package ctl

import (
	"slices"
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
		empty   []string // members in whose place a process without data runs
		want    string
	}{
		{"the newcomers are gone", joint, []uint64{1, 2, 3, 6}, nil, "the cluster has no leader: nothing can be written until 2 of the " +
			"voters before the change (m1, m2, m3) and 2 of the voters after it (m1, m4, m5) are up; of the voters after it 1 " +
			"answer: start 1 more of m4, m5. A change of the voters is under way: it needs a majority of both"},
		{"both lack some", joint, []uint64{4}, nil, "the cluster has no leader: nothing can be written until 2 of the voters before the " +
			"change (m1, m2, m3) and 2 of the voters after it (m4, m1, m5) are up; of the voters before the change 0 answer: start " +
			"2 more of m1, m2, m3, and of the voters after it 1 answer: start 1 more of m1, m5. A change of the voters is under " +
			"way: it needs a majority of both"},
		{"both have a majority", joint, []uint64{1, 2, 4}, nil, ""},
		{"learners do not count", settled, []uint64{1, 6}, nil, "the cluster has no leader: nothing can be written until 2 of its voters " +
			"(m1, m2, m3) are up; of its voters 1 answer: start 1 more of m2, m3"},
		{"two of three run without their data", settled, []uint64{3, 6}, []string{"m1", "m2"}, "the cluster has no leader: nothing " +
			"can be written until 2 of its voters (m3, m1, m2) are up; of its voters 1 answer; m1 and m2 run without their data and " +
			"do not vote. Find their data directories first: where one is on a disk that is not mounted, or was moved aside and is " +
			"not older than what the member had, stop that process and start it with that one. If the data of m1 and m2 are lost " +
			"for ever, stop these processes, and look at what `quorate recover --data-dir ITS-DIR --members-are-lost m1,m2` on a " +
			"stopped survivor would keep: it asks before it changes anything"},
		{"one runs without its data, and one is down", settled, []uint64{3}, []string{"m2"}, "the cluster has no leader: nothing can " +
			"be written until 2 of its voters (m3, m1, m2) are up; of its voters 1 answer: start 1 more of m1; m2 runs without its " +
			"data and does not vote"},
		{"nobody tells", nil, []uint64{1}, nil, ""},
	} {
		var members []survey.Member
		for _, id := range tc.up {
			members = append(members, survey.Member{ID: id, Role: survey.Seeking})
		}
		if got := shortage(tc.cluster, members, tc.empty); got != tc.want {
			t.Errorf("%s:\n%s\nwant\n%s", tc.name, got, tc.want)
		}
	}
}

// Ensure that only a process that can not be the member in whose place it runs is told from one that waits for others.
func TestIsDataless(t *testing.T) {
	for why, want := range map[string]bool{
		"member failed: this process is no member yet: it has lost its disk: cluster 1 runs already": true,
		"member failed: this process is no member yet: it is not m2: m2 runs with its data at there": true,
		"member failed: this process is no member yet: it is no member of cluster 1 any more":        true,
		"member failed: this process is no member any more: member m1 refused this member: it is":    true,
		"member failed: this process is no member yet: it is starting":                               false,
		"member failed: this process is no member yet: it waits for the other members of":            false,
		"connection refused": false,
	} {
		if got := isDataless(why); got != want {
			t.Errorf("%q: got %t", why, got)
		}
	}
}

// Ensure that whom a recovery has dropped, and who is behind, is not the first to tell who votes.
func TestLatestFirst(t *testing.T) {
	up := func(name string, term, index uint64) survey.Member {
		return survey.Member{Seat: survey.Seat{Name: name}, Role: survey.Seeking, Term: term, Index: index}
	}
	gone := up("down", 9<<20, 9)
	gone.Role = survey.Down
	var got []string
	for _, m := range latestFirst([]survey.Member{up("dropped", 7, 900), gone, up("behind", 1<<20, 8), up("latest", 1<<20, 9)}) {
		got = append(got, m.Name)
	}
	if want := []string{"latest", "behind", "dropped"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
