package ctl_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// fakeMember serves as much of etcd's API as the commands use: a history of events, leases without deadlines, a list
// of members.
type fakeMember struct {
	pb.UnimplementedKVServer
	pb.UnimplementedWatchServer
	pb.UnimplementedLeaseServer
	pb.UnimplementedClusterServer
	pb.UnimplementedMaintenanceServer
	pb.UnimplementedAuthServer

	mu            sync.Mutex
	id            uint64
	cluster       uint64
	term          uint64
	address       string
	events        []*mvccpb.Event // one per revision, from 2 on
	compacted     int64
	leases        map[int64]int64
	members       []*pb.Member
	leader        uint64
	troubles      []string      // that Status reports
	denied        bool          // puts
	loginPatience time.Duration // that the last login came with
	damaged       bool          // snapshots are torn
	mute          bool          // KV requests are not answered
	learner       bool
	cutOff        bool     // it finds no quorum
	routes        []string // of the next puts whose clients ask for it
	full          int      // puts that are refused after so many
}

const fakeID = 0xa1

func startFake(t *testing.T) *fakeMember {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeMember{id: fakeID, cluster: 1, term: 7, address: l.Addr().String(), leases: map[int64]int64{}, leader: fakeID}
	f.members = []*pb.Member{{ID: fakeID, Name: "m1", PeerURLs: []string{"http://127.0.0.1:2380"},
		ClientURLs: []string{"http://" + f.address}}}
	server := f.server()
	go server.Serve(l)
	t.Cleanup(server.Stop)
	return f
}

// server is one that answers as this member.
func (f *fakeMember) server() *grpc.Server {
	server := grpc.NewServer()
	pb.RegisterKVServer(server, f)
	pb.RegisterWatchServer(server, f)
	pb.RegisterLeaseServer(server, f)
	pb.RegisterClusterServer(server, f)
	pb.RegisterMaintenanceServer(server, f)
	pb.RegisterAuthServer(server, f)
	healthpb.RegisterHealthServer(server, fakeHealth{of: f})
	return server
}

func (f *fakeMember) header() *pb.ResponseHeader {
	return &pb.ResponseHeader{ClusterId: f.cluster, MemberId: f.id, Revision: int64(len(f.events)) + 1, RaftTerm: f.term}
}

// at returns the keys in a range as of a revision, in the order in which they were first written.
func (f *fakeMember) at(revision int64, key, end []byte) []*mvccpb.KeyValue {
	var out []*mvccpb.KeyValue
	for i, e := range f.events {
		if int64(i)+2 > revision || !inRange(e.Kv.Key, key, end) {
			continue
		}
		var kept []*mvccpb.KeyValue
		for _, kv := range out {
			if !bytes.Equal(kv.Key, e.Kv.Key) {
				kept = append(kept, kv)
			}
		}
		if out = kept; e.Type == mvccpb.Event_PUT {
			out = append(out, e.Kv)
		}
	}
	return out
}

func inRange(k, key, end []byte) bool {
	switch {
	case len(end) == 0:
		return bytes.Equal(k, key)
	case len(end) == 1 && end[0] == 0:
		return bytes.Compare(k, key) >= 0
	}
	return bytes.Compare(k, key) >= 0 && bytes.Compare(k, end) < 0
}

func (f *fakeMember) Range(ctx context.Context, r *pb.RangeRequest) (*pb.RangeResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mute {
		return nil, status.FromContextError(context.DeadlineExceeded).Err() // as after the time that the caller gave
	}
	revision := r.Revision
	if revision == 0 {
		revision = int64(len(f.events)) + 1
	}
	if revision < f.compacted {
		return nil, rpctypes.ErrGRPCCompacted
	}
	kvs := f.at(revision, r.Key, r.RangeEnd)
	answer := &pb.RangeResponse{Header: f.header(), Count: int64(len(kvs))}
	if r.Limit > 0 && int64(len(kvs)) > r.Limit {
		kvs, answer.More = kvs[:r.Limit], true
	}
	if !r.CountOnly {
		answer.Kvs = kvs
	}
	return answer, nil
}

