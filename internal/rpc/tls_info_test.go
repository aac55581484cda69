package rpc_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/quorate/quorate/internal/base/tlsconn"
	"github.com/quorate/quorate/internal/rpc"
	"github.com/quorate/quorate/internal/rpc/portmux"
)

// hiddenTLS is a listener whose connections are encrypted below the net.Conn that they show, as those of package certs.
type hiddenTLS struct {
	net.Listener
	config *tls.Config
}

func (l hiddenTLS) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &hiddenConn{tls.Server(raw, l.config)}, nil
}

type hiddenConn struct{ secured *tls.Conn }

func (c *hiddenConn) Read(p []byte) (int, error)         { return c.secured.Read(p) }
func (c *hiddenConn) Write(p []byte) (int, error)        { return c.secured.Write(p) }
func (c *hiddenConn) Close() error                       { return c.secured.Close() }
func (c *hiddenConn) LocalAddr() net.Addr                { return c.secured.LocalAddr() }
func (c *hiddenConn) RemoteAddr() net.Addr               { return c.secured.RemoteAddr() }
func (c *hiddenConn) SetDeadline(t time.Time) error      { return c.secured.SetDeadline(t) }
func (c *hiddenConn) SetReadDeadline(t time.Time) error  { return c.secured.SetReadDeadline(t) }
func (c *hiddenConn) SetWriteDeadline(t time.Time) error { return c.secured.SetWriteDeadline(t) }
func (c *hiddenConn) TLS() (*tls.Conn, error)            { return c.secured, c.secured.Handshake() }

func makeCert(t testing.TB, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// Ensure that a handler sees the certificates of a client although TLS ends below gRPC and HTTP shares the port.
func TestMux_clientCertificates(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	services := rpc.New(rpc.Options{Member: newMachineBackend(t)})
	seen := make(chan context.Context, 1)
	server := services.NewGRPCServer(grpc.ChainUnaryInterceptor(
		func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			seen <- ctx
			return handle(ctx, request)
		}))
	services.Register(server)
	mux := portmux.New(hiddenTLS{l, &tls.Config{Certificates: []tls.Certificate{makeCert(t, "server")},
		ClientAuth: tls.RequireAnyClientCert, NextProtos: []string{"h2"}}})
	ended := make(chan error, 2)
	go func() { ended <- mux.Serve() }()
	go func() { ended <- server.Serve(mux.GRPC()) }()
	t.Cleanup(func() {
		services.Close()
		server.Stop()
		_ = mux.Close()
		<-ended
		<-ended
	})
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
		InsecureSkipVerify: true, Certificates: []tls.Certificate{makeCert(t, "alice")}})))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := pb.NewMaintenanceClient(conn).Status(waitContext(t), &pb.StatusRequest{}); err != nil {
		t.Fatal(err)
	}
	ctx := <-seen
	state, ok := tlsconn.StateOf(ctx)
	if !ok || len(state.PeerCertificates) != 1 || state.PeerCertificates[0].Subject.CommonName != "alice" {
		t.Errorf("a handler sees %+v, want the certificate of alice", state)
	}
	below := tlsconn.ConnOf(ctx)
	if below == nil || below.Context().Err() != nil {
		t.Fatal("a handler does not see the open connection of its call")
	}
	_ = below.Close()
	if below.Context().Err() == nil {
		t.Error("a closed connection counts as open")
	}
}
