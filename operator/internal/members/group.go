package members

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/quorate/quorate/operator/internal/decide"
	"github.com/quorate/quorate/operator/internal/objects"
)

// patience bounds each question to a member, and lookFor all that one group asks: one that opens it for a look waits no longer,
// whatever its members do.
const (
	patience = 3 * time.Second
	lookFor  = 9 * time.Second
)

// Seat is where the process of a member runs.
type Seat struct {
	Member    string
	Namespace string // of its pod and its claim
	Address   string // of the pod
	Host      string // in its certificate
	// Epoch is that of the member's claim: it counts where the member's build tells none.
	Epoch decide.Epoch
}

// Access is how members are reached.
type Access struct {
	TLS *tls.Config // nil: not encrypted
	// Passwords of root, the one that it shall have first: others count until it has that. Empty: no users.
	Passwords []string
}

// Group are the members that can be asked. Close it.
type Group struct {
	seats []Seat
	conns []*grpc.ClientConn
	login *login
	first int           // the member that any asks first: it answered last
	spent time.Duration // on questions, one after the other
}

// Open makes connections to the seats. It waits for none.
func Open(seats []Seat, a Access) (*Group, error) {
	g := &Group{}
	for _, seat := range seats {
		creds := insecure.NewCredentials()
		if a.TLS != nil {
			own := a.TLS.Clone()
			own.ServerName = seat.Host
			creds = credentials.NewTLS(own)
		}
		conn, err := dial(net.JoinHostPort(seat.Address, strconv.Itoa(objects.PortClient)), seat.Host, creds)
		if err != nil {
			g.Close()
			return nil, fmt.Errorf("the address %s of %s: %w", seat.Address, seat.Member, err)
		}
		g.seats, g.conns = append(g.seats, seat), append(g.conns, conn)
	}
	g.login = newLogin(a.Passwords)
	return g, nil
}

// dial returns a connection over which nothing comes that has no bound.
func dial(address, host string, creds credentials.TransportCredentials) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(creds), grpc.WithNoProxy(),
		grpc.WithAuthority(host), grpc.WithMaxHeaderListSize(mostHeaders), grpc.WithStaticStreamWindowSize(64<<10),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(mostAnswer), grpc.ForceCodec(answers)))
}

// Close ends the connections.
func (g *Group) Close() {
	for _, conn := range g.conns {
		_ = conn.Close()
	}
}

// asking bounds a question, or several at once. Call its second value once they are answered.
func (g *Group) asking(ctx context.Context) (context.Context, func()) {
	begun, before := time.Now(), g.spent
	ctx, cancel := context.WithTimeout(ctx, min(patience, lookFor-before))
	return ctx, func() {
		cancel()
		g.spent = max(g.spent, before+time.Since(begun)) // one question may be a part of another one
	}
}

// each asks all members at once, and returns what they answered in the order of the seats, with the errors of the others.
func each[T any](ctx context.Context, g *Group, ask func(context.Context, *grpc.ClientConn) (T, error)) ([]T, []int, error) {
	ctx, done := g.asking(ctx)
	defer done()
	got, errs := make([]T, len(g.conns)), make([]error, len(g.conns))
	var all sync.WaitGroup
	for i, conn := range g.conns {
		all.Go(func() {
			with, err := g.login.with(ctx, conn)
			if err == nil {
				got[i], err = ask(with, conn)
			}
			if is(err, rpctypes.ErrGRPCUserEmpty) { // the operator has no password
				err = fmt.Errorf("%w (%w)", err, errRefused)
			}
			if err != nil {
				errs[i] = fmt.Errorf("%s: %w", g.seats[i].Member, said{err})
			}
		})
	}
	all.Wait()
	var answered []int
	for i, err := range errs {
		if err == nil {
			answered = append(answered, i)
		}
	}
	return got, answered, errors.Join(errs...)
}

// any asks one member after the other until one answers.
func (g *Group) any(ctx context.Context, ask func(context.Context, *grpc.ClientConn) error) error {
	var errs []error
	for k := range g.conns {
		i := (g.first + k) % len(g.conns)
		asking, done := g.asking(ctx)
		with, err := g.login.with(asking, g.conns[i])
		if err == nil {
			err = ask(with, g.conns[i])
		}
		done()
		if err == nil {
			g.first = i
			return nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", g.seats[i].Member, said{err}))
	}
	if len(errs) == 0 {
		return errors.New("no member has an address yet")
	}
	return errors.Join(errs...)
}
