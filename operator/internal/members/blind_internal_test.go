package members

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/operator/internal/decide"
)

// blind is a leader whose doctor cannot be asked, and that has a job in a state of a later build.
type blind struct {
	quoratepb.UnimplementedMembershipServer
	quoratepb.UnimplementedDoctorServer
}

func (blind) Describe(context.Context, *quoratepb.DescribeRequest) (*quoratepb.DescribeResponse, error) {
	return &quoratepb.DescribeResponse{Cluster: &quoratepb.Cluster{ClusterId: 9, Leader: 1, Members: []*quoratepb.Member{{Id: 1, Name: "m1",
		Role: quoratepb.Role_ROLE_VOTER, Leader: true, Active: true, CaughtUp: true, Started: true}}}}, nil
}

func (blind) Collect(context.Context, *quoratepb.CollectRequest) (*quoratepb.Collected, error) {
	return nil, status.Error(codes.Unavailable, "it restarts")
}

func (blind) ListJobs(context.Context, *quoratepb.ListJobsRequest) (*quoratepb.ListJobsResponse, error) {
	return &quoratepb.ListJobsResponse{Jobs: []*quoratepb.Job{{Id: 1, State: "done"}, {Id: 2, State: "resting"}}}, nil
}

// Ensure that a doctor that cannot be asked keeps members from being restarted, as one does that finds something, and that a job in an
// unknown state is under way.
func TestGroup_Look_blind(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	quoratepb.RegisterMembershipServer(server, blind{})
	quoratepb.RegisterDoctorServer(server, blind{})
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	g := &Group{login: newLogin(nil), seats: []Seat{{Member: "m1"}}, conns: []*grpc.ClientConn{conn}}
	defer g.Close()
	v := g.Look(t.Context(), 9, decide.Epoch{})
	said := func(text string) bool { return strings.Contains(text, "the doctor could not be asked") }
	if c := v.Cluster(); c == nil || !slices.ContainsFunc(c.Blockers, said) || !slices.ContainsFunc(v.Apart, said) ||
		len(c.Jobs) != 1 || c.Jobs[0].ID != 2 {
		t.Errorf("%+v, apart %q, %v", c, v.Apart, v.Err)
	}
}
