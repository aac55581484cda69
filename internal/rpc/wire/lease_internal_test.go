package wire

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/internal/kv"
)

// leaseResponse is response for the Lease service.
func (r requests) leaseResponse(kind int, h Header) (Encoder, proto.Message) {
	switch kind {
	case 6:
		ours := &KeepAliveResponse{Header: h, ID: kv.LeaseID(r.number()), TTLSeconds: r.number()}
		return ours, &pb.LeaseKeepAliveResponse{Header: headerOf(h), ID: int64(ours.ID), TTL: ours.TTLSeconds}
	case 7:
		ours, message := &LeasesResponse{Header: h}, &pb.LeaseLeasesResponse{Header: headerOf(h)}
		for range r.IntN(5) {
			id := r.number()
			ours.IDs, message.Leases = append(ours.IDs, kv.LeaseID(id)), append(message.Leases, &pb.LeaseStatus{ID: id})
		}
		return ours, message
	default:
		ours := &TimeToLiveResponse{Header: h, ID: kv.LeaseID(r.number()), TTLSeconds: r.number(), GrantedTTLSeconds: r.number()}
		message := &pb.LeaseTimeToLiveResponse{Header: headerOf(h), ID: int64(ours.ID), TTL: ours.TTLSeconds,
			GrantedTTL: ours.GrantedTTLSeconds}
		for range r.IntN(5) {
			key := r.bytes()
			ours.Keys, message.Keys = append(ours.Keys, string(key)), append(message.Keys, key)
		}
		return ours, message
	}
}
