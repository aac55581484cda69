package rpc_test

import (
	"context"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/rpc"
)

// etcd 3.7.1's answers to wrong requests, recorded from a running server: the code and the text. Intended differences are in
// docs/compatibility.md.

// wrong is one request and etcd's answer; an empty text means that it accepts the request.
type wrong struct {
	name string
	ask  func(context.Context) error
	want string
}

func judgeAll(t *testing.T, rows []wrong) {
	t.Helper()
	ctx := waitContext(t)
	for _, row := range rows {
		if got := told(row.ask(ctx)); got != row.want {
			t.Errorf("%s: got %q, want %q", row.name, got, row.want)
		}
	}
}

// told is a code and its text. The protobuf library writes a non-breaking space at random, so that tests do not compare its
// texts.
func told(err error) string {
	if err == nil {
		return ""
	}
	s := status.Convert(err)
	return s.Code().String() + " " + strings.ReplaceAll(s.Message(), "\u00a0", " ")
}

const (
	saysNoKey      = "InvalidArgument etcdserver: key is not provided"
	saysTooLarge   = "InvalidArgument etcdserver: request is too large"
	saysCompacted  = "OutOfRange etcdserver: mvcc: required revision has been compacted"
	saysFuture     = "OutOfRange etcdserver: mvcc: required revision is a future revision"
	saysTooManyOps = "InvalidArgument etcdserver: too many operations in txn request"
	saysDuplicate  = "InvalidArgument etcdserver: duplicate key given in txn request"
	saysNotFound   = "InvalidArgument etcdserver: key not found"
	saysNoLease    = "NotFound etcdserver: requested lease not found"
	saysBadSort    = "InvalidArgument etcdserver: invalid sort option"
	saysBadURLs    = "InvalidArgument etcdserver: given member URLs are invalid"
	saysNoMember   = "NotFound etcdserver: member not found"
	saysURLExists  = "FailedPrecondition etcdserver: Peer URLs already exists"
	saysBadTarget  = "InvalidArgument etcdserver: invalid downgrade target version"
	saysBadFormat  = "InvalidArgument etcdserver: wrong downgrade target version format"
	saysUnreadable = "Internal grpc: failed to unmarshal the received message: proto: cannot parse invalid wire-format data"
	saysNotText    = "Internal grpc: failed to unmarshal the received message: string field contains invalid UTF-8"
)

