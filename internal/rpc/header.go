package rpc

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/quorate/quorate/internal/kv"
)

// header is etcd's ResponseHeader: cluster_id=1 member_id=2 revision=3 raft_term=4.
type header struct {
	cluster  uint64
	member   uint64
	revision kv.Revision
	term     uint64
}

func (h *header) sizeWire() int {
	return sizeUint(h.cluster) + sizeUint(h.member) + sizeUint(uint64(h.revision)) + sizeUint(h.term)
}

func (h *header) appendWire(dst []byte) []byte {
	dst = appendUint(dst, 1, h.cluster)
	dst = appendUint(dst, 2, h.member)
	dst = appendUint(dst, 3, uint64(h.revision))
	return appendUint(dst, 4, h.term)
}

// message is the header for the responses that go through the protobuf library.
func (h header) message() *pb.ResponseHeader {
	return &pb.ResponseHeader{ClusterId: h.cluster, MemberId: h.member, Revision: int64(h.revision), RaftTerm: h.term}
}

// headerAt is this member's header for an answer given at revision.
func (s *Services) headerAt(revision kv.Revision) header {
	return header{
		cluster:  s.cluster,
		member:   s.self,
		revision: revision,
		term:     uint64(s.options.Member.Term()),
	}
}

// headerNow is this member's header at the store's current revision.
func (s *Services) headerNow() header { return s.headerAt(s.revision()) }

// revision is the store's current revision.
func (s *Services) revision() kv.Revision {
	machine, release := s.options.Member.Machine()
	defer release()
	return machine.Store().Revision()
}
