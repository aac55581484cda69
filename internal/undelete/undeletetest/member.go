package undeletetest

import (
	"bytes"
	"context"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/quoratepb"
)

// Member is a member. Its exported fields are set before it is asked.
type Member struct {
	pb.UnimplementedKVServer
	pb.UnimplementedClusterServer
	quoratepb.UnimplementedHistoryServer

	Address string
	Cluster uint64 // its id
	// MaxOps and MaxBytes bound transactions: etcd's "too many operations" and "request is too large".
	MaxOps, MaxBytes int
	PageKeys         int // of an answer of Deleted
	// Before is called before a transaction, and After when it was executed: their errors are the answer.
	Before, After func(*pb.TxnRequest) error
	Refusal       error                       // of History
	Times         *quoratepb.RevisionAtAnswer // to any time; nil: the member does not know the method
	Past          *quoratepb.VersionsAnswer   // to any key; nil: only the revisions
	// Changed are the answers of Changes: the page of a number is the token of the one before, a byte.
	Changed []*quoratepb.ChangesAnswer

	mu       sync.Mutex
	revision int64
	first    int64
	keys     map[string][]*mvccpb.KeyValue // versions, the oldest first; Version is 0 in a deletion
	Txns     []*pb.TxnRequest              // that were executed
}

// Start starts a member that is stopped with the test.
func Start(t testing.TB) *Member {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &Member{Address: l.Addr().String(), MaxOps: 128, MaxBytes: 1536 << 10, PageKeys: 7, revision: 1, first: 1,
		keys: map[string][]*mvccpb.KeyValue{}}
	server := grpc.NewServer(grpc.MaxRecvMsgSize(64 << 20))
	pb.RegisterKVServer(server, m)
	pb.RegisterClusterServer(server, m)
	quoratepb.RegisterHistoryServer(server, m)
	go server.Serve(l)
	t.Cleanup(server.Stop)
	return m
}

// Conn connects to the member.
func (m *Member) Conn(t testing.TB) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(m.Address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// MemberList implements pb.ClusterServer: it tells the id of the cluster, and no members.
func (m *Member) MemberList(context.Context, *pb.MemberListRequest) (*pb.MemberListResponse, error) {
	return &pb.MemberListResponse{Header: &pb.ResponseHeader{ClusterId: m.Cluster}}, nil
}

// Set writes a key.
func (m *Member) Set(key, value string, lease int64) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.revision++
	m.put(&pb.PutRequest{Key: []byte(key), Value: []byte(value), Lease: lease})
	return m.revision
}

// Drop deletes keys in one revision.
func (m *Member) Drop(keys ...string) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.revision++
	for _, key := range keys {
		m.keys[key] = append(m.keys[key], &mvccpb.KeyValue{Key: []byte(key), ModRevision: m.revision})
	}
	return m.revision
}

// Forget makes a revision the first that can be read, as a compaction does.
func (m *Member) Forget(revision int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.first = revision
}

// Value is the value of a key now, and its lease; false: it does not exist.
func (m *Member) Value(key string) (value string, lease int64, exists bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	kv := m.at([]byte(key), m.revision)
	return string(kv.GetValue()), kv.GetLease(), kv != nil
}

func (m *Member) put(r *pb.PutRequest) {
	kv := &mvccpb.KeyValue{Key: r.Key, Value: r.Value, Lease: r.Lease, CreateRevision: m.revision, ModRevision: m.revision,
		Version: 1}
	if before := m.at(r.Key, m.revision); before != nil {
		kv.CreateRevision, kv.Version = before.CreateRevision, before.Version+1
	}
	m.keys[string(r.Key)] = append(m.keys[string(r.Key)], kv)
}

// at is a key at a revision, nil if it did not exist.
func (m *Member) at(key []byte, revision int64) (found *mvccpb.KeyValue) {
	for _, kv := range m.keys[string(key)] {
		if kv.ModRevision <= revision {
			if found = kv; kv.Version == 0 {
				found = nil
			}
		}
	}
	return found
}

