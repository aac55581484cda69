package wire

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/internal/kv"
)

// The conversions below go the long way, through the protobuf library, and are what the short way is held against.

func putOf(r *pb.PutRequest) kv.PutOp {
	return kv.PutOp{Key: r.Key, Value: r.Value, Lease: kv.LeaseID(r.Lease), PrevKV: r.PrevKv,
		IgnoreValue: r.IgnoreValue, IgnoreLease: r.IgnoreLease}
}

func deleteOf(r *pb.DeleteRangeRequest) kv.DeleteOp {
	return kv.DeleteOp{Key: r.Key, End: r.RangeEnd, PrevKV: r.PrevKv}
}

func rangeOf(r *pb.RangeRequest) kv.RangeOp {
	op := kv.RangeOp{Key: r.Key, End: r.RangeEnd, Limit: r.Limit, Revision: kv.Revision(r.Revision),
		Order: UnknownSortOrder, Target: UnknownSortTarget, KeysOnly: r.KeysOnly, CountOnly: r.CountOnly,
		MinMod: kv.Revision(r.MinModRevision), MaxMod: kv.Revision(r.MaxModRevision),
		MinCreate: kv.Revision(r.MinCreateRevision), MaxCreate: kv.Revision(r.MaxCreateRevision)}
	if _, ok := pb.RangeRequest_SortOrder_name[int32(r.SortOrder)]; ok {
		op.Order = kv.SortOrder(r.SortOrder)
	}
	if _, ok := pb.RangeRequest_SortTarget_name[int32(r.SortTarget)]; ok {
		op.Target = kv.SortTarget(r.SortTarget)
	}
	return op
}

func txnOf(r *pb.TxnRequest) kv.TxnOp {
	var op kv.TxnOp
	for _, c := range r.Compare {
		out := kv.Compare{Key: c.Key, End: c.RangeEnd, Result: kv.CompareNoResult, Target: kv.CompareNoTarget}
		if _, ok := pb.Compare_CompareResult_name[int32(c.Result)]; ok {
			out.Result = kv.CompareResult(c.Result)
		}
		if _, ok := pb.Compare_CompareTarget_name[int32(c.Target)]; ok {
			out.Target = kv.CompareTarget(c.Target)
		}
		switch c.Target {
		case pb.Compare_VERSION:
			out.Number = c.GetVersion()
		case pb.Compare_CREATE:
			out.Number = c.GetCreateRevision()
		case pb.Compare_MOD:
			out.Number = c.GetModRevision()
		case pb.Compare_LEASE:
			out.Number = c.GetLease()
		case pb.Compare_VALUE:
			out.Value = c.GetValue()
		}
		op.Compares = append(op.Compares, out)
	}
	op.Then, op.Else = opsOf(r.Success), opsOf(r.Failure)
	return op
}

func opsOf(list []*pb.RequestOp) []kv.Op {
	var ops []kv.Op
	for _, r := range list {
		var op kv.Op
		switch {
		case r.GetRequestRange() != nil:
			o := rangeOf(r.GetRequestRange())
			op.Range = &o
		case r.GetRequestPut() != nil:
			o := putOf(r.GetRequestPut())
			op.Put = &o
		case r.GetRequestDeleteRange() != nil:
			o := deleteOf(r.GetRequestDeleteRange())
			op.Delete = &o
		case r.GetRequestTxn() != nil:
			o := txnOf(r.GetRequestTxn())
			op.Txn = &o
		}
		ops = append(ops, op)
	}
	return ops
}

func newCodec() Codec { return Codec{Received: new(atomic.Uint64), Sent: new(atomic.Uint64)} }

var sameMeaning = cmp.Options{cmpopts.EquateEmpty()}

