package main

import (
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"
)

const (
	rangeStream = "/etcdserverpb.KV/RangeStream"
	snapshots   = "/etcdserverpb.Maintenance/Snapshot"
)

// slowReads are clients that ask for large answers and read them, but slowly: a client that is deaf is found out after a while,
// and one that reads a little each 10 ms is not. Churns are those that come back before anything is known of them.
var slowReads = []holding{
	slowly("ranges of a large value", kvRange, readFirst),
	slowly("linearizable ranges of two large values", kvRange, readTwo),
	slowly("streamed ranges of large values", rangeStream, readTwo),
	slowSnapshots(),
	slowly("watches of large values of the past", watches, watchPast),
	slowly("transactions that read large values", kvTxn, readingTxn(false)),
	writing(slowly("transactions that write, and read large values", kvTxn, readingTxn(true))),
	keeping(slowly("puts that return large values", kvPut, keepingValue), time.Second),
	keeping(slowly("transactions that return large values that were", kvTxn, keepingTxn), time.Second),
	patiently(slowly("ranges of a large value, each to its end", kvRange, readFirst)),
	churning("ranges of a large value", kvRange, readFirst),
	churning("transactions that read large values", kvTxn, readingTxn(false)),
	keeping(churning("puts that return large values", kvPut, keepingValue), 3*time.Second),
	keeping(churning("transactions that return large values that were", kvTxn, keepingTxn), 3*time.Second),
}

// The cost of large values for 16 connections to other clients: 86 to 112 ms on a machine with no other user.
const (
	readsP99  = 300 * time.Millisecond
	readsMuch = "large values are read and sent for 16 connections, which takes the processors"
)

// slowly makes calls of which each stream may send 64 KiB, and each connection 2 MB/s.
func slowly(name, path string, message func(int) proto.Message) holding {
	return holding{name: "slow: " + name, path: path, message: message, window: 65535, allows: 20_000, ends: true,
		fill: filling{keys: 20, bytes: large}, hosts: 1, conns: 16, streams: 5000, returns: true, p99: readsP99,
		because: readsMuch}
}

// patiently lets each stream send all of its answer.
func patiently(h holding) holding {
	h.window = 1 << 30
	return h
}

func writing(h holding) holding {
	h.writes = true
	return h
}

// keeping is for writes that keep large values and return them. Others' p99 was 0.5 s beside slow ones, and 1.3 to 1.7 s beside
// those that come back.
func keeping(h holding, p99 time.Duration) holding {
	h.writes, h.p99, h.because = true, p99, keptGap
	return h
}

// slowSnapshots reads backups of the store, for which a member reads its files.
func slowSnapshots() holding {
	h := slowly("snapshots", snapshots, func(int) proto.Message { return &pb.SnapshotRequest{} })
	h.files, h.because = 40, readsMuch+"; a backup reads the store's files, 28 MB, whose pages count as the member's"
	return h
}

// churning makes thousands of calls, drops the connection and comes back.
func churning(name, path string, message func(int) proto.Message) holding {
	return holding{name: "churn: " + name, path: path, message: message, window: 65535, ends: true,
		fill: filling{keys: 20, bytes: large}, hosts: 1, conns: 16, streams: 2000, drops: 300 * time.Millisecond, p99: readsP99,
		because: readsMuch}
}

func readTwo(int) proto.Message { return &pb.RangeRequest{Key: keyOf(0), RangeEnd: keyOf(2)} }

func watchPast(int) proto.Message {
	create := &pb.WatchCreateRequest{Key: []byte(workPrefix), RangeEnd: []byte(workEnd), StartRevision: 2, PrevKv: true}
	return &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: create}}
}

// readingTxn is a transaction that reads two large values, and puts a small one.
func readingTxn(puts bool) func(int) proto.Message {
	txn := &pb.TxnRequest{}
	if puts {
		txn.Success = append(txn.Success, opOfPut(&pb.PutRequest{Key: []byte("q")}))
	}
	for i := range 2 {
		txn.Success = append(txn.Success, opOfRange(&pb.RangeRequest{Key: keyOf(i)}))
	}
	return func(int) proto.Message { return txn }
}

// keepingTxn is a transaction that keeps two large values, and returns them.
func keepingTxn(int) proto.Message {
	return &pb.TxnRequest{Success: keepingOps(2)}
}

func keepingOps(keys int) (ops []*pb.RequestOp) {
	for i := range keys {
		ops = append(ops, opOfPut(&pb.PutRequest{Key: keyOf(i), IgnoreValue: true, PrevKv: true}))
	}
	return ops
}
