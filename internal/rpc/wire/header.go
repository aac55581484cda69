package wire

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/quorate/quorate/internal/kv"
)

// Header is etcd's ResponseHeader: cluster_id=1 member_id=2 revision=3 raft_term=4.
type Header struct {
	Cluster  uint64
	Member   uint64
	Revision kv.Revision
	Term     uint64
}

// SizeWire is the length of its encoding.
func (h *Header) SizeWire() int {
	return sizeUint(h.Cluster) + sizeUint(h.Member) + sizeUint(uint64(h.Revision)) + sizeUint(h.Term)
}

// AppendWire writes its encoding.
func (h *Header) AppendWire(dst []byte) []byte {
	dst = appendUint(dst, 1, h.Cluster)
	dst = appendUint(dst, 2, h.Member)
	dst = appendUint(dst, 3, uint64(h.Revision))
	return appendUint(dst, 4, h.Term)
}

// Message is the header for the responses that go through the protobuf library.
func (h Header) Message() *pb.ResponseHeader {
	return &pb.ResponseHeader{ClusterId: h.Cluster, MemberId: h.Member, Revision: int64(h.Revision), RaftTerm: h.Term}
}
