package transport

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/quorate/quorate/internal/consensus"
)

// NoPeerPortError says that what answers at a peer URL is no peer port. The URL is wrong, whichever member it is for.
type NoPeerPortError struct {
	Text string
	// Cluster and Member say whose client port it is; zero: it is none, or does not tell.
	Cluster consensus.ClusterID
	Member  consensus.MemberID
}

func (e *NoPeerPortError) Error() string { return e.Text }

// probePatience bounds each look at what a process speaks.
const probePatience = time.Second

// Explain completes the error of a call to a peer URL: if what answers there is no peer port, it returns a *NoPeerPortError,
// which names the mistake, and else the error itself. Only the TLS and time options are used.
func Explain(ctx context.Context, o Options, url string, failed error) error {
	o.setDefaults()
	a, err := parseURL(url)
	if err != nil || failed == nil || ctx.Err() != nil || errors.Is(failed, ErrLargeAnswer) {
		return failed
	}
	switch status.Code(failed) {
	case codes.Unimplemented:
		if other := askClientPort(ctx, &o, url); other != nil {
			return other
		}
	case codes.Unavailable, codes.Unknown, codes.Internal, codes.DeadlineExceeded:
		ctx, cancel := context.WithTimeout(ctx, probePatience)
		defer cancel()
		if text := speaks(ctx, a); text != "" {
			return &NoPeerPortError{Text: text}
		}
	}
	return failed
}

// methodStatus is the call of etcd's API that tells a server's ids, and asks for no login.
const methodStatus = "/etcdserverpb.Maintenance/Status"

// maxStatusBytes bounds its answer: some numbers, and what is wrong with the server.
const maxStatusBytes = 64 << 10

// askClientPort finds out whose client port a gRPC server is that knows no peers; nil if that is not known any more.
func askClientPort(ctx context.Context, o *Options, url string) *NoPeerPortError {
	conn, err := newCallConn(o, url)
	if err != nil {
		return nil
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	var answer inFrame
	err = conn.Invoke(ctx, methodStatus, &outFrame{plain: []byte{}}, &answer, grpc.CallContentSubtype("proto"),
		grpc.MaxCallRecvMsgSize(maxStatusBytes))
	switch status.Code(err) {
	case codes.OK:
		if cluster, member := idsIn(answer.bytes); cluster != 0 && member != 0 {
			e := &NoPeerPortError{Cluster: consensus.ClusterID(cluster), Member: consensus.MemberID(member)}
			e.Text = fmt.Sprintf("that is a client port of member %v of cluster %v, not a peer port", e.Member, e.Cluster)
			return e
		}
	case codes.Unauthenticated, codes.PermissionDenied:
		return &NoPeerPortError{Text: "that is a client port, which asks for a login, not a peer port"}
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return nil
	}
	return &NoPeerPortError{Text: "another gRPC server answers there, which knows no members: that is not a peer port"}
}

// idsIn reads the cluster's and the member's id from the header that each answer of etcd's API begins with.
func idsIn(answer []byte) (cluster, member uint64) {
	header := field(answer, 1)
	number := func(of protowire.Number) uint64 {
		for rest := header; len(rest) > 0; {
			at, kind, n := protowire.ConsumeTag(rest)
			if n < 0 {
				return 0
			}
			if at == of && kind == protowire.VarintType {
				value, _ := protowire.ConsumeVarint(rest[n:])
				return value
			}
			m := protowire.ConsumeFieldValue(at, kind, rest[n:])
			if m < 0 {
				return 0
			}
			rest = rest[n+m:]
		}
		return 0
	}
	return number(1), number(2)
}

// field returns the first field of bytes with a number; nil if there is none.
func field(src []byte, of protowire.Number) []byte {
	at, kind, n := protowire.ConsumeTag(src)
	if n < 0 || at != of || kind != protowire.BytesType {
		return nil
	}
	value, _ := protowire.ConsumeBytes(src[n:])
	return value
}

// speaks finds out what a process speaks that does not speak as a member does; empty if that can not be told.
func speaks(ctx context.Context, a address) string {
	const https, http = "what answers there asks for TLS, and the URL does not: write https:// (unixs://)",
		"what answers there has no TLS, and the URL asks for it: write http:// (unix://)"
	answer, encrypted := greetTLS(ctx, a)
	switch {
	case encrypted && !a.secure:
		return https
	case encrypted:
		return "" // it may be the member, with a certificate that is not accepted
	case a.secure && (len(answer) > 0 || greetPlainly(ctx, a) != nil):
		return http
	case isHTTP(answer), !a.secure && isHTTP(greetPlainly(ctx, a)):
		return "a web server answers there, that is not a peer port"
	}
	return ""
}

func isHTTP(answer []byte) bool { return bytes.HasPrefix(answer, []byte("HTTP/")) }

// greetTLS begins a handshake, and returns whether the other side took part in it, or else how its answer begins.
func greetTLS(ctx context.Context, a address) (answer []byte, encrypted bool) {
	conn := probe(ctx, a)
	if conn == nil {
		return nil, false
	}
	defer func() { _ = conn.Close() }()
	// Nothing is sent to that process, and nothing of it is believed: it only matters what it speaks.
	err := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}).HandshakeContext(ctx)
	var header tls.RecordHeaderError
	var alert tls.AlertError
	switch {
	case err == nil, errors.As(err, &alert):
		return nil, true
	case errors.As(err, &header):
		return header.RecordHeader[:], false
	}
	var remote *net.OpError
	return nil, errors.As(err, &remote) && remote.Op == "remote error"
}

// greetPlainly returns how the answer begins to what a browser would say, or to what gRPC says.
func greetPlainly(ctx context.Context, a address) []byte {
	for _, greeting := range []string{
		"GET / HTTP/1.1\r\nHost: peer\r\nConnection: close\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
	} {
		conn := probe(ctx, a)
		if conn == nil {
			return nil
		}
		answer := make([]byte, 5)
		_, err := io.WriteString(conn, greeting)
		if err == nil {
			_, err = io.ReadFull(conn, answer)
		}
		_ = conn.Close()
		if err == nil {
			return answer
		}
	}
	return nil
}

func probe(ctx context.Context, a address) net.Conn {
	var d net.Dialer
	conn, err := d.DialContext(ctx, a.network, a.target)
	if err != nil {
		return nil
	}
	if until, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(until)
	}
	return conn
}