// seedHistory writes key "k" five times and compacts at revision 4.
func seedHistory(t *testing.T, kvc pb.KVClient, ctx context.Context) {
	t.Helper()
	for range 6 {
		if _, err := kvc.Put(ctx, &pb.PutRequest{Key: []byte("k"), Value: []byte("v")}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := kvc.Compact(ctx, &pb.CompactionRequest{Revision: 4}); err != nil {
		t.Fatal(err)
	}
}

func TestServices_wrongRequests_ranges(t *testing.T) {
	conn := serveMember(t, nil).conn(t)
	kvc := pb.NewKVClient(conn)
	seedHistory(t, kvc, waitContext(t))
	ask := func(r *pb.RangeRequest) func(context.Context) error {
		return func(ctx context.Context) error { _, err := kvc.Range(ctx, r); return err }
	}
	stream := func(r *pb.RangeRequest) func(context.Context) error {
		return func(ctx context.Context) error {
			s, err := kvc.RangeStream(ctx, r)
			if err == nil {
				_, err = s.Recv()
			}
			return err
		}
	}
	k := []byte("k")
	judgeAll(t, []wrong{
		{"no key", ask(&pb.RangeRequest{}), saysNoKey},
		{"no key but an end", ask(&pb.RangeRequest{RangeEnd: k}), saysNoKey},
		{"sort order 7", ask(&pb.RangeRequest{Key: k, SortOrder: 7}), saysBadSort},
		{"sort order -1", ask(&pb.RangeRequest{Key: k, SortOrder: -1}), saysBadSort},
		{"sort target 9", ask(&pb.RangeRequest{Key: k, SortTarget: 9}), saysBadSort},
		{"future", ask(&pb.RangeRequest{Key: k, Revision: 1000}), saysFuture},
		{"future, serializable", ask(&pb.RangeRequest{Key: k, Revision: 1000, Serializable: true}), saysFuture},
		{"compacted", ask(&pb.RangeRequest{Key: k, Revision: 2}), saysCompacted},
		{"at the compaction", ask(&pb.RangeRequest{Key: k, Revision: 4}), ""},
		{"revision -5", ask(&pb.RangeRequest{Key: k, Revision: -5}), ""},
		{"limit -5", ask(&pb.RangeRequest{Key: k, Limit: -5}), ""},
		{"end before the key", ask(&pb.RangeRequest{Key: k, RangeEnd: []byte("a")}), ""},
		{"stream, no key", stream(&pb.RangeRequest{}), saysNoKey},
		{"stream, sorted", stream(&pb.RangeRequest{Key: k, SortOrder: pb.RangeRequest_DESCEND}),
			"Unimplemented RangeStream does not support custom sort orders"},
		{"stream, sort order 7", stream(&pb.RangeRequest{Key: k, SortOrder: 7}), saysBadSort},
		{"stream, filtered", stream(&pb.RangeRequest{Key: k, MinModRevision: 1}),
			"Unimplemented RangeStream does not support revision filters"},
		{"stream, future", stream(&pb.RangeRequest{Key: k, Revision: 1000}), saysFuture},
		{"stream, compacted", stream(&pb.RangeRequest{Key: k, Revision: 2}), saysCompacted},
	})
}

func TestServices_wrongRequests_writes(t *testing.T) {
	conn := serveMember(t, nil).conn(t)
	kvc := pb.NewKVClient(conn)
	seedHistory(t, kvc, waitContext(t))
	put := func(r *pb.PutRequest) func(context.Context) error {
		return func(ctx context.Context) error { _, err := kvc.Put(ctx, r); return err }
	}
	remove := func(r *pb.DeleteRangeRequest) func(context.Context) error {
		return func(ctx context.Context) error { _, err := kvc.DeleteRange(ctx, r); return err }
	}
	compact := func(revision int64) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := kvc.Compact(ctx, &pb.CompactionRequest{Revision: revision})
			return err
		}
	}
	k, none, x := []byte("big"), []byte("none"), []byte("x")
	sized := func(n int) []byte { return make([]byte, n) }
	judgeAll(t, []wrong{
		{"no key", put(&pb.PutRequest{Value: x}), saysNoKey},
		{"no key, too large", put(&pb.PutRequest{Value: sized(1600 << 10)}), saysNoKey},
		{"value to ignore", put(&pb.PutRequest{Key: k, Value: x, IgnoreValue: true}),
			"InvalidArgument etcdserver: value is provided"},
		{"lease to ignore", put(&pb.PutRequest{Key: k, Lease: 5, IgnoreLease: true}),
			"InvalidArgument etcdserver: lease is provided"},
		{"no value to keep", put(&pb.PutRequest{Key: none, IgnoreValue: true}), saysNotFound},
		{"no lease to keep", put(&pb.PutRequest{Key: none, IgnoreLease: true}), saysNotFound},
		{"no such lease", put(&pb.PutRequest{Key: k, Lease: 5}), saysNoLease},
		{"lease -5", put(&pb.PutRequest{Key: k, Lease: -5}), saysNoLease},
		{"no such lease and no value", put(&pb.PutRequest{Key: none, Lease: 5, IgnoreValue: true}), saysNoLease},
		{"1.6 MiB", put(&pb.PutRequest{Key: k, Value: sized(1600 << 10)}), saysTooLarge},
		{"1572864 bytes", put(&pb.PutRequest{Key: k, Value: sized(1572864)}), saysTooLarge},
		{"1572840 bytes", put(&pb.PutRequest{Key: k, Value: sized(1572840)}), saysTooLarge},
		{"1572838 bytes", put(&pb.PutRequest{Key: k, Value: sized(1572838)}), saysTooLarge},
		{"1572837 bytes", put(&pb.PutRequest{Key: k, Value: sized(1572837)}), ""},
		{"3 MiB", put(&pb.PutRequest{Key: []byte("k"), Value: sized(3 << 20)}),
			"ResourceExhausted grpc: received message larger than max (3145736 vs. 2097152)"},
		{"delete, no key", remove(&pb.DeleteRangeRequest{}), saysNoKey},
		{"delete, an end alone", remove(&pb.DeleteRangeRequest{RangeEnd: []byte{0}}), saysNoKey},
		{"delete, too large", remove(&pb.DeleteRangeRequest{Key: sized(1572864)}), saysTooLarge},
		{"delete, nothing", remove(&pb.DeleteRangeRequest{Key: none}), ""},
		{"compact, future", compact(1e6), saysFuture},
		{"compact again", compact(4), saysCompacted},
		{"compact 0", compact(0), saysCompacted},
		{"compact -1", compact(-1), saysCompacted},
	})
}