// checkDecode holds one way of reading against the other.
func checkDecode(t *testing.T, kind uint8, src []byte) {
	t.Helper()
	var got, want any
	var gotErr, wantErr error
	switch kind % 5 {
	case 0:
		var c PutCall
		var m pb.PutRequest
		gotErr, wantErr = c.DecodeWire(src), proto.Unmarshal(src, &m)
		got, want = c.Op, putOf(&m)
	case 1:
		var c RangeCall
		var m pb.RangeRequest
		gotErr, wantErr = c.DecodeWire(src), proto.Unmarshal(src, &m)
		if wantErr == nil && c.Serializable != m.Serializable {
			t.Errorf("serializable: got %v, want %v", c.Serializable, m.Serializable)
		}
		got, want = c.Op, rangeOf(&m)
	case 2:
		var c DeleteCall
		var m pb.DeleteRangeRequest
		gotErr, wantErr = c.DecodeWire(src), proto.Unmarshal(src, &m)
		got, want = c.Op, deleteOf(&m)
	case 3:
		var c TxnCall
		var m pb.TxnRequest
		gotErr, wantErr = c.DecodeWire(src), proto.Unmarshal(src, &m)
		got, want = c.Op, txnOf(&m)
	case 4:
		var c KeepAliveCall
		var m pb.LeaseKeepAliveRequest
		gotErr, wantErr = c.DecodeWire(src), proto.Unmarshal(src, &m)
		got, want = c.ID, kv.LeaseID(m.ID)
	}
	if (gotErr == nil) != (wantErr == nil) {
		t.Fatalf("kind %d %x: got error %v, want %v", kind%5, src, gotErr, wantErr)
	}
	if wantErr != nil {
		return
	}
	if diff := cmp.Diff(want, got, sameMeaning); diff != "" {
		t.Fatalf("kind %d %x: read differently (-protobuf +ours):\n%s", kind%5, src, diff)
	}
}

// requests draws requests of every kind.
type requests struct{ *rand.Rand }

func (r requests) bytes() []byte {
	b := make([]byte, r.IntN(12))
	for i := range b {
		b[i] = byte(r.IntN(256))
	}
	return b
}

func (r requests) number() int64 {
	return []int64{0, 1, -1, 127, 128, r.Int64(), -r.Int64(), int64(r.IntN(100))}[r.IntN(8)]
}

func (r requests) bool() bool { return r.IntN(2) == 0 }

func (r requests) put() *pb.PutRequest {
	return &pb.PutRequest{Key: r.bytes(), Value: r.bytes(), Lease: r.number(), PrevKv: r.bool(), IgnoreValue: r.bool(),
		IgnoreLease: r.bool()}
}

func (r requests) ranges() *pb.RangeRequest {
	return &pb.RangeRequest{Key: r.bytes(), RangeEnd: r.bytes(), Limit: r.number(), Revision: r.number(),
		SortOrder: pb.RangeRequest_SortOrder(r.IntN(5) - 1), SortTarget: pb.RangeRequest_SortTarget(r.IntN(7) - 1),
		Serializable: r.bool(), KeysOnly: r.bool(), CountOnly: r.bool(), MinModRevision: r.number(),
		MaxModRevision: r.number(), MinCreateRevision: r.number(), MaxCreateRevision: r.number()}
}

func (r requests) deletes() *pb.DeleteRangeRequest {
	return &pb.DeleteRangeRequest{Key: r.bytes(), RangeEnd: r.bytes(), PrevKv: r.bool()}
}

func (r requests) compare() *pb.Compare {
	c := &pb.Compare{Result: pb.Compare_CompareResult(r.IntN(6) - 1), Target: pb.Compare_CompareTarget(r.IntN(7) - 1),
		Key: r.bytes(), RangeEnd: r.bytes()}
	switch r.IntN(6) {
	case 0:
		c.TargetUnion = &pb.Compare_Version{Version: r.number()}
	case 1:
		c.TargetUnion = &pb.Compare_CreateRevision{CreateRevision: r.number()}
	case 2:
		c.TargetUnion = &pb.Compare_ModRevision{ModRevision: r.number()}
	case 3:
		c.TargetUnion = &pb.Compare_Value{Value: r.bytes()}
	case 4:
		c.TargetUnion = &pb.Compare_Lease{Lease: r.number()}
	}
	return c
}

