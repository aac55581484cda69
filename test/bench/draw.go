package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/api/v3electionpb"
	"github.com/quorate/quorate/api/v3lockpb"
)

// drawable is a call of any service, by gRPC and, if it has one, by the JSON gateway.
type drawable struct {
	path, json string
	message    func(size int) proto.Message
}

// drawables are the calls of all services, but for those that change what others rely on.
var drawables = []drawable{
	{kvRange, "/v3/kv/range", rangeOf},
	{kvRange, "/v3/kv/range", readOf},
	{kvPut, "/v3/kv/put", putOf},
	{"/etcdserverpb.KV/Txn", "/v3/kv/txn", txnOf},
	{"/etcdserverpb.KV/DeleteRange", "/v3/kv/deleterange", deleteOf},
	{watches, "/v3/watch", watchOf},
	{watches, "/v3/watch", watchLong},
	{renewal, "/v3/lease/keepalive", func(int) proto.Message { return &pb.LeaseKeepAliveRequest{ID: 4242} }},
	{"/etcdserverpb.Lease/LeaseGrant", "/v3/lease/grant", func(int) proto.Message { return &pb.LeaseGrantRequest{TTL: 600} }},
	{"/etcdserverpb.Lease/LeaseLeases", "/v3/lease/leases", func(int) proto.Message { return &pb.LeaseLeasesRequest{} }},
	{"/etcdserverpb.Maintenance/Snapshot", "/v3/maintenance/snapshot",
		func(int) proto.Message { return &pb.SnapshotRequest{} }},
	{"/etcdserverpb.Maintenance/HashKV", "/v3/maintenance/hashkv", func(int) proto.Message { return &pb.HashKVRequest{} }},
	{"/etcdserverpb.Maintenance/Status", "/v3/maintenance/status", func(int) proto.Message { return &pb.StatusRequest{} }},
	{"/etcdserverpb.Cluster/MemberList", "/v3/cluster/member/list",
		func(int) proto.Message { return &pb.MemberListRequest{} }},
	{"/etcdserverpb.Auth/Authenticate", "/v3/auth/authenticate", guessOf},
	{"/etcdserverpb.Auth/UserAdd", "/v3/auth/user/add", userOf},
	{"/v3lockpb.Lock/Lock", "/v3/lock/lock", func(n int) proto.Message { return &v3lockpb.LockRequest{Name: make([]byte, n)} }},
	{"/v3electionpb.Election/Campaign", "/v3/election/campaign", campaignOf},
	{"/v3electionpb.Election/Observe", "/v3/election/observe",
		func(n int) proto.Message { return &v3electionpb.LeaderRequest{Name: make([]byte, n)} }},
	{"/quorate.v1.Writer/Propose", "", proposeOf},
	{"/quorate.v1.Membership/Watch", "", func(int) proto.Message { return &quoratepb.WatchRequest{} }},
	{"/quorate.v1.Membership/Describe", "", func(int) proto.Message { return &quoratepb.DescribeRequest{} }},
	{health, "", putOf}, // the name of a service has the number of a key
	{"/grpc.health.v1.Health/Check", "", putOf},
}

func txnOf(size int) proto.Message {
	txn := &pb.TxnRequest{}
	for range 100 {
		put := &pb.PutRequest{Key: []byte("drawn"), Value: make([]byte, size/100)}
		txn.Failure = append(txn.Failure, &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: put}})
	}
	return txn
}

func deleteOf(size int) proto.Message {
	return &pb.DeleteRangeRequest{Key: make([]byte, size), PrevKv: true}
}

func watchLong(size int) proto.Message {
	create := &pb.WatchCreateRequest{Key: make([]byte, size), PrevKv: true, ProgressNotify: true}
	return &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: create}}
}

func guessOf(size int) proto.Message {
	return &pb.AuthenticateRequest{Name: "root", Password: string(make([]byte, size))}
}

func userOf(size int) proto.Message {
	return &pb.AuthUserAddRequest{Name: "drawn", Password: string(make([]byte, size))}
}

func campaignOf(size int) proto.Message {
	return &v3electionpb.CampaignRequest{Name: []byte("drawn"), Value: make([]byte, size)}
}

func proposeOf(size int) proto.Message {
	request, _ := proto.Marshal(putOf(size))
	put := &quoratepb.Proposal{Session: 1, Sequence: 1, Kind: quoratepb.Proposal_KIND_PUT, Request: request}
	return &quoratepb.ProposeRequest{Key: []byte("0123456789abcdef0123456789abcdef"), Open: &quoratepb.OpenSession{},
		Proposals: []*quoratepb.Proposal{put}}
}

// draw makes an attack of a seed.
func draw(seed uint64) holding {
	r := rand.New(rand.NewPCG(seed, 0))
	pick := func(of ...int) int { return of[r.IntN(len(of))] }
	d := &drawables[r.IntN(len(drawables))]
	h := holding{drawn: true, seed: seed, path: d.path, message: d.message, size: pick(10, 1000, 60_000, 1_000_000),
		window: uint32(pick(0, 1, 65535)), part: r.IntN(3) == 0, ends: r.IntN(2) == 0,
		metadata: pick(0, 0, 100, 15_000, 60_000), hosts: pick(1, 2, 8), conns: pick(1, 2, 20), streams: pick(10, 300, 9900),
		messages: pick(1, 1, 1, 20), pause: time.Duration(pick(0, 0, 0, 50)) * time.Millisecond, resets: r.IntN(5) == 0,
		secure: r.IntN(3) == 0, users: r.IntN(3) == 0, token: []string{"", "", "guessed.1", loggedIn}[r.IntN(4)]}
	if r.IntN(5) == 0 { // what no service expects
		h.message = drawables[r.IntN(len(drawables))].message
	}
	if d.json != "" && r.IntN(3) == 0 {
		h.path, h.json, h.upgrades = d.json, true, d.path == watches && r.IntN(2) == 0
	}
	if r.IntN(6) == 0 {
		h.peer, h.json, h.upgrades, h.secure = true, false, false, false
		h.path = []string{peerMessages, peerSnapshot, peerCall}[r.IntN(3)]
	}
	h.name = fmt.Sprintf("seed %d: %s, %d B, window %d, half %t, ends %t, metadata %d, %d x %d x %d, %d messages, pause %v, "+
		"resets %t, tls %t, websocket %t, users %t, token %q", seed, h.path, h.size, h.window, h.part, h.ends, h.metadata,
		h.hosts, h.conns, h.streams, h.messages, h.pause, h.resets, h.secure, h.upgrades, h.users, h.token)
	return h
}
