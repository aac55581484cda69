package members

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
)

// users is a member of which root has a password. A login ends with the password with which it was had.
type users struct {
	etcdserverpb.UnimplementedAuthServer
	password string
	changed  []string
	sync.Mutex
}

func (u *users) Authenticate(_ context.Context, r *etcdserverpb.AuthenticateRequest) (*etcdserverpb.AuthenticateResponse, error) {
	if r.Password != u.password {
		return nil, rpctypes.ErrGRPCAuthFailed
	}
	return &etcdserverpb.AuthenticateResponse{Token: r.Password}, nil
}

func (u *users) UserChangePassword(ctx context.Context, r *etcdserverpb.AuthUserChangePasswordRequest) (
	*etcdserverpb.AuthUserChangePasswordResponse, error) {
	u.Lock()
	defer u.Unlock()
	if md, _ := metadata.FromIncomingContext(ctx); !slices.Equal(md.Get("token"), []string{u.password}) {
		return nil, rpctypes.ErrGRPCInvalidAuthToken
	}
	u.changed, u.password = append(u.changed, r.Password), r.Password
	return &etcdserverpb.AuthUserChangePasswordResponse{}, nil
}

// Ensure that a login is had with a former password of root while the cluster has that, and that root then gets the one that it shall
// have, once.
func TestGroup_formerPassword(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u, server := &users{password: "old"}, grpc.NewServer()
	etcdserverpb.RegisterAuthServer(server, u)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	apply := func(passwords ...string) error {
		conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return err
		}
		g := &Group{seats: []Seat{{Member: "m1"}}, conns: []*grpc.ClientConn{conn}, login: newLogin(passwords)}
		defer g.Close()
		return g.Users(t.Context(), Users{RootPassword: passwords[0]})
	}
	if err := apply("new", "other", "old"); err != nil || !slices.Equal(u.changed, []string{"new"}) {
		t.Errorf("changed to %q: %v", u.changed, err)
	}
	if err := apply("new", "old"); err != nil || len(u.changed) != 1 {
		t.Errorf("changed again, to %q: %v", u.changed, err)
	}
	if err := apply("x", "y"); !is(errorOf(err), rpctypes.ErrGRPCAuthFailed) || !errors.Is(err, errRefused) {
		t.Errorf("no password counts: %v", err)
	}
}

// Ensure that a member that says nothing keeps no other one from logging in, whichever of them it is.
func TestGroup_silentLogin(t *testing.T) {
	t.Parallel()
	for silent := range 3 {
		t.Run(strconv.Itoa(silent), func(t *testing.T) {
			t.Parallel()
			u, g := &users{password: "p"}, &Group{login: newLogin([]string{"p"})}
			defer g.Close()
			for i := range 3 {
				listener, err := net.Listen("tcp", "127.0.0.1:0") // the system takes connections, and nobody answers
				if err != nil {
					t.Fatal(err)
				}
				defer listener.Close()
				if i != silent {
					server := grpc.NewServer()
					etcdserverpb.RegisterAuthServer(server, u)
					go func() { _ = server.Serve(listener) }()
					defer server.Stop()
				}
				conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
				if err != nil {
					t.Fatal(err)
				}
				g.seats, g.conns = append(g.seats, Seat{Member: strconv.Itoa(i)}), append(g.conns, conn)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var changed atomic.Int32
			_, answered, err := each(ctx, g, func(ctx context.Context, conn *grpc.ClientConn) (string, error) {
				_, err := etcdserverpb.NewAuthClient(conn).UserChangePassword(ctx,
					&etcdserverpb.AuthUserChangePasswordRequest{Password: "p"})
				if err == nil && changed.Add(1) == 2 {
					cancel() // the silent one is waited for no longer
				}
				return "", err
			})
			if len(answered) != 2 || slices.Contains(answered, silent) || !strings.Contains(err.Error(), strconv.Itoa(silent)+": ") {
				t.Errorf("%v answered: %v", answered, err)
			}
		})
	}
}

// errorOf is the error of the call at the end of a chain.
func errorOf(err error) error {
	for {
		switch x := err.(type) {
		case interface{ Unwrap() error }:
			err = x.Unwrap()
		case interface{ Unwrap() []error }:
			err = x.Unwrap()[0]
		default:
			return err
		}
	}
}
