package access_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/auth/login"
	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/kv/apply/applytest"
	"github.com/quorate/quorate/internal/rpc/access"
	"github.com/quorate/quorate/internal/rpc/incoming"
)

// machine is a state machine with the user root, and authentication enabled.
func machine(t *testing.T) *apply.Machine {
	t.Helper()
	m := applytest.Open(t, 1, consensus.Config{})
	for i, change := range []auth.Change{
		{Kind: auth.UserAdd, User: "root", Hash: []byte("h")},
		{Kind: auth.UserGrantRole, User: "root", Role: "root"},
		{Kind: auth.Enable, Secret: make([]byte, 32)},
	} {
		command := kv.Command{Auth: &change}
		results, err := m.Apply([]consensus.Entry{{
			Index: consensus.Index(i + 1), Term: 1, Kind: consensus.EntryCommand, Payload: command.Append(nil),
		}})
		if err != nil || results[0].Err != nil {
			t.Fatal(err, results[0].Err)
		}
	}
	return m
}

func control(t *testing.T, m *apply.Machine, change func(*access.Options)) *access.Control {
	t.Helper()
	tokens, err := login.New(login.Options{Clock: env.WallClock{}})
	if err != nil {
		t.Fatal(err)
	}
	o := access.Options{
		Machine: func() (*apply.Machine, func()) { return m, func() {} }, Users: m.Users,
		CatchUp: func(context.Context) error { return nil }, Tokens: tokens,
	}
	change(&o)
	return access.New(o)
}

// Ensure that the common name of a client's certificate counts where certificates are demanded, unless the call came through a
// gateway, whose certificate it is then (CVE-2018-16886); and that a bad token is not made good by a certificate.
func TestControl_Caller_certificate(t *testing.T) {
	m := machine(t)
	leaf := &x509.Certificate{Subject: pkix.Name{CommonName: "root"}}
	shown := peer.NewContext(context.Background(), &peer.Peer{AuthInfo: credentials.TLSInfo{
		State: tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{leaf}}},
	}})
	for _, row := range []struct {
		name     string
		demanded bool
		metadata metadata.MD
		want     string
		err      error
	}{
		{name: "a certificate", demanded: true, want: "root"},
		{name: "one that nobody demanded"},
		{name: "through a gateway", demanded: true, metadata: metadata.Pairs("grpcgateway-accept", "application/json")},
		{name: "a bad token beside it", demanded: true, metadata: metadata.Pairs("token", "x"), err: login.ErrInvalidToken},
		{name: "an empty token beside it", demanded: true, metadata: metadata.Pairs("authorization", "Bearer "),
			err: login.ErrInvalidToken},
	} {
		c := control(t, m, func(o *access.Options) { o.Certificates = row.demanded })
		by, err := c.Caller(metadata.NewIncomingContext(shown, row.metadata))
		if by.User != row.want || !errors.Is(err, row.err) {
			t.Errorf("%s: got %q, %v; want %q, %v", row.name, by.User, err, row.want, row.err)
		}
	}
}

// counted counts how often tokens are looked at. All of them are root's while good is set.
type counted struct {
	access.Tokens
	looked int
	good   bool
}

func (c *counted) Authenticate(*auth.State, string) (auth.Credentials, error) {
	c.looked++
	if !c.good {
		return auth.Credentials{}, login.ErrInvalidToken
	}
	return auth.Credentials{User: "root", Revision: auth.AnyRevision}, nil
}

func (c *counted) Again(*auth.State, string) func() bool { return func() bool { return c.good } }

// Ensure that a token that the calls of a connection bear is looked at once: until users or roles change, or it is not good any
// more.
func TestControl_ReadNow_kept(t *testing.T) {
	m := machine(t)
	users, tokens := m.Users(), &counted{good: true}
	c := control(t, m, func(o *access.Options) {
		tokens.Tokens = o.Tokens
		o.Tokens, o.Users = tokens, func() *auth.State { return users }
	})
	ctx := incoming.NewContext(context.Background(), metadata.Pairs("token", "x"))
	read := func(permitted bool, looked int) {
		t.Helper()
		if _, got := c.ReadNow(ctx, []byte("k"), nil); got != permitted || tokens.looked != looked {
			t.Errorf("permitted: %t, looked at %d times; want %t, %d", got, tokens.looked, permitted, looked)
		}
	}
	read(true, 1)
	read(true, 1)
	next, _, err := users.Next(&auth.Change{Kind: auth.RoleAdd, Role: "r"})
	if err != nil {
		t.Fatal(err)
	}
	users = next
	read(true, 2)
	read(true, 2)
	tokens.good = false
	read(false, 3)
	ctx = incoming.NewContext(context.Background(), metadata.Pairs("token", "x"))
	read(false, 4)
	tokens.good = true
	read(true, 5)
}

// Ensure that refused calls ask the leader for at most so many at once, each for a bounded time, and that one host cannot take
// the room of the others.
func TestControl_catchUp_bounded(t *testing.T) {
	m := machine(t)
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		c := control(t, m, func(o *access.Options) {
			o.CatchUp = func(ctx context.Context) error {
				asked.Add(1)
				<-ctx.Done() // there is no leader
				return ctx.Err()
			}
		})
		const hosts, callsOfHost = 10, 100
		refused := make(chan error, hosts*callsOfHost)
		bad := metadata.NewIncomingContext(context.Background(), metadata.Pairs("token", "bad"))
		for host := range hosts {
			from := peer.NewContext(bad, &peer.Peer{Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, byte(host)), Port: 7}})
			for range callsOfHost {
				go func() { refused <- c.User(from) }()
			}
			synctest.Wait()
			if n, want := c.CatchingUp(), min(16*(host+1), 64); n != want || int64(n) != asked.Load() {
				t.Errorf("%d calls of %d hosts wait, %d asked, want %d", n, host+1, asked.Load(), want)
			}
		}
		for range hosts * callsOfHost {
			if err := <-refused; !errors.Is(err, login.ErrInvalidToken) {
				t.Errorf("got %v", err)
			}
		}
		if n := c.CatchingUp(); n != 0 {
			t.Errorf("%d calls wait still", n)
		}
	})
}

// Ensure that a put which its member took for no user's, because it did not know yet that authentication was enabled, is
// proposed in its caller's name once it was rejected; and that a caller without credentials is told that no user was named.
func TestControl_Propose_enabledMeanwhile(t *testing.T) {
	leaf := &x509.Certificate{Subject: pkix.Name{CommonName: "root"}}
	root := peer.NewContext(context.Background(), &peer.Peer{AuthInfo: credentials.TLSInfo{
		State: tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{leaf}}},
	}})
	for _, row := range []struct {
		name string
		ctx  context.Context
		want error
	}{{"root", root, nil}, {"nobody", context.Background(), auth.ErrUserEmpty}} {
		m := machine(t)
		known := auth.New() // by this member, which lags
		c := control(t, m, func(o *access.Options) {
			o.Certificates, o.Users = true, func() *auth.State { return known }
		})
		var names []string
		command := kv.Command{Put: &kv.PutOp{Key: []byte("k")}}
		_, err := c.Propose(row.ctx, &command, func(_ context.Context, command *kv.Command) (kv.Result, error) {
			known = m.Users() // it has caught up when it applies the command
			names = append(names, command.By.User)
			return kv.Result{Err: m.Permit(command)}, m.Permit(command)
		})
		if !errors.Is(err, row.want) || row.want == nil && err != nil || names[0] != "" || len(names) > 2 {
			t.Errorf("%s: got %v, proposed in the names %q", row.name, err, names)
		}
	}
}
