package members

import (
	"context"
	"net"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/operator/internal/decide"
)

// lonely is a member without a leader.
type lonely struct {
	quoratepb.UnimplementedDoctorServer
	o *quoratepb.Observation
}

func (l *lonely) Observe(context.Context, *quoratepb.ObserveRequest) (*quoratepb.Observation, error) {
	return l.o, nil
}

// observed is what a member of three tells, whose log ends there.
func observed(name string, epoch, term, index uint64, revision int64) *quoratepb.Observation {
	o := &quoratepb.Observation{ClusterId: 9, Name: name, Config: &quoratepb.ObservedConfig{},
		Core:  &quoratepb.ObservedCore{Epoch: epoch, LastTerm: term, LastIndex: index},
		Store: &quoratepb.ObservedStore{Revision: revision}}
	for i, other := range []string{"m1", "m2", "m3", "m4", "m5"} {
		o.Config.Members = append(o.Config.Members, &quoratepb.ObservedMember{Name: other, Voter: i < 3, Outgoing: i == 3})
	}
	o.Config.Members[4].Name, o.Config.Members[4].Id = "", 0xabc // a learner that never started
	return o
}

// Ensure that survivors tell epoch, term and index of their last entries, by which they are ranked, and the voters of both sets; and that
// neither a member of another cluster, nor one that a recovery left out, nor another one at the address is a survivor.
func TestGroup_answers(t *testing.T) {
	left := observed("m4", 0, 9, 900, 900)
	left.Core.Superseded = "the cluster was recovered without it"
	foreign := observed("m5", 0, 9, 900, 900)
	foreign.ClusterId = 8
	untold := observed("m1", 1, 2, 95, 70) // later on
	g := &Group{login: newLogin(nil)}
	defer g.Close()
	for i, o := range []*quoratepb.Observation{untold, observed("m2", 1, 3, 90, 65), observed("m3", 0, 7, 99, 80), left,
		foreign, observed("m1", 1, 9, 900, 900)} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := grpc.NewServer()
		quoratepb.RegisterDoctorServer(server, &lonely{o: o})
		go func() { _ = server.Serve(listener) }()
		t.Cleanup(server.Stop)
		conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		g.seats = append(g.seats, Seat{Member: []string{"m1", "m2", "m3", "m4", "m5", "m6"}[i]})
		g.conns = append(g.conns, conn)
	}
	got := g.Look(t.Context(), 9, decide.Epoch{}).Answers
	if len(got) != 3 || got[0].Epoch != 1 || got[0].Term != 2 || got[0].Index != 95 || got[0].Revision != 70 || len(got[0].Voters) != 4 ||
		!slices.Equal(got[0].Members, []string{"m1", "m2", "m3", "m4", "abc"}) {
		t.Fatalf("%+v", got)
	}
	g.seats[0].Epoch, g.seats[2].Epoch = decide.ParseEpoch("5-ab"), decide.ParseEpoch("5-ab")
	untold.Core.Epoch, untold.Core.LastTerm = 0, 0
	if of := g.Look(t.Context(), 9, decide.Epoch{}).Answers; len(of) != 3 || of[0].Epoch != 5 || of[2].Epoch != 0 {
		t.Errorf("of a build that tells no epoch, and of one that does: %+v", of)
	}
	untold.MemberId, untold.Config.Members[0] = 1, &quoratepb.ObservedMember{Id: 1, Voter: true}
	if a := g.Look(t.Context(), 9, decide.Epoch{}).Answers[0]; a.Members[0] != "m1" || a.Voters[0] != "m1" {
		t.Errorf("a member of which the cluster has no name yet does not tell that it votes: %+v", a)
	}
	o := &decide.Observed{Kept: decide.Kept{Founded: true}, Answers: got, Claims: []decide.Claim{{Member: "m1"}, {Member: "m2"}}}
	if loss := decide.LossOf(o); loss != nil {
		t.Errorf("three of four answer, and %+v", loss)
	}
	if o.Answers = got[:2]; decide.LossOf(o).Survivor.Member != "m2" {
		t.Errorf("%+v is ranked before the one of a later term", decide.LossOf(o).Survivor)
	}
	o.Claims = o.Claims[1:]
	if o.Answers = append(got[1:2:2], got[2]); decide.LossOf(o).Survivor.Member != "m2" {
		t.Errorf("%+v is ranked before the one of a later epoch", decide.LossOf(o).Survivor)
	}
}
