package main

import (
	"context"
	"errors"
	"net"
	"strings"
	"syscall"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/quorate/quorate/test/bench/cluster"
	"github.com/quorate/quorate/test/bench/latency"
)

// bystander is another client host of the member that is attacked: it puts, and renews a lease.
type bystander struct {
	conn      *grpc.ClientConn
	kv        pb.KVClient
	renewing  pb.Lease_LeaseKeepAliveClient
	lease     int64
	token     string // of its login; empty: there are no users
	puts      latency.Histogram
	failed    int
	unrenewed int
}

const (
	bystanderAddress = "127.0.3.1"
	bystanderEvery   = 20 * time.Millisecond
	bystanderLimit   = 5 * time.Second
)

func newBystander(ctx context.Context, address string, users bool) (*bystander, error) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(bystanderAddress)}}
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, to string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", to)
		}))
	if err != nil {
		return nil, err
	}
	b := &bystander{conn: conn, kv: pb.NewKVClient(conn), lease: 77}
	for range 10 { // a member that has just begun may have no leader
		_, err = pb.NewLeaseClient(conn).LeaseGrant(ctx, &pb.LeaseGrantRequest{ID: b.lease, TTL: 60})
		if err == nil {
			break
		}
		cluster.Pause(ctx, time.Second)
	}
	if err == nil && users {
		err = b.logIn(ctx)
		ctx = b.named(ctx)
	}
	if err == nil {
		_, err = b.kv.Put(ctx, &pb.PutRequest{Key: []byte("held"), Value: []byte(strings.Repeat("h", heldBytes))})
	}
	if err == nil {
		b.renewing, err = pb.NewLeaseClient(conn).LeaseKeepAlive(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return b, nil
}

// watch puts, and renews the lease, for so long.
func (b *bystander) watch(ctx context.Context, length time.Duration) {
	begun := time.Now()
	each := time.NewTicker(bystanderEvery)
	defer each.Stop()
	for n := 0; time.Since(begun) < length && ctx.Err() == nil; n++ {
		<-each.C
		at := time.Now()
		limited, cancel := context.WithTimeout(b.named(ctx), bystanderLimit)
		if _, err := b.kv.Put(limited, &pb.PutRequest{Key: []byte("bystander"), Value: []byte("x")}); err != nil {
			b.failed++
		} else {
			b.puts.Record(time.Since(at))
		}
		cancel()
		if n%25 == 0 && !b.renew() {
			b.unrenewed++
		}
	}
}

// named is a context of calls in the name of the bystander's user.
func (b *bystander) named(ctx context.Context) context.Context {
	if b.token == "" {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, "token", b.token)
}

// logIn makes the user root, lets clients log in from now on, and does so.
func (b *bystander) logIn(ctx context.Context) error {
	const root, password = "root", "of root"
	auth := pb.NewAuthClient(b.conn)
	var err error
	for range 20 { // the feature level rises once all members have published theirs
		if _, err = auth.UserAdd(ctx, &pb.AuthUserAddRequest{Name: root, Password: password}); err == nil {
			break
		}
		cluster.Pause(ctx, time.Second)
	}
	if err == nil {
		_, err = auth.UserGrantRole(ctx, &pb.AuthUserGrantRoleRequest{User: root, Role: root})
	}
	if err == nil {
		_, err = auth.AuthEnable(ctx, &pb.AuthEnableRequest{})
	}
	if err != nil {
		return err
	}
	got, err := auth.Authenticate(ctx, &pb.AuthenticateRequest{Name: root, Password: password})
	b.token = got.GetToken()
	return err
}

func (b *bystander) renew() bool {
	if b.renewing.Send(&pb.LeaseKeepAliveRequest{ID: b.lease}) != nil {
		return false
	}
	renewed, err := b.renewing.Recv()
	return err == nil && renewed.GetTTL() > 0
}

func (b *bystander) close() error { return b.conn.Close() }

// killed kills all members and starts them again: what an attack has left in their logs is applied then. It returns how long it
// takes until a put is answered.
func (b *bystander) killed(ctx context.Context, c *cluster.Cluster) (time.Duration, error) {
	for _, m := range c.Members {
		m.Signal(syscall.SIGKILL)
	}
	for _, m := range c.Members {
		<-m.Ended
	}
	begun := time.Now()
	if _, err := c.Start(ctx); err != nil {
		return time.Since(begun), err
	}
	for {
		limited, cancel := context.WithTimeout(b.named(ctx), bystanderLimit)
		_, err := b.kv.Put(limited, &pb.PutRequest{Key: []byte("bystander")}, grpc.WaitForReady(true))
		cancel()
		switch took := time.Since(begun); {
		case err == nil:
			return took, nil
		case took > mostStart:
			return took, errors.New("no put is answered after the members were killed and started")
		}
	}
}

// mostStart is how long members may take to serve after they were killed.
const mostStart = 30 * time.Second
