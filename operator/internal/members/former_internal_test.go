package members

import (
	"context"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/doctor"
	"github.com/quorate/quorate/operator/internal/decide"
)

// former is a member of release 1.0: it does not ask the others what they observe.
type former struct {
	quoratepb.UnimplementedDoctorServer
	quoratepb.UnimplementedMembershipServer
	described *quoratepb.Cluster
	observed  *quoratepb.Observation
}

func (f *former) Observe(context.Context, *quoratepb.ObserveRequest) (*quoratepb.Observation, error) {
	return f.observed, nil
}

func (f *former) Describe(context.Context, *quoratepb.DescribeRequest) (*quoratepb.DescribeResponse, error) {
	return &quoratepb.DescribeResponse{Cluster: f.described}, nil
}

func (f *former) ListJobs(context.Context, *quoratepb.ListJobsRequest) (*quoratepb.ListJobsResponse, error) {
	return &quoratepb.ListJobsResponse{}, nil
}

// later is one of release 1.1, which does, and which the others of 1.0 do not answer.
type later struct{ *former }

func (l *later) Collect(context.Context, *quoratepb.CollectRequest) (*quoratepb.Collected, error) {
	c := &quoratepb.Collected{ByMember: l.observed.GetMemberId()}
	for _, m := range l.described.GetMembers() {
		one := &quoratepb.CollectedMember{Id: m.GetId(), Name: m.GetName(), Fault: doctor.FaultUnsupported}
		if m.GetId() == l.observed.GetMemberId() {
			one.Fault, one.Observation, one.AskedMs = "", l.observed, l.observed.GetNowMs()
		}
		c.Members = append(c.Members, one)
	}
	return c, nil
}

// Ensure that members of 1.0 are asked what they observe, whichever build leads: without that a version that is taken back stops
// after its first member, since nobody says whom that one reaches; and one that comes goes on though members do not reach each
// other yet. The clock of the operator's machine, an hour behind theirs, makes none of theirs wrong.
func TestGroup_Look_former(t *testing.T) {
	now := time.Now().Add(time.Hour).UnixMilli()
	for _, leads := range []string{"1.0", "1.1"} {
		for _, apart := range []bool{false, true} {
			g := &Group{login: &login{}}
			defer g.Close()
			described := &quoratepb.Cluster{ClusterId: 9, Leader: 1, Term: 1}
			for id := uint64(1); id <= 3; id++ {
				described.Members = append(described.Members, &quoratepb.Member{Id: id, Name: "m" + string(rune('0'+id)),
					Role: quoratepb.Role_ROLE_VOTER, Started: true, Active: true, CaughtUp: true, Leader: id == 1})
			}
			for id := uint64(1); id <= 3; id++ {
				o := &quoratepb.Observation{ClusterId: 9, MemberId: id, Name: described.Members[id-1].Name, NowMs: now}
				for other := uint64(1); other <= 3; other++ {
					if other != id {
						o.Peers = append(o.Peers, &quoratepb.ObservedPeer{Id: other, Connected: !apart || id != 3 || other != 2})
					}
				}
				f := &former{described: described, observed: o}
				var asked quoratepb.DoctorServer = f
				if id == 1 && leads == "1.1" {
					asked = &later{f}
				}
				g.seats, g.conns = append(g.seats, Seat{Member: o.Name}), append(g.conns, serve(t, asked, f))
			}
			v := g.Look(t.Context(), 9, decide.Epoch{})
			want := 0
			if apart {
				want = 1
			}
			if v.Described == nil || len(v.Apart) != want || apart && v.Apart[0] != "m3 has no connection to m2 yet" {
				t.Errorf("%s leads, apart %v: %q, error %v", leads, apart, v.Apart, v.Err)
			}
			for _, f := range v.Findings {
				if f.Code == doctor.NotObserved || f.Code == doctor.ClockOff {
					t.Errorf("%s leads: %s", leads, f.Sentence)
				}
			}
		}
	}
}

func serve(t *testing.T, d quoratepb.DoctorServer, m quoratepb.MembershipServer) *grpc.ClientConn {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	quoratepb.RegisterDoctorServer(server, d)
	quoratepb.RegisterMembershipServer(server, m)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	return conn
}
