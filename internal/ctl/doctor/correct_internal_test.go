package doctor

import (
	"context"
	"fmt"
	"net"
	"testing"

	"github.com/spf13/cobra"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/doctor"
)

// Ensure that members which the list of a member that is behind does not have, or has without or with another client URL, are
// asked where others say, once, and that nothing is asked twice in vain.
func TestCorrect(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(c *quoratepb.Collected)
		asked  string
		answer string // the fault of the second answer
		want   string // faults of all members after it
	}{
		{"all were reached", func(*quoratepb.Collected) {}, "", "", " | | |"},
		{"a member without a URL", func(c *quoratepb.Collected) {
			c.Members[2] = &quoratepb.CollectedMember{Id: 3, Name: "m", Fault: doctor.FaultNoEndpoint}
		}, "3 at m:1; ", "", " | | |"},
		{"the same, which is down", func(c *quoratepb.Collected) {
			c.Members[2] = &quoratepb.CollectedMember{Id: 3, Name: "m", Fault: doctor.FaultNoEndpoint}
		}, "3 at m:1; ", doctor.FaultRefused, " | |refused|"},
		{"a member that the list lacks", func(c *quoratepb.Collected) { c.Members = c.Members[:2] }, "3 at m:1; ", "", " | | |"},
		{"a member that has moved", func(c *quoratepb.Collected) {
			c.Members[2] = &quoratepb.CollectedMember{Id: 3, Endpoint: "m:9", Fault: doctor.FaultOther}
		}, "3 at m:1; ", "", " | | |"},
		{"the same, which is at neither place", func(c *quoratepb.Collected) {
			c.Members[2] = &quoratepb.CollectedMember{Id: 3, Endpoint: "m:9", Fault: doctor.FaultRefused}
		}, "3 at m:1; ", doctor.FaultSilent, " | |refused|"},
		{"a member that is down", func(c *quoratepb.Collected) {
			c.Members[2] = &quoratepb.CollectedMember{Id: 3, Endpoint: "m:1", Fault: doctor.FaultRefused}
		}, "", "", " | |refused|"},
		{"a member that refuses the user", func(c *quoratepb.Collected) {
			c.Members[2] = &quoratepb.CollectedMember{Id: 3, Endpoint: "m:9", Fault: doctor.FaultDenied}
		}, "", "", " | |denied|"},
		{"a word of a member that is behind", func(c *quoratepb.Collected) {
			c.Members[2] = &quoratepb.CollectedMember{Id: 3, Endpoint: "m:9", Fault: doctor.FaultRefused}
			c.Members[1].Observation.Core.Applied = 7
			c.Members[0].Observation.Config = &quoratepb.ObservedConfig{Members: []*quoratepb.ObservedMember{{Id: 3, ClientUrls: []string{"http://old:1"}}}}
		}, "3 at m:1; ", "", " | | |"},
		{"a list that is full", func(c *quoratepb.Collected) {
			c.Members = c.Members[:2]
			for id := uint64(10); len(c.Members) < mostMembers; id++ {
				c.Members = append(c.Members, &quoratepb.CollectedMember{Id: id})
			}
		}, "", "", ""},
	} {
		c := three("")
		row.change(c)
		asked := ""
		correct(c, func(targets []target) (got []*quoratepb.CollectedMember) {
			for _, x := range targets {
				asked += fmt.Sprintf("%x at %s; ", x.id, x.endpoint)
				got = append(got, &quoratepb.CollectedMember{Id: x.id, Endpoint: x.endpoint, Fault: row.answer})
			}
			return got
		})
		faults := ""
		for _, m := range c.Members {
			if m.Fault == "" {
				m.Fault = " "
			}
			faults += m.Fault + "|"
		}
		if asked != row.asked || row.want != "" && faults != row.want {
			t.Errorf("%s: asked %q, want %q; then %q, want %q", row.name, asked, row.asked, faults, row.want)
		}
	}
}

// behind is a member whose list knows no client URL of the other member.
type behind struct {
	pb.UnimplementedClusterServer
	quoratepb.UnimplementedDoctorServer
	id     uint64
	config *quoratepb.ObservedConfig
}

func (b *behind) MemberList(context.Context, *pb.MemberListRequest) (*pb.MemberListResponse, error) {
	return &pb.MemberListResponse{Header: &pb.ResponseHeader{ClusterId: 5}, Members: []*pb.Member{
		{ID: 1, Name: "m1", ClientURLs: b.config.Members[0].ClientUrls}, {ID: 2, Name: "m2"}}}, nil
}

func (b *behind) Observe(context.Context, *quoratepb.ObserveRequest) (*quoratepb.Observation, error) {
	return &quoratepb.Observation{MemberId: b.id, ClusterId: 5, Config: b.config, Core: &quoratepb.ObservedCore{Applied: b.id}}, nil
}

// Ensure that the command asks both members where the list of one lacks the client URL of the other, and the latter is known.
func TestCollect_listBehind(t *testing.T) {
	config := &quoratepb.ObservedConfig{Index: 3}
	for id := uint64(1); id <= 2; id++ {
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		config.Members = append(config.Members, &quoratepb.ObservedMember{Id: id, Name: "m", Voter: true, Started: true,
			ClientUrls: []string{"http://" + listener.Addr().String()}})
		server, m := grpc.NewServer(), &behind{id: id, config: config}
		quoratepb.RegisterDoctorServer(server, m)
		pb.RegisterClusterServer(server, m)
		go func() { _ = server.Serve(listener) }()
		defer server.Stop()
	}
	c := command.NewConnection(command.Streams{})
	if err := c.AddTo(&cobra.Command{}).ParseFlags([]string{"--endpoints", config.Members[0].ClientUrls[0]}); err != nil {
		t.Fatal(err)
	}
	got, err := askAll(t.Context(), c)
	if err != nil || len(got.Members) != 2 || got.Members[1].GetObservation().GetMemberId() != 2 {
		t.Errorf("%v, %v", got, err)
	}
}
