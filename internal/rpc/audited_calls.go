package rpc

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/internal/base/printable"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/rpc/wire"
	"github.com/quorate/quorate/internal/storage/objects/place"
)

// describe notes what a request names: keys, a lease, and what else tells about it. It never notes a value or a password.
func (r *audited) describe(request any) {
	switch call := request.(type) {
	case *putRequest:
		r.put(&call.Op, call.Size)
	case *deleteRequest:
		r.keep(call.Op.Key, call.Op.End)
		r.event.Size = call.Size
	case *txnRequest:
		r.txn(&call.Op, call.Size)
	case *rangeRequest:
		r.keep(call.Op.Key, call.Op.End)
	case *wire.RangeCall:
		r.keep(call.Op.Key, call.Op.End)
	case *wire.KeepAliveCall:
		r.event.Lease = int64(call.ID)
	case proto.Message:
		r.message(call)
	}
}

func (r *audited) put(op *kv.PutOp, size int) {
	part := r.keep(op.Key, nil)
	part.Size, part.Lease = len(op.Value), int64(op.Lease)
	r.event.Size = size
}

var (
	compareTargets = map[kv.CompareTarget]string{kv.CompareVersion: "version", kv.CompareCreate: "create", kv.CompareMod: "mod",
		kv.CompareValue: "value", kv.CompareLease: "lease"}
	compareResults = map[kv.CompareResult]string{kv.CompareEqual: "=", kv.CompareGreater: ">", kv.CompareLess: "<",
		kv.CompareNotEqual: "!="}
)

// txn notes the parts of a transaction, those of the transactions in it, too. It copies what it keeps.
func (r *audited) txn(op *kv.TxnOp, size int) {
	r.event.Size = size
	for i := range op.Compares {
		c := &op.Compares[i]
		r.part(audit.Part{What: "compare " + compareTargets[c.Target] + " " + compareResults[c.Result], Key: c.Key, End: c.End,
			Size: len(c.Value)})
	}
	for _, list := range [2][]kv.Op{op.Then, op.Else} {
		for i := range list {
			switch one := &list[i]; {
			case one.Put != nil:
				r.part(audit.Part{What: "put", Key: one.Put.Key, Size: len(one.Put.Value), Lease: int64(one.Put.Lease)})
			case one.Delete != nil:
				r.part(audit.Part{What: "delete", Key: one.Delete.Key, End: one.Delete.End})
			case one.Range != nil:
				r.part(audit.Part{What: "range", Key: one.Range.Key, End: one.Range.End})
			case one.Txn != nil:
				r.txn(one.Txn, size)
			}
		}
	}
}

func (r *audited) part(part audit.Part) {
	if len(r.event.Parts) == audit.MaxParts {
		r.event.Left++
		return
	}
	part.Key, part.End = bytes.Clone(part.Key), bytes.Clone(part.End)
	r.event.Parts = append(r.event.Parts, part)
}

// telling are the fields of requests that tell what a call is about. All others are left out: no value, password, token or
// secret has one of these names.
var telling = []protoreflect.Name{"name", "user", "role", "action", "alarm", "memberID", "targetID", "member", "member_id",
	"peerURLs", "isLearner", "id", "job", "job_id", "replaces", "add", "remove", "replace", "promote", "revision", "version",
	"level", "leader", "limit", "ttl_seconds", "uses", "TTL", "physical", "linearizable", "permType"}

// message notes what a request of another service names.
func (r *audited) message(request proto.Message) {
	r.event.Size = proto.Size(request)
	about := r.fields(nil, request.ProtoReflect(), 0)
	r.event.About = strings.Join(about, " ")
	if change, ok := request.(interface{ GetPolicy() string }); ok && r.event.Op == audit.OpAudit {
		r.event.Changes = true
		sum := sha256.Sum256([]byte(change.GetPolicy())) // the text may be longer than what a record has room for
		r.event.About = strings.TrimLeft(
			fmt.Sprintf("%s policy_sha256=%x policy=%s", r.event.About, sum, change.GetPolicy()), " ")
	}
	switch call := request.(type) {
	case *pb.LeaseGrantRequest:
		r.event.Lease = call.ID
	case *pb.AuthenticateRequest:
		r.event.Login = call.Name
	case *quoratepb.SetLimitRequest:
		r.limit(call.GetLimit())
	case *quoratepb.StartBackupRequest:
		r.backup(call)
	}
}

