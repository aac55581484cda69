package rpc_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files"
)

// usersRounds is how often BenchmarkUsers turns from one member to the other: the speed of a machine changes within seconds.
const usersRounds = 16

// BenchmarkUsers shows what a call costs a member with users on, as a ratio to what it costs one with users off. Both members, each
// a cluster of one as in BenchmarkCall, are in this process and serve in turns.
//
//	go test -run '^$' -bench '^BenchmarkUsers$' -benchtime 64000x ./internal/rpc
func BenchmarkUsers(b *testing.B) {
	for _, row := range []struct {
		method  string
		clients int
	}{{"put", 64}, {"range", 64}, {"txn", 1}} {
		b.Run(fmt.Sprintf("%s/clients%d", row.method, row.clients), func(b *testing.B) {
			var loads [2]*load // users off, users on
			for i, user := range []string{"", "alice"} {
				var store *seldomFlushed
				m := startMemberOn(b, 100*time.Millisecond, func(dir string) (engine.Engine, error) {
					mem, err := engine.OpenMem(engine.MemOptions{FS: files.Disk, Dir: dir})
					store = &seldomFlushed{Mem: mem}
					return store, err
				})
				publish(b, m)
				fillForCalls(b, m)
				store.fill()
				s := serve(b, m, func(o *rpcOptions) { o.Clients = m.Clients() })
				if user != "" {
					enable(b, s)
					_, err := s.as(b, "root").RoleGrantPermission(b.Context(), "reader", "bench/", "bench0",
						clientv3.PermissionType(clientv3.PermReadWrite))
					if err != nil {
						b.Fatal(err)
					}
				}
				loads[i] = startLoadAs(b, user, s.addr, row.method, row.clients, row.clients)
				loads[i].run(b, row.clients*20) // connections, pools and stacks have grown
			}
			var used [2]float64
			calls := max(1, b.N/2/usersRounds)
			for range usersRounds {
				for i, load := range loads {
					begun, _ := processorTime(b)
					load.run(b, calls)
					ended, _ := processorTime(b)
					used[i] += ended - begun
				}
			}
			made := float64(calls * usersRounds)
			b.ReportMetric(used[0]/made, "off-cpu-us/op")
			b.ReportMetric(used[1]/made, "on-cpu-us/op")
			b.ReportMetric(used[1]/used[0], "on/off")
		})
	}
}

// tokenOf logs a user in, and returns what its calls bear.
func tokenOf(addr, user string) (grpc.DialOption, error) {
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	in, err := pb.NewAuthClient(conn).Authenticate(context.Background(), &pb.AuthenticateRequest{Name: user, Password: user + "pw"})
	if err != nil {
		return nil, err
	}
	return grpc.WithPerRPCCredentials(bearer(in.Token)), nil
}

// bearer is the token of a user.
type bearer string

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (t bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"token": string(t)}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials.
func (bearer) RequireTransportSecurity() bool { return false }
