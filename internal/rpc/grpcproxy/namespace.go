package grpcproxy

import (
	"bytes"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/v3electionpb"
	"github.com/quorate/quorate/api/v3lockpb"
	"github.com/quorate/quorate/internal/rpc/wire"
)

// namespace is the prefix of all keys that clients may name; empty: there is none, and no message is read.
type namespace []byte

// keyed are the methods whose messages name keys, with a message of each direction.
var keyed = map[string]struct{ request, response proto.Message }{
	pb.KV_Range_FullMethodName:              {(*pb.RangeRequest)(nil), (*pb.RangeResponse)(nil)},
	pb.KV_RangeStream_FullMethodName:        {(*pb.RangeRequest)(nil), (*pb.RangeStreamResponse)(nil)},
	pb.KV_Put_FullMethodName:                {(*pb.PutRequest)(nil), (*pb.PutResponse)(nil)},
	pb.KV_DeleteRange_FullMethodName:        {(*pb.DeleteRangeRequest)(nil), (*pb.DeleteRangeResponse)(nil)},
	pb.KV_Txn_FullMethodName:                {(*pb.TxnRequest)(nil), (*pb.TxnResponse)(nil)},
	pb.Watch_Watch_FullMethodName:           {(*pb.WatchRequest)(nil), (*pb.WatchResponse)(nil)},
	v3lockpb.Lock_Lock_FullMethodName:       {(*v3lockpb.LockRequest)(nil), (*v3lockpb.LockResponse)(nil)},
	v3lockpb.Lock_Unlock_FullMethodName:     {(*v3lockpb.UnlockRequest)(nil), nil},
	pb.Lease_LeaseTimeToLive_FullMethodName: {nil, (*pb.LeaseTimeToLiveResponse)(nil)},
	v3electionpb.Election_Campaign_FullMethodName: {(*v3electionpb.CampaignRequest)(nil),
		(*v3electionpb.CampaignResponse)(nil)},
	v3electionpb.Election_Proclaim_FullMethodName: {(*v3electionpb.ProclaimRequest)(nil), nil},
	v3electionpb.Election_Leader_FullMethodName:   {(*v3electionpb.LeaderRequest)(nil), (*v3electionpb.LeaderResponse)(nil)},
	v3electionpb.Election_Observe_FullMethodName:  {(*v3electionpb.LeaderRequest)(nil), (*v3electionpb.LeaderResponse)(nil)},
	v3electionpb.Election_Resign_FullMethodName:   {(*v3electionpb.ResignRequest)(nil), nil},
}

// keyless are the other methods that may be called with a namespace: their messages name no keys, or what etcd's proxy lets
// through, too: permissions of roles, and backups, which name whole keys.
func keyless(m *method) bool {
	switch m.service {
	case pb.Lease_ServiceDesc.ServiceName, pb.Cluster_ServiceDesc.ServiceName, pb.Maintenance_ServiceDesc.ServiceName,
		pb.Auth_ServiceDesc.ServiceName, "grpc.health.v1.Health":
		return true
	}
	return m.fullName() == pb.KV_Compact_FullMethodName
}

// admits refuses methods whose messages the proxy does not know, and that could name keys.
func (n namespace) admits(m *method, name string) error {
	if _, known := keyed[name]; len(n) == 0 || known || keyless(m) {
		return nil
	}
	return status.Errorf(codes.Unimplemented, "quorate: %s cannot be called through a proxy with --namespace: call a member",
		name)
}

// request puts the prefix before the keys of a request.
func (n namespace) request(m *method, f *frame) error {
	if kind := keyed[m.fullName()].request; len(n) > 0 && kind != nil {
		return rewrite(f, kind, n.prefix)
	}
	return nil
}

// response takes the prefix off the keys of a response.
func (n namespace) response(m *method, f *frame) error {
	if kind := keyed[m.fullName()].response; len(n) > 0 && kind != nil {
		return rewrite(f, kind, n.strip)
	}
	return nil
}

// reads tells whether messages of a method are read in one direction, for which they are in memory several times.
func (n namespace) reads(m *method) bool {
	_, reads := keyed[m.fullName()]
	return len(n) > 0 && reads
}

// rewrite changes the message in a frame. Fields that are not known here are left out: they could name keys.
func rewrite(f *frame, kind proto.Message, change func(proto.Message) error) error {
	message := kind.ProtoReflect().New().Interface()
	encoded := f.bytes()
	if err := wire.CheckParts(encoded, message); err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	err := proto.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(encoded, message)
	if err == nil {
		if err := change(message); err != nil {
			return err
		}
		encoded, err = proto.Marshal(message)
	}
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	f.data = mem.BufferSlice{mem.SliceBuffer(encoded)}
	return nil
}

func (n namespace) key(key []byte) []byte { return append(bytes.Clone(n), key...) }

// interval puts the prefix before a range.
func (n namespace) interval(key, end *[]byte) {
	*key = n.key(*key)
	switch {
	case len(*end) == 1 && (*end)[0] == 0: // to the end of all keys
		*end = n.end()
	case len(*end) > 0:
		*end = n.key(*end)
	}
}

// end is the first key behind all that have the prefix; a zero byte, which stands for the end of all keys, if there is none.
func (n namespace) end() []byte {
	end := bytes.Clone(n)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return []byte{0}
}