// backup notes where a backup is to go. Text that is no place may have a password in it, and what is given as a recipient may
// be a secret key: of these only their number is noted.
func (r *audited) backup(s *quoratepb.StartBackupRequest) {
	var about []string
	add := func(name string, value any) { about = append(about, fmt.Sprintf("%s=%v", name, value)) }
	if at, err := place.Parse(s.GetPlace()); err == nil {
		add("place", at)
	} else if s.GetPlace() != "" {
		add("place", "(none)")
	}
	for _, number := range []struct {
		name string
		is   int64
	}{{"base_seconds", s.GetBaseSeconds()}, {"seal_ms", s.GetSealMs()}, {"recipients", int64(len(s.GetRecipients()))}} {
		if number.is != 0 {
			add(number.name, number.is)
		}
	}
	if s.VerifySeconds != nil {
		add("verify_seconds", s.GetVerifySeconds())
	}
	if s.GetKeep() != "" {
		add("keep", printable.Text(s.GetKeep(), kv.MaxBackupKeepBytes))
	}
	if s.GetInTheClear() {
		add("in_the_clear", true)
	}
	r.event.About = strings.Join(about, " ")
}

// limit notes the bounds of a limit, and its keys.
func (r *audited) limit(l *quoratepb.Limit) {
	about := []string{"name=" + l.GetName()}
	l.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if field.Kind() == protoreflect.Int64Kind {
			about = append(about, fmt.Sprintf("%s=%d", field.Name(), value.Int()))
		}
		return true
	})
	slices.Sort(about[1:])
	if l.GetUser() != "" {
		about = append(about, "user="+l.GetUser())
	}
	r.event.About = strings.Join(about, " ")
	if l != nil && l.Prefix != nil {
		r.keep(kv.PrefixRange(l.Prefix))
	}
}

// fields appends what the fields of a message say, and notes a key.
func (r *audited) fields(about []string, m protoreflect.Message, depth int) []string {
	var key, end []byte
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.IsList() || field.IsMap():
			if slices.Contains(telling, field.Name()) {
				about = append(about, fmt.Sprintf("%s=%s", field.Name(), value))
			}
		case field.Kind() == protoreflect.MessageKind && depth == 0:
			about = r.fields(about, value.Message(), depth+1)
		case field.Kind() == protoreflect.BytesKind && field.Name() == "key":
			key = value.Bytes()
		case field.Kind() == protoreflect.BytesKind && field.Name() == "range_end":
			end = value.Bytes()
		case field.Name() == "ID" && r.event.Op == audit.OpLease:
			r.event.Lease = value.Int()
		case field.Kind() == protoreflect.EnumKind && slices.Contains(telling, field.Name()):
			about = append(about, fmt.Sprintf("%s=%s", field.Name(), enumName(field, value.Enum())))
		case slices.Contains(telling, field.Name()) || field.Name() == "ID":
			about = append(about, fmt.Sprintf("%s=%s", field.Name(), plain(field, value)))
		}
		return true
	})
	if key != nil || end != nil {
		r.keep(key, end)
	}
	slices.Sort(about)
	return about
}

// plain is the text of a value: ids of 64 bits in hexadecimal, as everywhere.
func plain(field protoreflect.FieldDescriptor, value protoreflect.Value) string {
	switch field.Kind() {
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return strconv.FormatUint(value.Uint(), 16)
	case protoreflect.BytesKind:
		return string(value.Bytes())
	}
	return value.String()
}

func enumName(field protoreflect.FieldDescriptor, number protoreflect.EnumNumber) string {
	if known := field.Enum().Values().ByNumber(number); known != nil {
		return string(known.Name())
	}
	return strconv.Itoa(int(number))
}

// describeAnswer notes the id of a lease that the member chose.
func (r *audited) describeAnswer(response any) {
	if granted, ok := response.(*pb.LeaseGrantResponse); ok && granted != nil {
		r.event.Lease = granted.ID
	}
}

// revisionOf returns the revision in the header of an answer; zero: it has none.
func revisionOf(response any) int64 {
	switch answer := response.(type) {
	case *wire.PutResponse:
		return int64(answer.Header.Revision)
	case *wire.DeleteResponse:
		return int64(answer.Header.Revision)
	case *wire.TxnResponse:
		return int64(answer.Header.Revision)
	case *wire.RangeResponse:
		return int64(answer.Header.Revision)
	case interface{ GetHeader() *pb.ResponseHeader }:
		return answer.GetHeader().GetRevision()
	}
	return 0
}
