package main

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"
)

const (
	kvRange = "/etcdserverpb.KV/Range"
	kvPut   = "/etcdserverpb.KV/Put"
	watches = "/etcdserverpb.Watch/Watch"
	renewal = "/etcdserverpb.Lease/LeaseKeepAlive"
	health  = "/grpc.health.v1.Health/Watch"

	peerMessages = "/quorate.Peer/Messages"
	peerSnapshot = "/quorate.Peer/Snapshot"
	peerCall     = "/quorate.Peer/Call"

	megabyte = 1_000_000
)

// holdings are the attacks of the second review, and what is like them.
var holdings = []holding{
	{name: "none: what the machine does by itself", none: true},
	{name: "deaf ranges", path: kvRange, message: rangeOf, hosts: 1, conns: 2, streams: 9900, ends: true},
	{name: "deaf ranges, 8 hosts", path: kvRange, message: rangeOf, hosts: 8, conns: 1, streams: 3000, ends: true},
	{name: "half-sent puts", path: kvPut, message: putOf, size: megabyte, part: true, window: 65535, hosts: 1, conns: 1,
		streams: 500},
	{name: "half-sent puts, 8 hosts", path: kvPut, message: putOf, size: megabyte, part: true, window: 65535, hosts: 8,
		conns: 1, streams: 100},
	{name: "half-sent watches", path: watches, message: putOf, size: megabyte, part: true, window: 65535, hosts: 1, conns: 1,
		streams: 1000},
	{name: "long names of services", path: health, message: putOf, size: megabyte, window: 65535, hosts: 1, conns: 1,
		streams: 300, ends: true},
	{name: "idle streams, 8 hosts", path: watches, window: 65535, hosts: 8, conns: 2, streams: 9900},
	{name: "deaf watches", path: watches, message: watchOf, hosts: 2, conns: 1, streams: 9900},
	{name: "long metadata", path: watches, metadata: 15_000, window: 65535, hosts: 2, conns: 1, streams: 5000},
	{name: "large reads", path: kvRange, message: readOf, size: megabyte, window: 65535, hosts: 2, conns: 1, streams: 500,
		ends: true},
	{name: "a long field, named again and again", path: kvRange, metadata: 3900, repeats: 11_000, window: 65535, ends: true,
		hosts: 1, conns: 16, streams: 5000, returns: true},
	{name: "settings without end", path: watches, window: 65535, hosts: 1, conns: 8, streams: 2000, settings: true,
		returns: true},
	{name: "idle connections", hosts: 8, conns: 2000},
	{name: "peer port: half-sent frames", peer: true, path: peerMessages, message: putOf, size: megabyte, part: true,
		window: 65535, hosts: 1, conns: 4, streams: 250},
	{name: "peer port: half-sent snapshots, 8 hosts", peer: true, path: peerSnapshot, message: putOf, size: megabyte,
		part: true, window: 65535, hosts: 8, conns: 4, streams: 250},
	{name: "peer port: half-sent calls, 8 hosts", peer: true, path: peerCall, message: putOf, size: megabyte, part: true,
		window: 65535, hosts: 8, conns: 20, streams: 250},
	{name: "peer port: idle streams, 8 hosts", peer: true, path: peerMessages, window: 65535, hosts: 8, conns: 100,
		streams: 250},
	{name: "peer port: idle connections", peer: true, hosts: 8, conns: 2000},
}

func rangeOf(int) proto.Message {
	return &pb.RangeRequest{Key: []byte("held"), RangeEnd: []byte("hele"), Serializable: true}
}

func putOf(size int) proto.Message  { return &pb.PutRequest{Key: make([]byte, size)} }
func readOf(size int) proto.Message { return &pb.RangeRequest{Key: make([]byte, size)} }
func watchOf(int) proto.Message {
	create := &pb.WatchCreateRequest{Key: []byte("held")}
	return &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: create}}
}

// heldBytes is a value that deaf ranges read: below the size from which answers are counted by themselves.
const heldBytes = 61_000