func (f *fakeMember) Put(ctx context.Context, r *pb.PutRequest) (*pb.PutResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.denied {
		return nil, rpctypes.ErrGRPCPermissionDenied
	}
	if f.full > 0 && len(f.events) >= f.full {
		return nil, rpctypes.ErrGRPCNoSpace
	}
	if asked, _ := metadata.FromIncomingContext(ctx); len(f.routes) > 0 && slices.Equal(asked["quorate-route"], []string{"?"}) {
		if err := grpc.SetHeader(ctx, metadata.Pairs("quorate-route", f.routes[0])); err != nil {
			return nil, err
		}
		f.routes = f.routes[1:]
	}
	if _, exists := f.leases[r.Lease]; r.Lease != 0 && !exists {
		return nil, rpctypes.ErrGRPCLeaseNotFound
	}
	revision := int64(len(f.events)) + 2
	f.events = append(f.events, &mvccpb.Event{Kv: &mvccpb.KeyValue{Key: r.Key, Value: r.Value, Lease: r.Lease,
		CreateRevision: revision, ModRevision: revision, Version: 1}})
	return &pb.PutResponse{Header: f.header()}, nil
}

func (f *fakeMember) DeleteRange(_ context.Context, r *pb.DeleteRangeRequest) (*pb.DeleteRangeResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	kvs := f.at(int64(len(f.events))+1, r.Key, r.RangeEnd)
	for _, kv := range kvs {
		f.events = append(f.events, &mvccpb.Event{Type: mvccpb.Event_DELETE,
			Kv: &mvccpb.KeyValue{Key: kv.Key, ModRevision: int64(len(f.events)) + 2}, PrevKv: kv})
	}
	return &pb.DeleteRangeResponse{Header: f.header(), Deleted: int64(len(kvs))}, nil
}

func (f *fakeMember) Compact(_ context.Context, r *pb.CompactionRequest) (*pb.CompactionResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.Revision > int64(len(f.events))+1 {
		return nil, rpctypes.ErrGRPCFutureRev
	}
	f.compacted = r.Revision
	return &pb.CompactionResponse{Header: f.header()}, nil
}

// Watch answers each creation with the past and is quiet afterwards.
func (f *fakeMember) Watch(stream pb.Watch_WatchServer) error {
	var id int64
	for {
		r, err := stream.Recv()
		if err != nil {
			return err
		}
		create := r.GetCreateRequest()
		if create == nil {
			continue
		}
		f.mu.Lock()
		answers := []*pb.WatchResponse{{Header: f.header(), WatchId: id, Created: true}}
		if create.StartRevision > 0 && create.StartRevision < f.compacted {
			answers = append(answers, &pb.WatchResponse{Header: f.header(), WatchId: id, Canceled: true,
				CompactRevision: f.compacted})
		} else if create.StartRevision > 0 {
			past := &pb.WatchResponse{Header: f.header(), WatchId: id}
			for _, e := range f.events {
				if e.Kv.ModRevision >= create.StartRevision && inRange(e.Kv.Key, create.Key, create.RangeEnd) {
					past.Events = append(past.Events, e)
				}
			}
			answers = append(answers, past)
		}
		f.mu.Unlock()
		id++
		for _, a := range answers {
			if err := stream.Send(a); err != nil {
				return err
			}
		}
	}
}

func (f *fakeMember) LeaseGrant(_ context.Context, r *pb.LeaseGrantRequest) (*pb.LeaseGrantResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := int64(0xbeef) + int64(len(f.leases))
	f.leases[id] = r.TTL
	return &pb.LeaseGrantResponse{Header: f.header(), ID: id, TTL: r.TTL}, nil
}

func (f *fakeMember) LeaseRevoke(_ context.Context, r *pb.LeaseRevokeRequest) (*pb.LeaseRevokeResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, exists := f.leases[r.ID]; !exists {
		return nil, rpctypes.ErrGRPCLeaseNotFound
	}
	delete(f.leases, r.ID)
	return &pb.LeaseRevokeResponse{Header: f.header()}, nil
}