func opPut(key string) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{
		RequestPut: &pb.PutRequest{Key: []byte(key), Value: []byte("v")},
	}}
}

func opRange(key string, revision int64) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestRange{
		RequestRange: &pb.RangeRequest{Key: []byte(key), Revision: revision},
	}}
}

func opDelete(key, end string) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{
		RequestDeleteRange: &pb.DeleteRangeRequest{Key: []byte(key), RangeEnd: []byte(end)},
	}}
}

func opTxn(txn *pb.TxnRequest) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: txn}}
}

// nested is a put within that many transactions.
func nested(depth int) *pb.TxnRequest {
	txn := &pb.TxnRequest{Success: []*pb.RequestOp{opPut("deep")}}
	for range depth - 1 {
		txn = &pb.TxnRequest{Success: []*pb.RequestOp{opTxn(txn)}}
	}
	return txn
}

func TestServices_wrongRequests_transactions(t *testing.T) {
	conn := serveMember(t, nil).conn(t)
	kvc := pb.NewKVClient(conn)
	seedHistory(t, kvc, waitContext(t))
	txn := func(r *pb.TxnRequest) func(context.Context) error {
		return func(ctx context.Context) error { _, err := kvc.Txn(ctx, r); return err }
	}
	then := func(ops ...*pb.RequestOp) func(context.Context) error { return txn(&pb.TxnRequest{Success: ops}) }
	many := make([]*pb.RequestOp, 129)
	for i := range many {
		many[i] = opRange("k", 0)
	}
	bad := pb.Compare{Key: []byte("k"), Target: 99}
	judgeAll(t, []wrong{
		{"empty", then(), ""},
		{"128 operations", then(many[:128]...), ""},
		{"129 operations", then(many...), saysTooManyOps},
		{"129 operations otherwise", txn(&pb.TxnRequest{Failure: many}), saysTooManyOps},
		{"129 compares", txn(&pb.TxnRequest{Compare: make([]*pb.Compare, 129)}), saysTooManyOps},
		{"128 transactions deep", txn(nested(128)), ""},
		{"129 transactions deep", txn(nested(129)), saysTooManyOps},
		{"4000 transactions deep", txn(nested(4000)), saysTooManyOps},
		{"one key twice", then(opPut("a"), opPut("a")), saysDuplicate},
		{"put and delete", then(opPut("a"), opDelete("a", "b")), saysDuplicate},
		{"delete twice", then(opDelete("a", "b"), opDelete("a", "b")), ""},
		{"one key twice, nested", then(opPut("a"), opTxn(&pb.TxnRequest{Success: []*pb.RequestOp{opPut("a")}})), saysDuplicate},
		{"no operation", then(&pb.RequestOp{}), saysNotFound},
		{"compare without key", txn(&pb.TxnRequest{Compare: []*pb.Compare{{}}}), saysNoKey},
		{"compare target 99", txn(&pb.TxnRequest{Compare: []*pb.Compare{&bad}, Success: []*pb.RequestOp{opPut("a")}}), ""},
		{"put without key", then(opPut("")), saysNoKey},
		{"range without key", then(opRange("", 0)), saysNoKey},
		{"delete without key", then(opDelete("", "")), saysNoKey},
		{"read of the future", then(opRange("k", 1e6)), saysFuture},
		{"read of what is compacted", then(opRange("k", 1)), saysCompacted},
		{"read at -3", then(opRange("k", -3)), saysCompacted},
		{"write and read the future", then(opPut("a"), opRange("k", 1e6)), saysFuture},
		{"write and read what is compacted", then(opPut("a"), opRange("k", 1)), saysCompacted},
		{"write and read at -3", then(opPut("a"), opRange("k", -3)), saysCompacted},
		{"compacted in the other branch", txn(&pb.TxnRequest{
			Success: []*pb.RequestOp{opPut("a")}, Failure: []*pb.RequestOp{opRange("k", 1)},
		}), ""},
		{"too large", then(&pb.RequestOp{Request: &pb.RequestOp_RequestPut{
			RequestPut: &pb.PutRequest{Key: []byte("a"), Value: make([]byte, 1572836)},
		}}), saysTooLarge},
	})
}

