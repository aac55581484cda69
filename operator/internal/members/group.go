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

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/operator/internal/decide"
	"github.com/quorate/quorate/operator/internal/objects"
)

// patience bounds each question to a member, and mostAnswer the bytes of an answer.
const (
	patience   = 3 * time.Second
	mostAnswer = 4 << 20
)

// Seat is where the process of a member runs.
type Seat struct {
	Member  string
	Address string // of the pod
	Host    string // in its certificate
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
		address := net.JoinHostPort(seat.Address, strconv.Itoa(objects.PortClient))
		conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(creds), grpc.WithNoProxy(),
			grpc.WithAuthority(seat.Host), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(mostAnswer)))
		if err != nil {
			g.Close()
			return nil, fmt.Errorf("the address %s of %s: %w", seat.Address, seat.Member, err)
		}
		g.seats, g.conns = append(g.seats, seat), append(g.conns, conn)
	}
	g.login = newLogin(a.Passwords)
	return g, nil
}

// Close ends the connections.
func (g *Group) Close() {
	for _, conn := range g.conns {
		_ = conn.Close()
	}
}

// loginAlone is for how long one member is asked for a login while questions to the others wait for it. One whose machine is
// off answers nothing, and these then log in themselves.
const loginAlone = 500 * time.Millisecond

// login gets root's token, once a group if members answer: they share it.
type login struct {
	passwords []string
	turn      chan struct{} // whoever fills it asks for a login
	had       chan struct{} // closed once there is a token

	sync.Mutex
	took  string // the password that counts; empty: nobody has logged in
	token string
}

func newLogin(passwords []string) *login {
	return &login{passwords: passwords, turn: make(chan struct{}, 1), had: make(chan struct{})}
}

// with adds the token to what a member is asked.
func (l *login) with(ctx context.Context, conn *grpc.ClientConn) (context.Context, error) {
	if len(l.passwords) == 0 {
		return ctx, nil
	}
	patient := time.NewTimer(loginAlone)
	defer patient.Stop()
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-l.had:
	case <-patient.C:
	case <-ctx.Done():
		return ctx, fmt.Errorf("log in as root: %w", ctx.Err())
	}
	l.Lock()
	token := l.token
	l.Unlock()
	if token == "" {
		var err error
		if token, err = l.ask(ctx, conn); err != nil || token == "" {
			return ctx, err
		}
	}
	return metadata.AppendToOutgoingContext(ctx, "token", token), nil
}

// ask logs in at a member, and keeps the token. It returns none if the member knows of no users.
func (l *login) ask(ctx context.Context, conn *grpc.ClientConn) (string, error) {
	for i, password := range l.passwords {
		answer, err := etcdserverpb.NewAuthClient(conn).Authenticate(ctx, &etcdserverpb.AuthenticateRequest{Name: root,
			Password: password})
		switch {
		case isNotEnabled(err):
			return "", nil
		case is(err, rpctypes.ErrGRPCAuthFailed) && i+1 < len(l.passwords):
			continue
		case err != nil:
			return "", fmt.Errorf("log in as root: %w", err)
		}
		l.Lock()
		defer l.Unlock()
		if l.took == "" { // a token may be empty: nobody is believed
			l.token, l.took = answer.Token, password
			close(l.had)
		}
		return answer.Token, nil
	}
	return "", nil
}

// counts is the password that a login was had with; empty: none, since there are no users yet.
func (l *login) counts() string {
	l.Lock()
	defer l.Unlock()
	return l.took
}

// each asks all members at once, and returns what they answered in the order of the seats, with the errors of the others.
func each[T any](ctx context.Context, g *Group, ask func(context.Context, *grpc.ClientConn) (T, error)) ([]T, []int, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	got, errs := make([]T, len(g.conns)), make([]error, len(g.conns))
	var all sync.WaitGroup
	for i, conn := range g.conns {
		all.Go(func() {
			with, err := g.login.with(ctx, conn)
			if err == nil {
				got[i], err = ask(with, conn)
			}
			if err != nil {
				errs[i] = fmt.Errorf("%s: %w", g.seats[i].Member, err)
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
	for i, conn := range g.conns {
		asking, cancel := context.WithTimeout(ctx, patience)
		with, err := g.login.with(asking, conn)
		if err == nil {
			err = ask(with, conn)
		}
		cancel()
		if err == nil {
			return nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", g.seats[i].Member, err))
	}
	if len(errs) == 0 {
		return errors.New("no member has an address yet")
	}
	return errors.Join(errs...)
}

func isNotEnabled(err error) bool {
	return status.Code(err) == codes.FailedPrecondition &&
		status.Convert(err).Message() == "etcdserver: authentication is not enabled"
}
