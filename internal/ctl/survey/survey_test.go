package survey_test

import (
	"errors"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/internal/base/typed"
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

// Ensure that an alarm that all members know is told once, with the id as other commands write it and with a remedy, and that a
// member that knows no leader raises none by that.
func TestNotes(t *testing.T) {
	stored, corrupt := "memberID:162 alarm:NOSPACE ", "memberID:161  alarm:CORRUPT"
	members := []survey.Member{
		{Seat: survey.Seat{Name: "m1"}, ID: 0xa1, Role: survey.Leader, Alarms: []string{stored, corrupt}},
		{Seat: survey.Seat{Name: "m2"}, ID: 0xa2, Role: survey.Follower, Alarms: []string{stored, "disk of m2 nearly full"}},
		{Seat: survey.Seat{Name: "m3"}, ID: 0xa3, Role: survey.Seeking, Alarms: []string{"etcdserver: no leader"}},
	}
	got := survey.Notes(members)
	for i, want := range []string{
		"m1, m2 report: alarm NOSPACE of m2 (a2): ", "m1 reports: alarm CORRUPT of m1 (a1): ", "m2 reports: disk of m2 " +
			"nearly full",
	} {
		if len(got) != 3 || !strings.HasPrefix(got[i], want) {
			t.Errorf("note %d of %q, want %q", i, got, want)
		}
	}
	for _, remedy := range []string{"compact", "member reset m1"} {
		if !strings.Contains(strings.Join(got, "\n"), remedy) {
			t.Errorf("no note says %q: %q", remedy, got)
		}
	}
	members[0].Alarms = []string{corrupt, "memberID:0 alarm:CORRUPT"}
	for _, text := range survey.Notes(members[:1]) {
		keep := max(strings.Index(text, "empty no data directory"), strings.Index(text, "First see that the others serve"))
		aside, kept := strings.Index(text, " aside"), strings.Contains(text, "and keep ")
		if keep < 0 || aside < keep || !kept || !strings.Contains(text, typed.Emptied) {
			t.Errorf("the check comes first, the directory is kept, and the flags are named: %q", text)
		}
	}
	if !survey.Alarmed(members[:1]) || survey.Alarmed(members[2:]) {
		t.Error("an alarm is one that somebody should look at")
	}
}
