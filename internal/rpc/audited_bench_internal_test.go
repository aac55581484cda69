package rpc

import (
	"context"
	"net"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/peer"

	"github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/internal/audit/trail"
	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/rpc/access"
)

// discard is an output of records.
type discard struct{}

// Write implements trail.Port.
func (discard) Write(lines []byte) (int, error) { return len(lines), nil }

// audited is the part of a member that an audit asks.
type auditedMember struct {
	Backend
	state *apply.Audit
}

// Audit implements Backend.
func (m *auditedMember) Audit() *apply.Audit { return m.state }

// newAudited is an audit with a policy, whose records go nowhere; without a policy nothing is recorded.
func newAudited(policy string) *shared {
	m := &auditedMember{state: &apply.Audit{}}
	if policy != "" {
		m.state = &apply.Audit{Version: 1, Policy: []byte(policy)}
	}
	s := &shared{options: Options{Member: m}}
	users := auth.New()
	s.access = access.New(access.Options{Users: func() *auth.State { return users }})
	records := trail.New(trail.Options{Member: 1, Bytes: 4 << 20, Clock: env.WallClock{},
		Sinks: []trail.SinkOptions{{Name: "none", Port: discard{}, From: trail.NewChain()}}})
	records.Run()
	s.audits.trail, s.audits.shared = records, s
	return s
}

// BenchmarkAudit measures what the audit adds to a put on the road without a goroutine, the writer of records included.
func BenchmarkAudit(b *testing.B) {
	for name, policy := range map[string]string{
		"no policy": "", "metadata": `{"rules": [{"level": "metadata"}]}`, "request": `{"rules": [{"level": "request"}]}`,
		"not this one": `{"rules": [{"level": "metadata", "prefixes": ["/x"]}]}`,
	} {
		b.Run(name, func(b *testing.B) {
			s := newAudited(policy)
			defer s.audits.trail.Close(0)
			ctx := peer.NewContext(context.Background(), &peer.Peer{Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 2}})
			request := new(putRequest)
			request.Op = kv.PutOp{Key: []byte("/registry/pods/default/web-7d4b9c"), Value: make([]byte, 256)}
			b.ReportAllocs()
			for b.Loop() {
				if !s.audits.free() {
					b.Fatal("not free")
				}
				r := s.audits.begin(ctx, pb.KV_Put_FullMethodName, audit.OpPut)
				if r != nil {
					r.describe(request)
					s.audits.end(ctx, r, 1234567, nil)
				}
			}
		})
	}
}
