package members

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// hedge is how long one member may take for a login before another one is asked beside it.
const hedge = 250 * time.Millisecond

const root = "root"

// errRefused says that a member knows users, and lets the operator in by nothing that it has.
var errRefused = errors.New("no password counts")

// login gets root's token once a group: members share it. It holds nothing while it waits for a member.
type login struct {
	passwords []string
	turn      chan struct{} // whose login is waited for; one at a time, as passwords cost members time
	done      sync.Once
	had       chan struct{} // closed once there is a token
	took      string        // the password that counts; read it once had is closed
	token     string        // the same
}

func newLogin(passwords []string) *login {
	return &login{passwords: passwords, turn: make(chan struct{}, 1), had: make(chan struct{})}
}

// with returns a context with root's token, which this member or another one gave; without one if the member has no users yet.
func (l *login) with(ctx context.Context, conn *grpc.ClientConn) (context.Context, error) {
	if len(l.passwords) == 0 {
		return ctx, nil
	}
	select {
	case <-l.had:
		return l.add(ctx), nil
	case <-ctx.Done():
		return ctx, fmt.Errorf("log in as root: %w", ctx.Err())
	case l.turn <- struct{}{}:
	}
	next := sync.OnceFunc(func() { <-l.turn })
	defer next()
	if l.counts() != "" {
		return l.add(ctx), nil
	}
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- l.ask(asking, conn) }()
	slow := time.NewTimer(hedge)
	defer slow.Stop()
	for {
		select {
		case <-l.had:
			return l.add(ctx), nil
		case <-slow.C:
			next()
		case err := <-ended:
			switch {
			case err == nil:
				return l.add(ctx), nil
			case isNotEnabled(err):
				return ctx, nil
			}
			if is(err, rpctypes.ErrGRPCAuthFailed) {
				err = fmt.Errorf("%w (%w)", err, errRefused)
			}
			return ctx, fmt.Errorf("log in as root: %w", err)
		}
	}
}

// ask asks one member for a token, by each password until one counts.
func (l *login) ask(ctx context.Context, conn *grpc.ClientConn) (err error) {
	for _, password := range l.passwords {
		var answer *etcdserverpb.AuthenticateResponse
		answer, err = etcdserverpb.NewAuthClient(conn).Authenticate(ctx, &etcdserverpb.AuthenticateRequest{Name: root,
			Password: password})
		if err == nil {
			l.done.Do(func() {
				l.token, l.took = answer.Token, password
				close(l.had)
			})
			return nil
		}
		if !is(err, rpctypes.ErrGRPCAuthFailed) {
			return err
		}
	}
	return err
}

// add adds the token, once there is one.
func (l *login) add(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "token", l.token)
}

// counts is the password that a login was had with; empty: none, since there are no users yet.
func (l *login) counts() string {
	select {
	case <-l.had:
		return l.took
	default:
		return ""
	}
}

// is tells whether a call ended with an error of etcd's.
func is(err, known error) bool {
	var told rpctypes.EtcdError
	return err != nil && errors.As(rpctypes.Error(err), &told) && told.Error() == rpctypes.ErrorDesc(known)
}

func isNotEnabled(err error) bool {
	return status.Code(err) == codes.FailedPrecondition &&
		status.Convert(err).Message() == "etcdserver: authentication is not enabled"
}
