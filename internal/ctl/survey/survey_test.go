package survey_test

import (
	"errors"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/internal/ctl/survey"
)

// Ensure that of two members that call themselves leader the one of the higher term is believed.
func TestLeaderOf(t *testing.T) {
	leader, found := survey.LeaderOf([]survey.Member{
		{Seat: survey.Seat{Name: "cut off"}, Role: survey.Leader, Term: 3},
		{Seat: survey.Seat{Name: "elected"}, Role: survey.Leader, Term: 5},
		{Seat: survey.Seat{Name: "other"}, Role: survey.Follower, Term: 9},
	})
	if !found || leader.Name != "elected" {
		t.Errorf("got %q, %v; want elected", leader.Name, found)
	}
	if _, found := survey.LeaderOf([]survey.Member{{Role: survey.Seeking}}); found {
		t.Error("nobody leads: got a leader")
	}
}

// Ensure that a member that never said where it serves clients is in the answer, as down.
func TestAsk_notStarted(t *testing.T) {
	members := survey.Ask(t.Context(), &clientv3.Client{}, []survey.Seat{{Name: "m1"}})
	if len(members) != 1 || members[0].Role != survey.Down || !errors.Is(members[0].Err, survey.ErrNoEndpoint) {
		t.Errorf("got %+v", members)
	}
}