// LeaseKeepAlive renews once; afterwards the lease has expired.
func (f *fakeMember) LeaseKeepAlive(stream pb.Lease_LeaseKeepAliveServer) error {
	for {
		r, err := stream.Recv()
		if err != nil {
			return err
		}
		f.mu.Lock()
		ttl := f.leases[r.ID]
		answer := &pb.LeaseKeepAliveResponse{Header: f.header(), ID: r.ID, TTL: ttl}
		delete(f.leases, r.ID)
		f.mu.Unlock()
		if err := stream.Send(answer); err != nil {
			return err
		}
	}
}

func (f *fakeMember) LeaseTimeToLive(_ context.Context, r *pb.LeaseTimeToLiveRequest) (
	*pb.LeaseTimeToLiveResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	ttl, exists := f.leases[r.ID]
	if !exists {
		return &pb.LeaseTimeToLiveResponse{Header: f.header(), ID: r.ID, TTL: -1}, nil
	}
	return &pb.LeaseTimeToLiveResponse{Header: f.header(), ID: r.ID, TTL: ttl, GrantedTTL: ttl,
		Keys: [][]byte{[]byte("k")}}, nil
}

func (f *fakeMember) LeaseLeases(context.Context, *pb.LeaseLeasesRequest) (*pb.LeaseLeasesResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	answer := &pb.LeaseLeasesResponse{Header: f.header()}
	for id := range f.leases {
		answer.Leases = append(answer.Leases, &pb.LeaseStatus{ID: id})
	}
	return answer, nil
}

func (f *fakeMember) MemberList(_ context.Context, r *pb.MemberListRequest) (*pb.MemberListResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cutOff && r.Linearizable {
		return nil, rpctypes.ErrGRPCTimeout
	}
	return &pb.MemberListResponse{Header: f.header(), Members: f.members}, nil
}

func (f *fakeMember) MemberAdd(_ context.Context, r *pb.MemberAddRequest) (*pb.MemberAddResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := &pb.Member{ID: 0xa1 + uint64(len(f.members)), PeerURLs: r.PeerURLs, IsLearner: r.IsLearner}
	f.members = append(f.members, m)
	return &pb.MemberAddResponse{Header: f.header(), Member: m, Members: f.members}, nil
}

func (f *fakeMember) MemberRemove(_ context.Context, r *pb.MemberRemoveRequest) (*pb.MemberRemoveResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var kept []*pb.Member
	for _, m := range f.members {
		if m.ID != r.ID {
			kept = append(kept, m)
		}
	}
	f.members = kept
	return &pb.MemberRemoveResponse{Header: f.header(), Members: kept}, nil
}

func (f *fakeMember) MemberPromote(_ context.Context, r *pb.MemberPromoteRequest) (*pb.MemberPromoteResponse, error) {
	return nil, rpctypes.ErrGRPCMemberNotLearner
}

func (f *fakeMember) MemberUpdate(_ context.Context, r *pb.MemberUpdateRequest) (*pb.MemberUpdateResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.members {
		if m.ID == r.ID {
			m.PeerURLs = r.PeerURLs
		}
	}
	return &pb.MemberUpdateResponse{Header: f.header(), Members: f.members}, nil
}

func (f *fakeMember) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &pb.StatusResponse{Header: f.header(), Version: "3.7.1", DbSize: 2048, Leader: f.leader, RaftIndex: 12,
		RaftAppliedIndex: 11, RaftTerm: f.term, IsLearner: f.learner, Errors: f.troubles}, nil
}

func (f *fakeMember) Snapshot(_ *pb.SnapshotRequest, stream pb.Maintenance_SnapshotServer) error {
	content := bytes.Repeat([]byte("quorate!"), 10_000)
	sum := sha256.Sum256(content)
	if f.damaged {
		content[17]++
	}
	for len(content) > 0 {
		n := min(len(content), 32<<10)
		if err := stream.Send(&pb.SnapshotResponse{Header: f.header(), Blob: content[:n],
			RemainingBytes: uint64(len(content) - n), Version: "3.7.0"}); err != nil {
			return err
		}
		content = content[n:]
	}
	return stream.Send(&pb.SnapshotResponse{Header: f.header(), Blob: sum[:]})
}
