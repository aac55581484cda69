package transport_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/transport"
)

// plainCodec hands bytes over as they are.
type plainCodec struct{}

func (plainCodec) Name() string { return "plain" }

func (plainCodec) Marshal(v any) ([]byte, error) { return v.([]byte), nil }

func (plainCodec) Unmarshal([]byte, any) error { return nil }

// clientPort answers as the client port of member 9 of cluster 7 does to a client that asks for its status.
func clientPort(t *testing.T) string {
	t.Helper()
	// header (field 1) of cluster_id 7, member_id 9
	const answer = "\x0a\x04\x08\x07\x10\x09"
	server := grpc.NewServer(grpc.ForceServerCodec(plainCodec{}), grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
		if method, _ := grpc.MethodFromServerStream(s); method != "/etcdserverpb.Maintenance/Status" {
			return status.Error(codes.Unimplemented, "unknown method "+method)
		}
		return s.SendMsg([]byte(answer))
	}))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	return l.Addr().String()
}

// Ensure that whatever answers at a peer URL and is no peer port is called by its name, and is neither the member nor a
// process that proves that the member is not there.
func TestFind_namesTheMistake(t *testing.T) {
	member := strings.TrimPrefix(start(t, 2).url, "http://")
	encrypted := httptest.NewTLSServer(http.NotFoundHandler())
	defer encrypted.Close()
	trusting := transport.Options{TLS: transport.TLS{Client: &tls.Config{RootCAs: nil}}}
	for _, row := range []struct {
		name, url string
		options   transport.Options
		want      string
	}{
		{"a client port", "http://" + clientPort(t), transport.Options{}, "client port of member 9 of cluster 7"},
		{"TLS where the URL has none", strings.Replace(encrypted.URL, "https", "http", 1), transport.Options{}, "write https://"},
		{"no TLS where the URL has it", "https://" + member, trusting, "write http://"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		got, err := transport.Find(ctx, row.options, identity.Sought{Cluster: cluster, Member: 2}, row.url)
		cancel()
		var other *transport.NoPeerPortError
		if got != transport.NoPeerPort || !errors.As(err, &other) || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: got %d, %v, want %q", row.name, got, err, row.want)
		}
		if row.want == "client port of member 9 of cluster 7" && (other == nil || other.Member != 9 ||
			other.Cluster != consensus.ClusterID(7)) {
			t.Errorf("%s: it is %+v", row.name, other)
		}
	}
	// A certificate that is not accepted may be the member's.
	got, err := transport.Find(t.Context(), trusting, identity.Sought{Cluster: cluster, Member: 2}, encrypted.URL)
	if got != transport.Unsure || err == nil {
		t.Errorf("a certificate of an unknown authority: got %d, %v", got, err)
	}
}
