package observed_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/console/consoletest"
	"github.com/quorate/quorate/internal/console/observed"
	"github.com/quorate/quorate/internal/console/page"
)

func ask(t *testing.T, conn consoletest.Conn) (*observed.Answer, error) {
	t.Helper()
	return observed.Ask(context.Background(), &page.Request{Conn: conn, Now: time.UnixMilli(consoletest.Now)})
}

// Ensure that a member that cannot ask the others tells what it observes itself, and that other errors are the caller's.
func TestAsk_older(t *testing.T) {
	c := consoletest.Healthy(3)
	got, err := ask(t, consoletest.Conn{quoratepb.Doctor_Observe_FullMethodName: consoletest.Of(c, 2)})
	if err != nil || !got.GetAlone() || got.Answered() != 1 || len(got.Members) != 3 || got.Members[1].Says.GetName() != "m2" ||
		got.Leader != nil || got.NameOf(1) != "m1" {
		t.Errorf("got %+v, %v", got, err)
	}
	denied := status.Error(codes.PermissionDenied, "no")
	if _, err := ask(t,
		consoletest.Conn{quoratepb.Doctor_Collect_FullMethodName: denied}); status.Code(err) != codes.PermissionDenied {
		t.Errorf("a refusal: got %v", err)
	}
	if _, err := ask(t, consoletest.Conn{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("a member that knows neither: got %v", err)
	}
}

// Ensure that the latest configuration counts, the leader of the highest term, and the leader's word about who is up.
func TestOf(t *testing.T) {
	c := consoletest.Healthy(3)
	consoletest.Of(c, 3).Core.Leader, consoletest.Of(c, 3).Core.Term = 3, 2 // it was cut off, and leads on in an earlier term
	later := consoletest.Of(c, 2).Config
	later.Index, later.Members[2].Zone = 9, "far"
	consoletest.Of(c, 1).Peers[1].Active = false
	got := observed.Of(c)
	if got.Leader == nil || got.Leader.ID != 1 || got.Config.GetIndex() != 9 || got.Members[2].Known.GetZone() != "far" {
		t.Errorf("got %+v", got)
	}
	if !got.Up(got.Member(1)) || !got.Up(got.Member(2)) || got.Up(got.Member(3)) {
		t.Error("m3 answers, and the leader does not hear it")
	}
	consoletest.Unled(c)
	consoletest.Lose(c, 2)
	got = observed.Of(c)
	if got.Leader != nil || got.Up(got.Member(2)) || !got.Up(got.Member(3)) {
		t.Error("without a leader it counts who answers")
	}
}

// Ensure that members with one name, with one id or without any are told apart, and that nothing is a crash.
func TestOf_strange(t *testing.T) {
	if got := observed.Of(nil); got.Answered() != 0 || got.Config == nil || got.Member(0) != nil ||
		got.Cluster().GetStrength() == nil {
		t.Errorf("of nothing: %+v", got)
	}
	c := consoletest.Healthy(2)
	for _, m := range c.Members {
		m.Name, m.Observation.Config.Members[1].Name = "same", "same"
	}
	c.Members = append(c.Members, &quoratepb.CollectedMember{Id: 2, Name: "twin"}, &quoratepb.CollectedMember{},
		&quoratepb.CollectedMember{Id: 77, Name: strings.Repeat("x\u202e", 1000), Fault: "other",
			Observation: consoletest.Of(c, 1)})
	got := observed.Of(c)
	if len(got.Members) != 5 || got.Answered() != 2 || got.Members[0].Known == nil || got.Members[4].Known != nil {
		t.Fatalf("got %d members", len(got.Members))
	}
	if got.Word(got.Member(1)) != "1" || got.Word(got.Member(2)) != "2" {
		t.Error("a name that two have names none of them")
	}
	if name := got.NameOf(77); len(name) > 2000 || strings.Contains(name, "\u202e") {
		t.Errorf("a hostile name: %d bytes", len(name))
	}
}

// Ensure that what is collected reads like the leader's view.
func TestAnswer_Cluster(t *testing.T) {
	c := consoletest.Healthy(5)
	consoletest.Lose(c, 4)
	consoletest.Lose(c, 5)
	consoletest.Of(c, 1).Peers[1].CaughtUp = false // m3
	for _, m := range c.Members[:3] {
		m.Observation.Config.Members = append(m.Observation.Config.Members, &quoratepb.ObservedMember{Id: 6, Name: "m6",
			Joining: true})
	}
	got := observed.Of(c).Cluster()
	s := got.GetStrength()
	if s.GetVoters() != 5 || s.GetLearners() != 1 || s.GetQuorum() != 3 || s.GetSuperquorum() != 4 || s.GetActive() != 2 ||
		s.GetTolerates() != -1 || got.GetLeader() != 1 || got.GetClusterId() != 9 {
		t.Errorf("got %+v", got)
	}
	m2, m6 := got.GetMembers()[1], got.GetMembers()[5]
	if m2.GetLag() != 2 || !m2.GetActive() || m2.GetRole() != quoratepb.Role_ROLE_VOTER ||
		m6.GetRole() != quoratepb.Role_ROLE_JOINING {
		t.Errorf("got %+v and %+v", m2, m6)
	}
}

// Ensure that of a joint configuration both sets are told, as far as members know the old one.
func TestAnswer_Cluster_joint(t *testing.T) {
	c := consoletest.Healthy(5)
	for _, m := range c.Members {
		config := m.Observation.Config
		config.Joint, config.Settled = true, false
		for i, known := range config.Members { // 1 to 3 become 3 to 5, of which 1 stays as a learner
			known.Voter, known.Outgoing, known.Demoting = i >= 2, i <= 2, i == 0
		}
	}
	consoletest.Unled(c)
	consoletest.Lose(c, 2)
	got := observed.Of(c).Cluster()
	var roles []quoratepb.Role
	for _, m := range got.GetMembers() {
		roles = append(roles, m.GetRole())
	}
	want := []quoratepb.Role{quoratepb.Role_ROLE_DEMOTING, quoratepb.Role_ROLE_OUTGOING, quoratepb.Role_ROLE_VOTER,
		quoratepb.Role_ROLE_INCOMING, quoratepb.Role_ROLE_INCOMING}
	s := got.GetStrength()
	if !slices.Equal(roles, want) || s.GetVoters() != 3 || s.GetOutgoing() != 3 || s.GetOutgoingQuorum() != 2 ||
		s.GetTolerates() != 0 {
		t.Errorf("got %v, %+v", roles, s)
	}
	for _, m := range c.Members { // of a build that does not tell
		for _, known := range m.GetObservation().GetConfig().GetMembers() {
			known.Outgoing, known.Demoting = false, false
		}
	}
	got = observed.Of(c).Cluster()
	if s := got.GetStrength(); !got.GetJoint() || s.GetOutgoing() != 0 || got.Members[4].GetRole() != quoratepb.Role_ROLE_VOTER {
		t.Errorf("not told: got %+v", got)
	}
}
