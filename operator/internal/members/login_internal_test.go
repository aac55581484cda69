package members

import (
	"context"
	"net"
	"slices"
	"strings"
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
}

func (u *users) Authenticate(_ context.Context, r *etcdserverpb.AuthenticateRequest) (*etcdserverpb.AuthenticateResponse, error) {
	if r.Password != u.password {
		return nil, rpctypes.ErrGRPCAuthFailed
	}
	return &etcdserverpb.AuthenticateResponse{Token: r.Password}, nil
}

func (u *users) UserChangePassword(ctx context.Context, r *etcdserverpb.AuthUserChangePasswordRequest) (
	*etcdserverpb.AuthUserChangePasswordResponse, error) {
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
	if err := apply("x", "y"); !is(errorOf(err), rpctypes.ErrGRPCAuthFailed) {
		t.Errorf("no password counts: %v", err)
	}
}

// Ensure that a member whose machine is off, at whose address nothing answers, keeps nobody from logging in at another one: whether it
// is asked first or last.
func TestGroup_loginBesideSilent(t *testing.T) {
	listen := func() net.Listener {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = listener.Close() })
		return listener
	}
	works, server := listen(), grpc.NewServer()
	etcdserverpb.RegisterAuthServer(server, &users{password: "p"})
	go func() { _ = server.Serve(works) }()
	t.Cleanup(server.Stop)
	g := &Group{login: newLogin([]string{"p"})}
	defer g.Close()
	for i, listener := range []net.Listener{listen(), works, listen()} { // the others accept connections, and say nothing
		conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		g.seats, g.conns = append(g.seats, Seat{Member: string(rune('a' + i))}), append(g.conns, conn)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*loginAlone)
	defer cancel()
	_, answered, err := each(ctx, g, func(ctx context.Context, _ *grpc.ClientConn) (string, error) {
		md, _ := metadata.FromOutgoingContext(ctx)
		return strings.Join(md.Get("token"), ""), nil
	})
	if !slices.Contains(answered, 1) {
		t.Errorf("%v answered: %v", answered, err)
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