// prefix changes the keys of a request. An empty key is refused as a member would: with the prefix before it, it is a key.
func (n namespace) prefix(message proto.Message) error {
	switch r := message.(type) {
	case *pb.RangeRequest:
		return n.prefixInterval(&r.Key, &r.RangeEnd)
	case *pb.PutRequest:
		return n.prefixKey(&r.Key)
	case *pb.DeleteRangeRequest:
		return n.prefixInterval(&r.Key, &r.RangeEnd)
	case *pb.TxnRequest:
		return n.prefixTxn(r)
	case *pb.WatchRequest:
		if create := r.GetCreateRequest(); create != nil {
			if len(create.Key) == 0 { // a member takes it for this
				create.Key = []byte{0}
			}
			n.interval(&create.Key, &create.RangeEnd)
		}
	case *v3lockpb.LockRequest: // names are the beginning of keys, and may be empty
		r.Name = n.key(r.Name)
	case *v3lockpb.UnlockRequest:
		return n.prefixKey(&r.Key)
	case *v3electionpb.CampaignRequest:
		r.Name = n.key(r.Name)
	case *v3electionpb.LeaderRequest:
		r.Name = n.key(r.Name)
	case *v3electionpb.ProclaimRequest:
		return n.prefixLeader(r.Leader)
	case *v3electionpb.ResignRequest:
		return n.prefixLeader(r.Leader)
	}
	return nil
}

func (n namespace) prefixKey(key *[]byte) error {
	if len(*key) == 0 {
		return rpctypes.ErrGRPCEmptyKey
	}
	*key = n.key(*key)
	return nil
}

func (n namespace) prefixInterval(key, end *[]byte) error {
	if len(*key) == 0 {
		return rpctypes.ErrGRPCEmptyKey
	}
	n.interval(key, end)
	return nil
}

func (n namespace) prefixLeader(leader *v3electionpb.LeaderKey) error {
	if leader == nil {
		return nil // a member says what is wrong
	}
	leader.Name = n.key(leader.Name)
	return n.prefixKey(&leader.Key)
}

func (n namespace) prefixTxn(r *pb.TxnRequest) error {
	for _, c := range r.Compare {
		if c == nil {
			continue
		}
		if err := n.prefixInterval(&c.Key, &c.RangeEnd); err != nil {
			return err
		}
	}
	for _, ops := range [][]*pb.RequestOp{r.Success, r.Failure} {
		for _, op := range ops {
			if err := n.prefixOp(op); err != nil {
				return err
			}
		}
	}
	return nil
}

func (n namespace) prefixOp(op *pb.RequestOp) error {
	switch {
	case op.GetRequestRange() != nil:
		return n.prefix(op.GetRequestRange())
	case op.GetRequestPut() != nil:
		return n.prefix(op.GetRequestPut())
	case op.GetRequestDeleteRange() != nil:
		return n.prefix(op.GetRequestDeleteRange())
	case op.GetRequestTxn() != nil:
		return n.prefixTxn(op.GetRequestTxn())
	}
	return nil
}

// strip changes the keys of a response. Those without the prefix are of a lease that others have attached keys to: they are
// left out.
func (n namespace) strip(message proto.Message) error {
	switch r := message.(type) {
	case *pb.RangeResponse:
		n.stripAll(r.Kvs)
	case *pb.RangeStreamResponse:
		n.stripAll(r.GetRangeResponse().GetKvs())
	case *pb.PutResponse:
		n.stripAll([]*mvccpb.KeyValue{r.PrevKv})
	case *pb.DeleteRangeResponse:
		n.stripAll(r.PrevKvs)
	case *pb.TxnResponse:
		n.stripTxn(r)
	case *pb.WatchResponse:
		for _, e := range r.Events {
			n.stripAll([]*mvccpb.KeyValue{e.GetKv(), e.GetPrevKv()})
		}
	case *pb.LeaseTimeToLiveResponse:
		var own [][]byte
		for _, key := range r.Keys {
			if bytes.HasPrefix(key, n) {
				own = append(own, key[len(n):])
			}
		}
		r.Keys = own
	case *v3lockpb.LockResponse:
		r.Key = bytes.TrimPrefix(r.Key, n)
	case *v3electionpb.CampaignResponse:
		if r.Leader != nil {
			r.Leader.Name, r.Leader.Key = bytes.TrimPrefix(r.Leader.Name, n), bytes.TrimPrefix(r.Leader.Key, n)
		}
	case *v3electionpb.LeaderResponse:
		n.stripAll([]*mvccpb.KeyValue{r.Kv})
	}
	return nil
}

func (n namespace) stripAll(kvs []*mvccpb.KeyValue) {
	for _, kv := range kvs {
		if kv != nil {
			kv.Key = bytes.TrimPrefix(kv.Key, n)
		}
	}
}

func (n namespace) stripTxn(r *pb.TxnResponse) {
	for _, op := range r.Responses {
		switch {
		case op.GetResponseRange() != nil:
			n.stripAll(op.GetResponseRange().Kvs)
		case op.GetResponsePut() != nil:
			n.stripAll([]*mvccpb.KeyValue{op.GetResponsePut().PrevKv})
		case op.GetResponseDeleteRange() != nil:
			n.stripAll(op.GetResponseDeleteRange().PrevKvs)
		case op.GetResponseTxn() != nil:
			n.stripTxn(op.GetResponseTxn())
		}
	}
}
