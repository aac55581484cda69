package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
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
	conn     *grpc.ClientConn
	kv       pb.KVClient
	leases   pb.LeaseClient
	renewing pb.Lease_LeaseKeepAliveClient // nil: the next renewal opens one
	stop     context.CancelFunc            // ends renewing
	lease    int64
	token    string // of its login; empty: there are no users

	mu   sync.Mutex
	fare fare
}

// fare is what a bystander got.
type fare struct {
	puts      latency.Histogram // of all puts, also of those that failed
	failed    int
	renewals  int
	unrenewed int
	said      error // by the last put or renewal that failed
}

const (
	bystanderAddress = "127.0.3.1"
	bystanderEvery   = 20 * time.Millisecond
	bystanderLimit   = 5 * time.Second
	bystanderOpen    = 256 // puts without an answer, at most
	renewalEvery     = 500 * time.Millisecond
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
	b := &bystander{conn: conn, kv: pb.NewKVClient(conn), leases: pb.NewLeaseClient(conn), lease: 77}
	for range 10 { // a member that has just begun may have no leader
		_, err = b.leases.LeaseGrant(ctx, &pb.LeaseGrantRequest{ID: b.lease, TTL: 60})
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
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return b, nil
}

// watch puts, and renews the lease, for so long, and returns once all puts are answered.
//
// A put begins every bystanderEvery, whether or not those before it are answered: a client that waits for them sees a stall
// once, and calls it one slow put. Where bystanderOpen puts wait, the next ones begin late. Each one's time counts from when
// it was to begin.
func (b *bystander) watch(ctx context.Context, length time.Duration) *fare {
	var working sync.WaitGroup
	begun := time.Now()
	working.Go(func() {
		for after := time.Duration(0); after < length && ctx.Err() == nil; after += renewalEvery {
			cluster.Pause(ctx, time.Until(begun.Add(after)))
			b.note(&b.fare.renewals, &b.fare.unrenewed, b.renew(ctx))
		}
	})
	open := make(chan struct{}, bystanderOpen)
	for after := time.Duration(0); after < length && ctx.Err() == nil; after += bystanderEvery {
		at := begun.Add(after)
		cluster.Pause(ctx, time.Until(at))
		open <- struct{}{}
		working.Go(func() {
			b.put(ctx, at)
			<-open
		})
	}
	working.Wait()
	return &b.fare
}

// put makes the put that was to begin at a time.
func (b *bystander) put(ctx context.Context, at time.Time) {
	limited, cancel := context.WithDeadline(b.named(ctx), at.Add(bystanderLimit))
	defer cancel()
	_, err := b.kv.Put(limited, &pb.PutRequest{Key: []byte("bystander"), Value: []byte("x")})
	took := time.Since(at)
	b.mu.Lock()
	b.fare.puts.Record(took)
	b.mu.Unlock()
	b.note(nil, &b.fare.failed, err)
}

// note counts one of all, and one of those that failed.
func (b *bystander) note(all, failed *int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if all != nil {
		*all++
	}
	if err != nil {
		*failed++
		b.fare.said = err
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

// renew renews the lease. A renewal that fails, or is not answered in time, ends the stream: the next one opens another.
func (b *bystander) renew(ctx context.Context) (err error) {
	if b.renewing == nil {
		ctx, b.stop = context.WithCancel(b.named(ctx))
		if b.renewing, err = b.leases.LeaseKeepAlive(ctx); err != nil {
			b.hangUp()
			return err
		}
	}
	timer := time.AfterFunc(bystanderLimit, b.stop)
	defer timer.Stop()
	err = b.renewing.Send(&pb.LeaseKeepAliveRequest{ID: b.lease})
	var renewed *pb.LeaseKeepAliveResponse
	if err == nil || errors.Is(err, io.EOF) { // then the answer says why
		renewed, err = b.renewing.Recv()
	}
	if err != nil {
		b.hangUp()
		return err
	}
	if renewed.TTL <= 0 {
		return errors.New("the lease has ended")
	}
	return nil
}

func (b *bystander) hangUp() {
	if b.stop != nil {
		b.stop()
	}
	b.renewing, b.stop = nil, nil
}

func (b *bystander) close() error {
	b.hangUp()
	return b.conn.Close()
}

// killed kills all members and starts them again: what an attack has left in their logs is applied then. It returns how long it
// takes until a put is answered. That puts fail meanwhile is no fault: there is no member to turn to.
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
		b.conn.ResetConnectBackoff() // the client has seen that no server was there
		limited, cancel := context.WithTimeout(b.named(ctx), time.Second)
		_, err := b.kv.Put(limited, &pb.PutRequest{Key: []byte("bystander")}, grpc.WaitForReady(true))
		cancel()
		switch took := time.Since(begun); {
		case err == nil:
			return took, nil
		case took > patientStart || ctx.Err() != nil:
			return took, fmt.Errorf("no put is answered after the members were killed and started: %w", err)
		}
	}
}

// patientStart is how long it is watched at most whether members serve after they were killed; mostStart is how long they may
// take.
const (
	patientStart = 30 * time.Second
	mostStart    = 10 * time.Second
)