// If so many operations are allowed, a request that the log cannot hold is refused before the log.
func TestServices_wrongRequests_nestedDeeperThanTheLog(t *testing.T) {
	conn := serveMember(t, func(o *rpc.Options) { o.MaxTxnOps = 5000 }).conn(t)
	kvc := pb.NewKVClient(conn)
	ask := func(depth int) func(context.Context) error {
		return func(ctx context.Context) error { _, err := kvc.Txn(ctx, nested(depth)); return err }
	}
	judgeAll(t, []wrong{
		{"512 deep", ask(512), ""},
		{"513 deep", ask(513), saysTooManyOps},
		{"4000 deep", ask(4000), saysTooManyOps},
	})
}

func TestServices_wrongRequests_members(t *testing.T) {
	conn := serveMember(t, nil).conn(t)
	cluster := pb.NewClusterClient(conn)
	add := func(urls ...string) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := cluster.MemberAdd(ctx, &pb.MemberAddRequest{PeerURLs: urls})
			return err
		}
	}
	remove := func(id uint64) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := cluster.MemberRemove(ctx, &pb.MemberRemoveRequest{ID: id})
			return err
		}
	}
	promote := func(id uint64) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := cluster.MemberPromote(ctx, &pb.MemberPromoteRequest{ID: id})
			return err
		}
	}
	judgeAll(t, []wrong{
		{"no URLs", add(), saysBadURLs},
		{"an empty URL", add(""), saysBadURLs},
		{"no URL", add("not a url"), saysBadURLs},
		{"no scheme", add("127.0.0.1:26999"), saysBadURLs},
		{"no port", add("http://127.0.0.1"), saysBadURLs},
		{"ftp", add("ftp://127.0.0.1:26999"), saysBadURLs},
		{"a path", add("http://127.0.0.1:26999/x"), saysBadURLs},
		{"a URL that is taken", add(testPeerURL), saysURLExists},
		{"remove nobody", remove(12345), saysNoMember},
		{"remove 0", remove(0), saysNoMember},
		{"promote nobody", promote(12345), saysNoMember},
		{"promote 0", promote(0), saysNoMember},
		{"promote a voter", promote(uint64(testMember)),
			"FailedPrecondition etcdserver: can only promote a learner member"},
		{"update nobody", func(ctx context.Context) error {
			_, err := cluster.MemberUpdate(ctx, &pb.MemberUpdateRequest{ID: 12345, PeerURLs: []string{"http://127.0.0.1:7"}})
			return err
		}, saysNoMember},
	})
}

func TestServices_wrongRequests_maintenance(t *testing.T) {
	conn := serveMember(t, nil).conn(t)
	maintenance, leases := pb.NewMaintenanceClient(conn), pb.NewLeaseClient(conn)
	downgrade := func(action pb.DowngradeRequest_DowngradeAction, version string) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := maintenance.Downgrade(ctx, &pb.DowngradeRequest{Action: action, Version: version})
			return err
		}
	}
	move := func(id uint64) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := maintenance.MoveLeader(ctx, &pb.MoveLeaderRequest{TargetID: id})
			return err
		}
	}
	grant := func(id, ttl int64) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := leases.LeaseGrant(ctx, &pb.LeaseGrantRequest{ID: id, TTL: ttl})
			return err
		}
	}
	const badTransferee = "FailedPrecondition etcdserver: bad leader transferee"
	judgeAll(t, []wrong{
		{"validate abc", downgrade(pb.DowngradeRequest_VALIDATE, "abc"), saysBadFormat},
		{"validate nothing", downgrade(pb.DowngradeRequest_VALIDATE, ""), saysBadFormat},
		{"validate 3.5.0", downgrade(pb.DowngradeRequest_VALIDATE, "3.5.0"), saysBadTarget},
		{"enable x.y", downgrade(pb.DowngradeRequest_ENABLE, "x.y"), saysBadFormat},
		{"enable 3.4.0", downgrade(pb.DowngradeRequest_ENABLE, "3.4.0"), saysBadTarget},
		{"cancel", downgrade(pb.DowngradeRequest_CANCEL, ""), ""},
		{"action 9", downgrade(9, ""), "Unknown etcdserver: unknown method"},
		{"move to nobody", move(12345), badTransferee},
		{"move to 0", move(0), badTransferee},
		{"move to itself", move(uint64(testMember)), ""},
		{"lease for ever", grant(0, 9_000_000_001), "OutOfRange etcdserver: too large lease TTL"},
		{"lease of -1", grant(0, -1), ""},
		{"lease 7", grant(7, 600), ""},
		{"lease 7 again", grant(7, 600), "FailedPrecondition etcdserver: lease already exists"},
		{"revoke nothing", func(ctx context.Context) error {
			_, err := leases.LeaseRevoke(ctx, &pb.LeaseRevokeRequest{ID: 4242})
			return err
		}, saysNoLease},
		{"hash of the future", func(ctx context.Context) error {
			_, err := maintenance.HashKV(ctx, &pb.HashKVRequest{Revision: 1e9})
			return err
		}, saysFuture},
	})
	response, err := maintenance.Downgrade(waitContext(t), &pb.DowngradeRequest{Action: pb.DowngradeRequest_CANCEL})
	if err != nil || response.Version != "3.7" {
		t.Errorf("cancelled: got version %q, %v, want 3.7", response.GetVersion(), err)
	}
}

