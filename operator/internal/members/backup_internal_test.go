package members

import (
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/quorate/quorate/api/quoratepb"
)

// Ensure that members of a build without the continuous backup are told as such: what gRPC says of it names no cure.
func TestGroup_Backup_former(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	quoratepb.RegisterDoctorServer(server, &lonely{}) // and no service of backups
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	g := &Group{seats: []Seat{{Member: "m1"}}, conns: []*grpc.ClientConn{conn}, login: &login{}}
	defer g.Close()
	_, err = g.Backup(t.Context(), &Backup{Place: "s3://b/p"})
	if err == nil || !strings.Contains(err.Error(), "m1: its build has no continuous backup: that needs release 1.1") {
		t.Errorf("got %v", err)
	}
}