func (m *Member) header() *pb.ResponseHeader { return &pb.ResponseHeader{Revision: m.revision} }

func (m *Member) readable(revision int64) error {
	switch {
	case revision > m.revision:
		return rpctypes.ErrGRPCFutureRev
	case revision > 0 && revision < m.first:
		return rpctypes.ErrGRPCCompacted
	}
	return nil
}

// Range implements pb.KVServer.
func (m *Member) Range(_ context.Context, r *pb.RangeRequest) (*pb.RangeResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.read(r)
}

func (m *Member) read(r *pb.RangeRequest) (*pb.RangeResponse, error) {
	if err := m.readable(r.Revision); err != nil {
		return nil, err
	}
	revision := r.Revision
	if revision <= 0 {
		revision = m.revision
	}
	answer := &pb.RangeResponse{Header: m.header()}
	for _, key := range m.within(r.Key, r.RangeEnd) {
		if kv := m.at([]byte(key), revision); kv != nil {
			answer.Count++
			if kv = proto.Clone(kv).(*mvccpb.KeyValue); r.KeysOnly {
				kv.Value = nil
			}
			answer.Kvs = append(answer.Kvs, kv)
		}
	}
	return answer, nil
}

// within are the keys of a range, in order.
func (m *Member) within(key, end []byte) (keys []string) {
	for _, k := range slices.Sorted(maps.Keys(m.keys)) {
		one := []byte(k)
		switch {
		case len(end) == 0 && !bytes.Equal(one, key), bytes.Compare(one, key) < 0:
		case len(end) > 0 && !bytes.Equal(end, []byte{0}) && bytes.Compare(one, end) >= 0:
		default:
			keys = append(keys, k)
		}
	}
	return keys
}

// Txn implements pb.KVServer.
func (m *Member) Txn(_ context.Context, r *pb.TxnRequest) (*pb.TxnResponse, error) {
	if m.Before != nil {
		if err := m.Before(r); err != nil {
			return nil, err
		}
	}
	answer, err := m.execute(r)
	if err == nil && m.After != nil {
		err = m.After(r)
	}
	return answer, err
}

func (m *Member) execute(r *pb.TxnRequest) (*pb.TxnResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if depth(r) > m.MaxOps {
		return nil, rpctypes.ErrGRPCTooManyOps
	}
	if proto.Size(r) > m.MaxBytes {
		return nil, rpctypes.ErrGRPCRequestTooLarge
	}
	m.Txns = append(m.Txns, r)
	before := m.revision
	m.revision++ // of what it writes
	answer, wrote, err := m.branch(r)
	if !wrote {
		m.revision = before
	}
	if err != nil {
		return nil, err
	}
	answer.Header = m.header()
	return answer, nil
}

// depth is how many operations a transaction has in its longest lists, with those of one nested in it.
func depth(r *pb.TxnRequest) int {
	nested := 0
	for _, op := range slices.Concat(r.Success, r.Failure) {
		if txn := op.GetRequestTxn(); txn != nil {
			nested = max(nested, depth(txn))
		}
	}
	return max(len(r.Compare), len(r.Success), len(r.Failure)) + nested
}

func (m *Member) branch(r *pb.TxnRequest) (answer *pb.TxnResponse, wrote bool, err error) {
	answer = &pb.TxnResponse{Succeeded: true}
	for _, c := range r.Compare {
		kv := m.at(c.Key, m.revision)
		if c.Target == pb.Compare_VALUE {
			answer.Succeeded = answer.Succeeded && kv != nil && bytes.Equal(kv.Value, c.GetValue())
		} else {
			answer.Succeeded = answer.Succeeded && kv.GetCreateRevision() == c.GetCreateRevision()
		}
	}
	list := r.Success
	if !answer.Succeeded {
		list = r.Failure
	}
	for _, op := range list {
		one := &pb.ResponseOp{}
		answer.Responses = append(answer.Responses, one)
		switch {
		case op.GetRequestPut() != nil:
			m.put(op.GetRequestPut())
			wrote = true
			one.Response = &pb.ResponseOp_ResponsePut{ResponsePut: &pb.PutResponse{}}
		case op.GetRequestTxn() != nil:
			nested, alsoWrote, err := m.branch(op.GetRequestTxn())
			if wrote = wrote || alsoWrote; err != nil {
				return nil, wrote, err
			}
			one.Response = &pb.ResponseOp_ResponseTxn{ResponseTxn: nested}
		default:
			found, err := m.read(op.GetRequestRange())
			if err != nil {
				return nil, wrote, err
			}
			one.Response = &pb.ResponseOp_ResponseRange{ResponseRange: found}
		}
	}
	return answer, wrote, nil
}

