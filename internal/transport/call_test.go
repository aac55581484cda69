package transport_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/transport"
)

// answering makes a member answer calls: "echo" gives the body back, "who" names the caller, "fail" fails.
func answering(m *member) *member {
	m.call = func(ctx context.Context, method string, body []byte) ([]byte, error) {
		switch method {
		case "echo":
			return body, nil
		case "who":
			return []byte(transport.CallerClaim(ctx).Member.String()), nil
		case "wait":
			<-ctx.Done()
			return nil, ctx.Err()
		case "refuse":
			return nil, status.Error(codes.NotFound, "no such lease")
		}
		return nil, errors.New("unknown method " + method)
	}
	return m
}

func TestTransport_Call(t *testing.T) {
	a, b := start(t, 1), answering(start(t, 2))
	a.SetPeers([]consensus.Member{{ID: 2, PeerURLs: []string{b.url}}})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	// The first call waits for the first attempt to connect; no other waiting is needed.
	big := bytes.Repeat([]byte("x"), 5<<20)
	if got, err := a.Call(ctx, 2, "echo", big, mostAnswer); err != nil || !bytes.Equal(got, big) {
		t.Errorf("echo: got %d bytes and %v, want %d", len(got), err, len(big))
	}
	if got, err := a.Call(ctx, 2, "echo", nil, mostAnswer); err != nil || len(got) != 0 {
		t.Errorf("empty echo: got %q, %v", got, err)
	}
	if got, err := a.Call(ctx, 2, "who", nil, mostAnswer); err != nil || string(got) != "1" {
		t.Errorf("who: got %q, %v, want 1", got, err)
	}
	_, err := a.Call(ctx, 2, "refuse", nil, mostAnswer)
	if s := status.Convert(err); s.Code() != codes.NotFound || s.Message() != "no such lease" {
		t.Errorf("refuse: got %v, want the handler's own code and text", err)
	}
	if _, err = a.Call(ctx, 2, "nonsense", nil, mostAnswer); status.Code(err) != codes.Unknown {
		t.Errorf("nonsense: got %v, want %s", err, codes.Unknown)
	}
	if _, err = a.Call(ctx, 7, "echo", nil, mostAnswer); !errors.Is(err, transport.ErrUnknownPeer) {
		t.Errorf("unknown peer: got %v, want %v", err, transport.ErrUnknownPeer)
	}
	brief, cancelBrief := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancelBrief()
	if _, err = a.Call(brief, 2, "wait", nil, mostAnswer); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("wait: got %v, want %s", err, codes.DeadlineExceeded)
	}
}

func TestTransport_Call_unreachablePeer(t *testing.T) {
	a := start(t, 1)
	a.SetPeers([]consensus.Member{{ID: 2, PeerURLs: []string{"http://127.0.0.1:1"}}})
	if _, err := a.Call(context.Background(), 2, "echo", nil, mostAnswer); status.Code(err) != codes.Unavailable {
		t.Errorf("got %v, want %s", err, codes.Unavailable)
	}
}

func TestTransport_Call_endsWithClose(t *testing.T) {
	a, b := start(t, 1), start(t, 2)
	entered := make(chan struct{})
	b.call = func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
		close(entered)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	acquaint(a, b)
	failed := make(chan error, 1)
	go func() {
		_, err := a.Call(context.Background(), 2, "wait", nil, mostAnswer)
		failed <- err
	}()
	receive(t, entered, "the call")
	_ = b.Close()
	if err := receive(t, failed, "the end of the call"); status.Code(err) != codes.Unavailable {
		t.Errorf("got %v, want %s", err, codes.Unavailable)
	}
}

func TestCallURL_nonMember(t *testing.T) {
	b := answering(start(t, 2, func(o *transport.Options) { o.OpenMethods = []string{"who"} }))
	ctx := context.Background()
	got, err := transport.CallURL(ctx, transport.Options{}, b.url, "who", nil, mostAnswer)
	if err != nil || string(got) != "0" {
		t.Errorf("got %q, %v, want 0 for somebody who is no member yet", got, err)
	}
	_, err = transport.CallURL(ctx, transport.Options{}, b.url, "echo", nil, mostAnswer)
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "anonymous") {
		t.Errorf("a call that is for members: got %v, want a refusal", err)
	}
	foreign := start(t, 1, func(o *transport.Options) { o.Self.Cluster = 0xc2 })
	_, err = foreign.CallURL(ctx, b.url, "who", nil, mostAnswer)
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "foreign-cluster") {
		t.Errorf("got %v, want a refusal because of the cluster", err)
	}
	if _, err := transport.CallURL(ctx, transport.Options{}, "http://127.0.0.1:1", "who", nil, mostAnswer); err == nil {
		t.Error("nobody listens there, want an error")
	}
}

func TestTransport_tls(t *testing.T) {
	server, client := selfSigned(t)
	secure := func(o *transport.Options) { o.TLS.Server, o.TLS.Client = server, client }
	var members []*member
	for id := consensus.MemberID(1); id <= 2; id++ {
		l, err := transport.Listen("https://127.0.0.1:0", server)
		if err != nil {
			t.Fatal(err)
		}
		m := startOn(t, id, l, secure)
		m.url = "https://" + l.Addr().String()
		members = append(members, answering(m))
	}
	acquaint(members...)
	members[0].Send([]consensus.Message{heartbeat(1, 2, 1)})
	members[1].next()
	got, err := members[0].CallURL(context.Background(), members[1].url, "who", nil, mostAnswer)
	if err != nil || string(got) != "1" {
		t.Errorf("got %q, %v, want 1", got, err)
	}
}

func selfSigned(t *testing.T) (server, client *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}},
		&tls.Config{RootCAs: roots}
}

// Ensure that requests which any process may make are small, and that others are not bounded by that.
func TestTransport_Call_openIsSmall(t *testing.T) {
	a := start(t, 1)
	b := answering(start(t, 2, func(o *transport.Options) { o.OpenMethods = []string{"who"} }))
	acquaint(a, b)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, c := range []struct {
		method string
		bytes  int
		want   codes.Code
	}{{"who", 64 << 10, codes.OK}, {"who", 64<<10 + 1, codes.InvalidArgument}, {"echo", 1 << 20, codes.OK}} {
		if _, err := a.Call(ctx, 2, c.method, make([]byte, c.bytes), mostAnswer); status.Code(err) != c.want {
			t.Errorf("%s with %d bytes: got %v, want %v", c.method, c.bytes, err, c.want)
		}
	}
}
