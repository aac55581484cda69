package rpc

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/metadata"

	"github.com/quorate/quorate/internal/rpc/front"
)

// hotMethods are the methods that hotKV serves, if the member can.
func (s *Services) hotMethods() map[string]front.Hot {
	member, ok := s.options.Member.(prompt)
	if !ok {
		return nil
	}
	h := &hotKV{kvService: s.kv, member: member,
		put: s.gate.Method(pb.KV_Put_FullMethodName), txn: s.gate.Method(pb.KV_Txn_FullMethodName),
		oneRead: s.gate.Method(pb.KV_Range_FullMethodName)}
	return map[string]front.Hot{pb.KV_Put_FullMethodName: h.servePut, pb.KV_Txn_FullMethodName: h.serveTxn,
		pb.KV_Range_FullMethodName: h.serveRange}
}

// needsNoGoroutine reports whether calls with the metadata of ctx do not ask for their route, and do not take long to see whose
// they are.
func (s *Services) needsNoGoroutine(ctx context.Context) bool {
	return len(metadata.ValueFromIncomingContext(ctx, routeKey)) == 0 && !s.access.TakesLong(ctx)
}