// RevisionAt implements quoratepb.HistoryServer.
func (m *Member) RevisionAt(ctx context.Context, r *quoratepb.RevisionAtRequest) (*quoratepb.RevisionAtAnswer, error) {
	if m.Times == nil {
		return m.UnimplementedHistoryServer.RevisionAt(ctx, r)
	}
	return m.Times, m.Refusal
}

// Versions implements quoratepb.HistoryServer: Past, or only the revisions.
func (m *Member) Versions(context.Context, *quoratepb.VersionsRequest) (*quoratepb.VersionsAnswer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.Past != nil {
		return m.Past, m.Refusal
	}
	return &quoratepb.VersionsAnswer{Revision: m.revision, FirstRevision: m.first}, m.Refusal
}

// Changes implements quoratepb.HistoryServer: the pages of Changed.
func (m *Member) Changes(ctx context.Context, r *quoratepb.ChangesRequest) (*quoratepb.ChangesAnswer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.Changed == nil {
		return m.UnimplementedHistoryServer.Changes(ctx, r)
	}
	at := 0
	if len(r.GetPage()) > 0 {
		at = int(r.GetPage()[0])
	}
	return m.Changed[at], m.Refusal
}

// Deleted implements quoratepb.HistoryServer. A page token is a key.
func (m *Member) Deleted(_ context.Context, r *quoratepb.DeletedRequest) (*quoratepb.DeletedAnswer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.Refusal != nil {
		return nil, m.Refusal
	}
	if err := m.readable(r.AtRevision); err != nil {
		return nil, err
	}
	answer := &quoratepb.DeletedAnswer{Revision: m.revision, FirstRevision: m.first}
	for _, key := range m.within(r.Key, r.RangeEnd) {
		if key < string(r.Page) {
			continue
		}
		if answer.LookedAt == int64(m.PageKeys) {
			answer.NextPage = []byte(key)
			break
		}
		answer.LookedAt++
		if one := m.deleted([]byte(key), r.AtRevision); one != nil && (one.Now == nil || r.Existing) {
			answer.Keys = append(answer.Keys, one)
		}
	}
	return answer, nil
}

func (m *Member) deleted(key []byte, at int64) *quoratepb.DeletedKey {
	one := &quoratepb.DeletedKey{Key: key, ReadRevision: at}
	now := m.at(key, m.revision)
	for _, kv := range m.keys[string(key)] {
		if kv.Version == 0 && kv.ModRevision > m.first && (at == 0 || now == nil) {
			one.DeletedRevision = kv.ModRevision
		}
	}
	if at == 0 {
		one.ReadRevision = one.DeletedRevision - 1
	}
	was := m.at(key, one.ReadRevision)
	if was == nil || now.GetModRevision() == was.ModRevision {
		return nil
	}
	one.Was = version(was)
	if now != nil {
		one.Now, one.Same = version(now), bytes.Equal(now.Value, was.Value)
	}
	return one
}

func version(kv *mvccpb.KeyValue) *quoratepb.KeyVersion {
	return &quoratepb.KeyVersion{ModRevision: kv.ModRevision, CreateRevision: kv.CreateRevision, Version: kv.Version,
		Lease: kv.Lease, Size: int64(len(kv.Value))}
}
