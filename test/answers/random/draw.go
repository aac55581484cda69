package main

import (
	"bytes"
	"math/rand"

	"go.etcd.io/etcd/api/v3/authpb"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"
)

// lastKey is above all keys that are drawn.
const lastKey = "z"

// leases is the beginning of the methods for them.
const leases = "/etcdserverpb.Lease/"

// request is a call with the type of its answer.
type request struct {
	method            string
	message, response proto.Message
	changesUsers      bool
}

func kvCall(method string, message, response proto.Message) request {
	return request{method: "/etcdserverpb.KV/" + method, message: message, response: response}
}

func leaseCall(method string, message, response proto.Message) request {
	return request{method: leases + method, message: message, response: response}
}

func changesUsers(method string, message, response proto.Message) request {
	return request{"/etcdserverpb.Auth/" + method, message, response, true}
}

// drawer draws requests that meet each other often: few keys, leases and users.
type drawer struct {
	rng      *rand.Rand
	users    bool
	revision int64
}

// learn takes note of a revision that a cluster has reached.
func (d *drawer) learn(revision int64) { d.revision = max(d.revision, revision) }

func (d *drawer) user() string {
	if !d.users {
		return ""
	}
	return []string{"root", "one", "two"}[d.rng.Intn(3)]
}

func (d *drawer) chance(of int) bool { return d.rng.Intn(of) == 0 }

func (d *drawer) request() request {
	if d.users && d.chance(25) {
		return d.auth()
	}
	switch d.rng.Intn(20) {
	case 0, 1, 2, 3, 4:
		return kvCall("Put", d.put(false), &pb.PutResponse{})
	case 5, 6, 7, 8:
		return kvCall("Range", d.read(), &pb.RangeResponse{})
	case 9, 10:
		return kvCall("DeleteRange", d.delete(), &pb.DeleteRangeResponse{})
	case 11, 12, 13, 14:
		deleted := false
		return kvCall("Txn", d.txn(0, &deleted), &pb.TxnResponse{})
	case 15:
		if d.chance(6) {
			r := &pb.CompactionRequest{Revision: d.old(), Physical: d.chance(2)}
			return kvCall("Compact", r, &pb.CompactionResponse{})
		}
		return leaseCall("LeaseLeases", &pb.LeaseLeasesRequest{}, &pb.LeaseLeasesResponse{})
	case 16, 17:
		return leaseCall("LeaseGrant", &pb.LeaseGrantRequest{ID: d.lease(), TTL: int64(d.rng.Intn(3)+1) * 100_000},
			&pb.LeaseGrantResponse{})
	case 18:
		return leaseCall("LeaseRevoke", &pb.LeaseRevokeRequest{ID: d.lease()}, &pb.LeaseRevokeResponse{})
	default:
		return leaseCall("LeaseTimeToLive", &pb.LeaseTimeToLiveRequest{ID: d.lease(), Keys: d.chance(2)},
			&pb.LeaseTimeToLiveResponse{})
	}
}

// auth changes what users may do, or asks for it. A key has always the same end in permissions: of several permissions that
// begin with one key etcd finds only the first when one of them is granted again.
func (d *drawer) auth() request {
	names := []string{"one", "two", "three"}
	name, role := names[d.rng.Intn(3)], names[d.rng.Intn(3)]
	at := d.rng.Intn(len(keys))
	key, end := []byte(keys[at]), [][]byte{nil, []byte("g"), {0}}[at%3]
	switch d.rng.Intn(9) {
	case 0, 1, 2:
		permission := &authpb.Permission{PermType: authpb.Permission_Type(d.rng.Intn(3)), Key: key, RangeEnd: end}
		return changesUsers("RoleGrantPermission", &pb.AuthRoleGrantPermissionRequest{Name: role, Perm: permission},
			&pb.AuthRoleGrantPermissionResponse{})
	case 3:
		return changesUsers("RoleRevokePermission", &pb.AuthRoleRevokePermissionRequest{Role: role, Key: key, RangeEnd: end},
			&pb.AuthRoleRevokePermissionResponse{})
	case 4:
		return changesUsers("UserGrantRole", &pb.AuthUserGrantRoleRequest{User: name, Role: role},
			&pb.AuthUserGrantRoleResponse{})
	case 5:
		return changesUsers("UserRevokeRole", &pb.AuthUserRevokeRoleRequest{Name: name, Role: role},
			&pb.AuthUserRevokeRoleResponse{})
	case 6:
		return changesUsers("UserGet", &pb.AuthUserGetRequest{Name: name}, &pb.AuthUserGetResponse{})
	case 7:
		return changesUsers("RoleGet", &pb.AuthRoleGetRequest{Role: role}, &pb.AuthRoleGetResponse{})
	default:
		return changesUsers("RoleAdd", &pb.AuthRoleAddRequest{Name: role}, &pb.AuthRoleAddResponse{})
	}
}

var keys = []string{"a", "a\x00", "ab", "b", "c", "d", "e\xff", "f"}

func (d *drawer) key() []byte {
	if d.chance(200) {
		return nil
	}
	return []byte(keys[d.rng.Intn(len(keys))])
}

