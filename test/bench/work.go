package main

import (
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/v3electionpb"
)

const (
	workEnd   = "work0"
	workLease = 9
	kvTxn     = "/etcdserverpb.KV/Txn"
	kvDelete  = "/etcdserverpb.KV/DeleteRange"
	leader    = "/v3electionpb.Election/Leader"
	observe   = "/v3electionpb.Election/Observe"
	revoke    = "/etcdserverpb.Lease/LeaseRevoke"
	jsonRange = "/v3/kv/range"

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
		callers: 64},
	{name: "work: the end of a large lease", path: revoke, message: revoking,
		fill: filling{keys: 400_000, lease: workLease}, callers: 1},
	{name: "work: a deletion of many keys", path: kvDelete, message: deleting, fill: filling{keys: 40_000}, callers: 1},
	{name: "work: reads that compare many keys", path: kvTxn, message: comparing(128, pb.Compare_MOD, false),
		fill: filling{keys: 200_000}, callers: 2},
	{name: "work: filtered ranges", path: kvRange, message: filteredRange, fill: filling{keys: 200_000}, callers: 16},
	{name: "work: filtered ranges, given up", path: kvRange, message: filteredRange, fill: filling{keys: 100_000}, resets: true,
		ends: true, hosts: 1, conns: 16, streams: 300},
	{name: "work: deaf comparisons of a large value", path: kvTxn, message: comparing(128, pb.Compare_VALUE, false),
		fill: filling{keys: 1, bytes: large}, hosts: 1, conns: 4, streams: 5000, ends: true},
	{name: "work: deaf reads of a large value", path: kvRange, message: readFirst, fill: filling{keys: 1, bytes: large},
		hosts: 1, conns: 16, streams: 5000, ends: true},
	{name: "work: deaf reads of its key", path: kvRange, message: readFirstKey, fill: filling{keys: 1, bytes: large},
		hosts: 1, conns: 16, streams: 5000, ends: true},
	{name: "work: deaf askers for a leader of a large value", path: leader, message: leaderOf,
		fill: filling{keys: 1, bytes: large}, hosts: 1, conns: 16, streams: 5000, ends: true},
	{name: "work: deaf observers of a large value", path: observe, message: leaderOf,
		fill: filling{keys: 1, bytes: large}, hosts: 1, conns: 16, streams: 2000, ends: true},
	{name: "work: large JSON requests", path: jsonRange, message: readOf, size: megabyte, json: true, hosts: 1, conns: 16,
		streams: 1000},
}

func firstKey() []byte { return fmt.Appendf(nil, "%s%06d", workPrefix, 0) }

// comparing is a transaction of so many comparisons of all keys that hold, and of a put.
func comparing(compares int, target pb.Compare_CompareTarget, puts bool) func(int) proto.Message {
	txn := &pb.TxnRequest{Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestRange{
		RequestRange: &pb.RangeRequest{Key: []byte("nobody")}}}}}
	if puts {
		txn.Success = []*pb.RequestOp{{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte("q")}}}}
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
	txn := &pb.TxnRequest{
		Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte("q")}}}}}
	for range ranges {
		r := &pb.RangeRequest{Key: []byte(workPrefix), RangeEnd: []byte(workEnd), MinModRevision: 1 << 60}
		txn.Success = append(txn.Success, &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: r}})
	}
	return func(int) proto.Message { return txn }
}

func keepingValue(int) proto.Message {
	return &pb.PutRequest{Key: firstKey(), IgnoreValue: true, PrevKv: true}
}
func revoking(int) proto.Message { return &pb.LeaseRevokeRequest{ID: workLease} }
func deleting(int) proto.Message {
	return &pb.DeleteRangeRequest{Key: []byte(workPrefix), RangeEnd: []byte(workEnd)}
}
func readFirst(int) proto.Message    { return &pb.RangeRequest{Key: firstKey(), Serializable: true} }
func readFirstKey(int) proto.Message { return &pb.RangeRequest{Key: firstKey(), KeysOnly: true} }
func leaderOf(int) proto.Message     { return &v3electionpb.LeaderRequest{Name: []byte("work")} }
