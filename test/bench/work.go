package main

import (
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/v3electionpb"
)

const (
	workEnd   = "work0"
	workLease = 9
	kvTxn     = "/etcdserverpb.KV/Txn"
	leader    = "/v3electionpb.Election/Leader"
	observe   = "/v3electionpb.Election/Observe"
	jsonRange = "/v3/kv/range"

	// keptGap is why others wait for writes that keep and return large values.
	keptGap = "reading what they keep takes the processors, a known gap"

	large = 1_400_000 // a value near the largest request
)

// workings are the attacks of a third review: what makes a member work, and others wait, and copies of large values that wait
// for room.
var workings = []holding{
	{name: "work: writes that compare many keys", path: kvTxn, message: comparing(128, pb.Compare_MOD, true),
		fill: filling{keys: 200_000}, callers: 8},
	{name: "work: a write that compares many keys", path: kvTxn, message: comparing(1, pb.Compare_MOD, true),
		fill: filling{keys: 200_000}, callers: 1},
	{name: "work: writes that compare large values", path: kvTxn, message: comparing(128, pb.Compare_VALUE, true),
		fill: filling{keys: 2000, bytes: 50_000}, callers: 16},
	{name: "work: writes that compare just enough", path: kvTxn, message: comparing(7, pb.Compare_MOD, true),
		fill: filling{keys: 2000, bytes: 100}, callers: 16},
	{name: "work: writes that read filtered ranges", path: kvTxn, message: filtering(127), fill: filling{keys: 200_000},
		callers: 16},
	{name: "work: puts that keep large values", path: kvPut, message: keepingValue, fill: filling{keys: 20, bytes: large},
		callers: 64, p99: 500 * time.Millisecond, because: keptGap},
	{name: "work: a write that reads a filtered range", path: kvTxn, message: filtering(1), fill: filling{keys: 200_000},
		callers: 1},
	{name: "work: reads that compare many keys", path: kvTxn, message: comparing(128, pb.Compare_MOD, false),
		fill: filling{keys: 200_000}, callers: 2},
	{name: "work: filtered ranges", path: kvRange, message: filteredRange, fill: filling{keys: 200_000}, callers: 16,
		p99: 200 * time.Millisecond, because: "they take the processors"}, // it is 69 ms
	{name: "work: filtered ranges, given up", path: kvRange, message: filteredRange, fill: filling{keys: 100_000}, resets: true,
		ends: true, hosts: 1, conns: 16, streams: 300},
	{name: "work: deaf comparisons of a large value", path: kvTxn, message: comparing(128, pb.Compare_VALUE, false),
		fill: filling{keys: 1, bytes: large}, hosts: 1, conns: 4, streams: 5000, ends: true},
	{name: "work: deaf reads of a large value", path: kvRange, message: readFirst, fill: filling{keys: 1, bytes: large},
		hosts: 1, conns: 16, streams: 5000, ends: true, p99: readsP99, because: readsMuch},
	{name: "work: deaf reads of its key", path: kvRange, message: readFirstKey, fill: filling{keys: 1, bytes: large},
		hosts: 1, conns: 16, streams: 5000, ends: true},
	{name: "work: deaf askers for a leader of a large value", path: leader, message: leaderOf,
		fill: filling{keys: 1, bytes: large}, hosts: 1, conns: 16, streams: 5000, ends: true},
	{name: "work: deaf observers of a large value", path: observe, message: leaderOf,
		fill: filling{keys: 1, bytes: large}, hosts: 1, conns: 16, streams: 2000, ends: true},
	{name: "work: large JSON requests", path: jsonRange, message: readOf, size: megabyte, json: true, hosts: 1, conns: 16,
		streams: 1000},
}

// comparing is a transaction of so many comparisons of all keys that hold, and of a put.
func comparing(compares int, target pb.Compare_CompareTarget, puts bool) func(int) proto.Message {
	txn := &pb.TxnRequest{Success: []*pb.RequestOp{opOfRange(&pb.RangeRequest{Key: []byte("nobody")})}}
	if puts {
		txn.Success = []*pb.RequestOp{opOfPut(&pb.PutRequest{Key: []byte("q")})}
	}
	for range compares {
		c := &pb.Compare{Key: []byte(workPrefix), RangeEnd: []byte(workEnd), Target: target, Result: pb.Compare_NOT_EQUAL}
		if target == pb.Compare_VALUE {
			c.TargetUnion = &pb.Compare_Value{Value: []byte("a")}
		}
		txn.Compare = append(txn.Compare, c)
	}
	return func(int) proto.Message { return txn }
}

func filteredRange(int) proto.Message {
	return &pb.RangeRequest{Key: []byte(workPrefix), RangeEnd: []byte(workEnd), MinModRevision: 1 << 60, Serializable: true}
}

// filtering is a transaction of a put and so many ranges that find nothing.
func filtering(ranges int) func(int) proto.Message {
	txn := &pb.TxnRequest{Success: []*pb.RequestOp{opOfPut(&pb.PutRequest{Key: []byte("q")})}}
	for range ranges {
		txn.Success = append(txn.Success,
			opOfRange(&pb.RangeRequest{Key: []byte(workPrefix), RangeEnd: []byte(workEnd), MinModRevision: 1 << 60}))
	}
	return func(int) proto.Message { return txn }
}

func keepingValue(int) proto.Message {
	return &pb.PutRequest{Key: keyOf(0), IgnoreValue: true, PrevKv: true}
}
func readFirst(int) proto.Message    { return &pb.RangeRequest{Key: keyOf(0), Serializable: true} }
func readFirstKey(int) proto.Message { return &pb.RangeRequest{Key: keyOf(0), KeysOnly: true} }
func leaderOf(int) proto.Message     { return &v3electionpb.LeaderRequest{Name: []byte("work")} }