func (r requests) ops(depth int) []*pb.RequestOp {
	var ops []*pb.RequestOp
	for range r.IntN(4) {
		op := &pb.RequestOp{}
		switch r.IntN(5) {
		case 0:
			op.Request = &pb.RequestOp_RequestRange{RequestRange: r.ranges()}
		case 1:
			op.Request = &pb.RequestOp_RequestPut{RequestPut: r.put()}
		case 2:
			op.Request = &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: r.deletes()}
		case 3:
			if depth > 0 {
				op.Request = &pb.RequestOp_RequestTxn{RequestTxn: r.txn(depth - 1)}
			}
		}
		ops = append(ops, op)
	}
	return ops
}

func (r requests) txn(depth int) *pb.TxnRequest {
	txn := &pb.TxnRequest{Success: r.ops(depth), Failure: r.ops(depth)}
	for range r.IntN(3) {
		txn.Compare = append(txn.Compare, r.compare())
	}
	return txn
}

func (r requests) message(kind uint8) proto.Message {
	switch kind % 5 {
	case 0:
		return r.put()
	case 1:
		return r.ranges()
	case 2:
		return r.deletes()
	case 4:
		return &pb.LeaseKeepAliveRequest{ID: r.number()}
	default:
		return r.txn(3)
	}
}

func TestCodec_Unmarshal_agreesWithProtobuf(t *testing.T) {
	const seed = 1
	r := requests{rand.New(rand.NewPCG(seed, 0))}
	for i := range 1_500 {
		src, err := proto.Marshal(r.message(uint8(i)))
		if err != nil {
			t.Fatal(err)
		}
		checkDecode(t, uint8(i), src)
		// Two messages in a row are their merger; a cut or changed one may be an error, but the same for both.
		more, err := proto.Marshal(r.message(uint8(i)))
		if err != nil {
			t.Fatal(err)
		}
		checkDecode(t, uint8(i), append(bytes.Clone(src), more...))
		if len(src) > 0 {
			checkDecode(t, uint8(i), src[:r.IntN(len(src))])
			changed := bytes.Clone(src)
			changed[r.IntN(len(changed))] = byte(r.IntN(256))
			checkDecode(t, uint8(i), changed)
		}
		if t.Failed() {
			t.Fatalf("seed %d, step %d", seed, i)
		}
	}
}

func FuzzCodec_Unmarshal(f *testing.F) {
	r := requests{rand.New(rand.NewPCG(2, 0))}
	for i := range 60 {
		src, err := proto.Marshal(r.message(uint8(i)))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(i), src)
	}
	f.Fuzz(func(t *testing.T, kind uint8, src []byte) { checkDecode(t, kind, src) })
}

// Results and the messages that they are.

func headerOf(h Header) *pb.ResponseHeader { return h.Message() }

func keyValueOf(p *kv.KeyValue) *mvccpb.KeyValue {
	if p == nil {
		return nil
	}
	return &mvccpb.KeyValue{Key: p.Key, Value: p.Value, CreateRevision: int64(p.CreateRevision),
		ModRevision: int64(p.ModRevision), Version: p.Version, Lease: int64(p.Lease)}
}

func keyValuesOf(all []kv.KeyValue) (out []*mvccpb.KeyValue) {
	for i := range all {
		out = append(out, keyValueOf(&all[i]))
	}
	return out
}