// rangeOf is one key, a range, all from a key on, or a range without keys: the latter not if users are on, because whom etcd
// permits it follows the shape of a tree.
func (d *drawer) rangeOf() (key, end []byte) {
	switch key = d.key(); d.rng.Intn(5) {
	case 0:
		if end = d.key(); d.users && bytes.Compare(key, end) >= 0 {
			end = nil
		}
		return key, end
	case 1:
		return key, []byte{0}
	case 2:
		return key, []byte("g")
	default:
		return key, nil
	}
}

func (d *drawer) lease() int64 { return int64(d.rng.Intn(4)) + 1 }

// old is a revision: mostly of the past, at times of the future, or none at all.
func (d *drawer) old() int64 {
	switch {
	case d.chance(3):
		return 0
	case d.chance(20):
		return -1
	}
	return max(d.revision+2-int64(d.rng.Intn(30)), 0)
}

// put draws a put. After a deletion in the same transaction it keeps nothing of what was there: etcd panics on some of these.
func (d *drawer) put(deleted bool) *pb.PutRequest {
	r := &pb.PutRequest{Key: d.key(), Value: []byte{byte('0' + d.rng.Intn(10))}, PrevKv: d.chance(2)}
	if d.chance(3) {
		r.Lease = d.lease()
	}
	if !deleted && d.chance(5) {
		r.IgnoreValue = true
		if !d.chance(4) {
			r.Value = nil
		}
	}
	if !deleted && d.chance(5) {
		r.IgnoreLease = true
		if !d.chance(4) {
			r.Lease = 0
		}
	}
	return r
}

func (d *drawer) delete() *pb.DeleteRangeRequest {
	key, end := d.rangeOf()
	return &pb.DeleteRangeRequest{Key: key, RangeEnd: end, PrevKv: d.chance(2)}
}

func (d *drawer) read() *pb.RangeRequest {
	key, end := d.rangeOf()
	r := &pb.RangeRequest{Key: key, RangeEnd: end, KeysOnly: d.chance(4), CountOnly: d.chance(6),
		SortOrder: pb.RangeRequest_SortOrder(d.rng.Intn(3)), SortTarget: pb.RangeRequest_SortTarget(d.rng.Intn(5))}
	if d.chance(2) {
		r.Revision = d.old()
	}
	if d.chance(3) {
		r.Limit = int64(d.rng.Intn(5)) - 1
	}
	for _, bound := range []*int64{&r.MinModRevision, &r.MaxModRevision, &r.MinCreateRevision, &r.MaxCreateRevision} {
		if d.chance(10) {
			*bound = d.old()
		}
	}
	return r
}

func (d *drawer) compare() *pb.Compare {
	c := &pb.Compare{Result: pb.Compare_CompareResult(d.rng.Intn(4)), Target: pb.Compare_CompareTarget(d.rng.Intn(5))}
	if c.Key = d.key(); d.chance(4) {
		c.Key, c.RangeEnd = d.rangeOf()
	}
	switch c.Target {
	case pb.Compare_VERSION:
		c.TargetUnion = &pb.Compare_Version{Version: int64(d.rng.Intn(4))}
	case pb.Compare_CREATE:
		c.TargetUnion = &pb.Compare_CreateRevision{CreateRevision: d.old()}
	case pb.Compare_MOD:
		c.TargetUnion = &pb.Compare_ModRevision{ModRevision: d.old()}
	case pb.Compare_VALUE:
		c.TargetUnion = &pb.Compare_Value{Value: []byte{byte('0' + d.rng.Intn(10))}}
	case pb.Compare_LEASE:
		c.TargetUnion = &pb.Compare_Lease{Lease: d.lease() - 1}
	}
	return c
}

// txn draws a transaction with one operation at least: those that only compare are answered otherwise on purpose.
func (d *drawer) txn(depth int, deleted *bool) *pb.TxnRequest {
	r := &pb.TxnRequest{}
	for range d.rng.Intn(3) {
		r.Compare = append(r.Compare, d.compare())
	}
	for range d.rng.Intn(4) + 1 {
		r.Success = append(r.Success, d.op(depth, deleted))
	}
	for range d.rng.Intn(4) + 1 {
		r.Failure = append(r.Failure, d.op(depth, deleted))
	}
	return r
}

func (d *drawer) op(depth int, deleted *bool) *pb.RequestOp {
	switch n := d.rng.Intn(10); {
	case n < 4:
		return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: d.put(*deleted)}}
	case n < 6:
		*deleted = true
		return &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: d.delete()}}
	case n < 9 || depth == 2:
		return &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: d.read()}}
	}
	return &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: d.txn(depth+1, deleted)}}
}

// watch draws a watch whose range has lastKey, from a revision that there is.
func (d *drawer) watch() *pb.WatchCreateRequest {
	r := &pb.WatchCreateRequest{Key: d.key(), RangeEnd: []byte{0}, PrevKv: d.chance(2),
		StartRevision: min(max(d.old(), 0), d.revision)}
	if len(r.Key) == 0 {
		r.Key = []byte("b")
	}
	if d.chance(4) {
		r.Filters = []pb.WatchCreateRequest_FilterType{pb.WatchCreateRequest_NODELETE}
	}
	return r
}