// rawCodec sends bytes as they are.
type rawCodec struct{}

func (rawCodec) Name() string                  { return "proto" }
func (rawCodec) Marshal(v any) ([]byte, error) { return v.([]byte), nil }
func (rawCodec) Unmarshal([]byte, any) error   { return nil }

// The text before the second colon is the gRPC library's: etcd 3.7.1 has an older one, which says "grpc: error unmarshalling
// request".
func TestServices_wrongRequests_bytes(t *testing.T) {
	conn := serveMember(t, nil).conn(t)
	send := func(method, bytes string) func(context.Context) error {
		return func(ctx context.Context) error {
			return conn.Invoke(ctx, method, []byte(bytes), nil, grpc.ForceCodec(rawCodec{}))
		}
	}
	const kvPut, kvRange, kvTxn = "/etcdserverpb.KV/Put", "/etcdserverpb.KV/Range", "/etcdserverpb.KV/Txn"
	judgeAll(t, []wrong{
		{"put of garbage", send(kvPut, "\xff\xff\xff\xff"), saysUnreadable},
		{"put that ends early", send(kvPut, "\x0a\x7fk"), saysUnreadable},
		{"range of garbage", send(kvRange, "\xff\xff\xff\xff"), saysUnreadable},
		{"txn of garbage", send(kvTxn, "\xff\xff\xff\xff"), saysUnreadable},
		{"field 0", send(kvPut, "\x02\x01k"), saysUnreadable},
		{"an end without a group", send(kvPut, "\x0a\x01k\x7c"), saysUnreadable},
		{"wire type 6", send(kvPut, "\x0e\x01"), saysUnreadable},
		{"a key that is a number", send(kvPut, "\x08\x01"), saysNoKey},
		{"a field that nobody knows", send(kvPut, "\x0a\x01k\xf8\x07\x01"), ""},
		{"a negative length", send(kvPut, "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), saysUnreadable},
		{"lease of garbage", send("/etcdserverpb.Lease/LeaseGrant", "\xff\xff\xff\xff"), saysUnreadable},
		{"URL that is no text", send("/etcdserverpb.Cluster/MemberAdd", "\x0a\x02\xff\xfe"), saysNotText},
		{"version that is no text", send("/etcdserverpb.Maintenance/Downgrade", "\x12\x02\xff\xfe"), saysNotText},
	})
}

// Without a leader a write fails at its deadline, and a read may be repeated.
func TestServices_wrongRequests_noLeader(t *testing.T) {
	backend := newMachineBackend(t)
	backend.lead(consensus.NoMember)
	conn := serve(t, backend, nil).conn(t)
	kvc, leases := pb.NewKVClient(conn), pb.NewLeaseClient(conn)
	k := []byte("k")
	const over, again = "DeadlineExceeded context deadline exceeded", "Unavailable etcdserver: request timed out"
	ctx, cancel := context.WithTimeout(waitContext(t), 10*time.Second)
	defer cancel()
	judgeAll(t, []wrong{
		{"put", func(context.Context) error { _, err := kvc.Put(ctx, &pb.PutRequest{Key: k}); return err }, over},
		{"lease", func(context.Context) error {
			_, err := leases.LeaseGrant(ctx, &pb.LeaseGrantRequest{TTL: 60})
			return err
		}, over},
		{"range", func(context.Context) error { _, err := kvc.Range(ctx, &pb.RangeRequest{Key: k}); return err }, again},
		{"read-only transaction", func(context.Context) error {
			_, err := kvc.Txn(ctx, &pb.TxnRequest{Success: []*pb.RequestOp{opRange("k", 0)}})
			return err
		}, again},
		{"serializable range", func(context.Context) error {
			_, err := kvc.Range(ctx, &pb.RangeRequest{Key: k, Serializable: true})
			return err
		}, ""},
	})
}