func txnResponseOf(h *pb.ResponseHeader, r *kv.TxnResult) *pb.TxnResponse {
	out := &pb.TxnResponse{Header: h, Succeeded: r.Succeeded}
	for i := range r.Responses {
		op := &r.Responses[i]
		own := &pb.ResponseHeader{Revision: int64(op.Revision)}
		m := &pb.ResponseOp{}
		switch {
		case op.Range != nil:
			m.Response = &pb.ResponseOp_ResponseRange{ResponseRange: &pb.RangeResponse{
				Header: own, Kvs: keyValuesOf(op.Range.KVs), More: op.Range.More, Count: op.Range.Count}}
		case op.Put != nil:
			m.Response = &pb.ResponseOp_ResponsePut{ResponsePut: &pb.PutResponse{
				Header: own, PrevKv: keyValueOf(op.Put.Prev)}}
		case op.Delete != nil:
			m.Response = &pb.ResponseOp_ResponseDeleteRange{ResponseDeleteRange: &pb.DeleteRangeResponse{
				Header: own, Deleted: op.Delete.Deleted, PrevKvs: keyValuesOf(op.Delete.Prevs)}}
		case op.Txn != nil:
			m.Response = &pb.ResponseOp_ResponseTxn{ResponseTxn: txnResponseOf(&pb.ResponseHeader{}, op.Txn)}
		}
		out.Responses = append(out.Responses, m)
	}
	return out
}

func (r requests) header() Header {
	return Header{Cluster: uint64(r.number()), Member: uint64(r.number()), Revision: kv.Revision(r.number()),
		Term: uint64(r.number())}
}

func (r requests) keyValue() kv.KeyValue {
	return kv.KeyValue{Key: r.bytes(), Value: r.bytes(), CreateRevision: kv.Revision(r.number()),
		ModRevision: kv.Revision(r.number()), Version: r.number(), Lease: kv.LeaseID(r.number())}
}

func (r requests) maybe() *kv.KeyValue {
	if r.bool() {
		return nil
	}
	one := r.keyValue()
	return &one
}

func (r requests) keyValues() (all []kv.KeyValue) {
	for range r.IntN(5) {
		all = append(all, r.keyValue())
	}
	return all
}

func (r requests) txnResult(depth int) *kv.TxnResult {
	out := &kv.TxnResult{Succeeded: r.bool()}
	for range r.IntN(4) {
		op := kv.OpResult{Revision: kv.Revision(r.number())}
		switch r.IntN(5) {
		case 0:
			op.Range = &kv.RangeResult{KVs: r.keyValues(), More: r.bool(), Count: r.number()}
		case 1:
			op.Put = &kv.PutResult{Prev: r.maybe()}
		case 2:
			op.Delete = &kv.DeleteResult{Deleted: r.number(), Prevs: r.keyValues()}
		case 3:
			if depth > 0 {
				op.Txn = r.txnResult(depth - 1)
			}
		}
		out.Responses = append(out.Responses, op)
	}
	return out
}

func (r requests) events() (events []kv.Event) {
	for range r.IntN(5) {
		events = append(events, kv.Event{Kind: kv.EventKind(r.IntN(2)), KV: r.keyValue(), Prev: r.maybe()})
	}
	return events
}

func eventsOf(events []kv.Event, withPrev bool) (out []*mvccpb.Event) {
	for i := range events {
		e := &mvccpb.Event{Type: mvccpb.Event_EventType(events[i].Kind), Kv: keyValueOf(&events[i].KV)}
		if withPrev {
			e.PrevKv = keyValueOf(events[i].Prev)
		}
		out = append(out, e)
	}
	return out
}

// response draws a response and gives it both ways.
func (r requests) response(kind int) (Encoder, proto.Message) {
	h := r.header()
	switch kind % 11 {
	case 6, 7, 8:
		return r.leaseResponse(kind%11, h)
	case 9, 10:
		return r.pairsResponse(h)
	case 0:
		prev := r.maybe()
		return &PutResponse{Header: h, Prev: prev}, &pb.PutResponse{Header: headerOf(h), PrevKv: keyValueOf(prev)}
	case 1:
		res := kv.RangeResult{KVs: r.keyValues(), More: r.bool(), Count: r.number()}
		return &RangeResponse{Header: h, Result: res},
			&pb.RangeResponse{Header: headerOf(h), Kvs: keyValuesOf(res.KVs), More: res.More, Count: res.Count}
	case 2:
		res := &kv.DeleteResult{Deleted: r.number(), Prevs: r.keyValues()}
		return &DeleteResponse{Header: h, Result: res},
			&pb.DeleteRangeResponse{Header: headerOf(h), Deleted: res.Deleted, PrevKvs: keyValuesOf(res.Prevs)}
	case 3:
		res := r.txnResult(3)
		return &TxnResponse{Header: h, Result: res}, txnResponseOf(headerOf(h), res)
	case 4:
		res := kv.RangeResult{KVs: r.keyValues(), More: r.bool(), Count: r.number()}
		m := &pb.RangeResponse{Kvs: keyValuesOf(res.KVs), More: res.More, Count: res.Count}
		headless := r.bool()
		if !headless {
			m.Header = headerOf(h)
		}
		return &RangeChunk{Response: RangeResponse{Header: h, Headless: headless, Result: res}},
			&pb.RangeStreamResponse{RangeResponse: m}
	default:
		events, withPrev := r.events(), r.bool()
		ours := &WatchResponse{Header: h, ID: r.number(), Created: r.bool(), Canceled: r.bool(), Fragment: r.bool(),
			CompactRevision: kv.Revision(r.number()), CancelReason: []string{"", "why"}[r.IntN(2)],
			Events: EncodeEvents(events, withPrev)}
		return ours, &pb.WatchResponse{Header: headerOf(h), WatchId: ours.ID, Created: ours.Created,
			Canceled: ours.Canceled, Fragment: ours.Fragment, CompactRevision: int64(ours.CompactRevision),
			CancelReason: ours.CancelReason, Events: eventsOf(events, withPrev)}
	}
}

func TestCodec_Marshal_sameBytesAsProtobuf(t *testing.T) {
	const seed = 3
	r := requests{rand.New(rand.NewPCG(seed, 0))}
	for i := range 6_000 {
		ours, message := r.response(i)
		want, err := proto.MarshalOptions{Deterministic: true}.Marshal(message)
		if err != nil {
			t.Fatal(err)
		}
		size := ours.SizeWire()
		buffers, err := newCodec().Marshal(ours)
		if err != nil {
			t.Fatal(err)
		}
		got := buffers.Materialize()
		buffers.Free()
		if size != len(want) || !bytes.Equal(got, want) {
			t.Fatalf("seed %d, step %d, %T: got %x (size %d), want %x", seed, i, ours, got, size, want)
		}
	}
}

func TestCodec_Unmarshal_keepsRequestsAfterBuffersAreFreed(t *testing.T) {
	value := bytes.Repeat([]byte("v"), 5000)
	src, err := proto.Marshal(&pb.PutRequest{Key: []byte("k"), Value: value})
	if err != nil {
		t.Fatal(err)
	}
	pool := mem.DefaultBufferPool()
	buffer := pool.Get(len(src))
	copy(*buffer, src)
	data := mem.BufferSlice{mem.NewBuffer(buffer, pool)}
	var call PutCall
	if err := newCodec().Unmarshal(data, &call); err != nil {
		t.Fatal(err)
	}
	clear(*buffer)
	data.Free()
	if !bytes.Equal(call.Op.Value, value) {
		t.Fatal("the request changed when its buffer was reused")
	}
}

func TestCodec_Unmarshal_limitsNesting(t *testing.T) {
	// Written from the inside out, and therefore backwards.
	var reversed []byte
	for range maxNesting / 2 {
		for _, field := range []byte{4, 2} { // RequestOp.request_txn in TxnRequest.success
			prefix := appendLength(nil, field, len(reversed))
			for i := len(prefix) - 1; i >= 0; i-- {
				reversed = append(reversed, prefix[i])
			}
		}
	}
	slices.Reverse(reversed)
	inner := reversed
	var call TxnCall
	if err := call.DecodeWire(inner); err == nil {
		t.Fatal("a transaction nested beyond the limit was read")
	}
}
