package lockapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/limits/admission"
)

// Conn is a connection to etcd's services that acts in the name of the caller in a context: *inproc.Channel.
type Conn = grpc.ClientConnInterface

// Store is what both services need.
type Store struct {
	kv      pb.KVClient
	lease   pb.LeaseClient
	watch   pb.WatchClient
	waiting *admission.HostBound
}

// NewStore makes a store. At most as many callers wait at once as waiting has room for. One with a long name or value counts as
// several.
func NewStore(conn Conn, waiting *admission.HostBound) *Store {
	return &Store{kv: pb.NewKVClient(conn), lease: pb.NewLeaseClient(conn), watch: pb.NewWatchClient(conn), waiting: waiting}
}

const (
	// leaseTTLSeconds is that of a lease which is granted because the caller names none.
	leaseTTLSeconds = 60
	// cleanupPatience is how long the removal of a key may take whose owner has gone.
	cleanupPatience = 10 * time.Second
	// placeBytes are those of a request for each of which its caller takes one place more while it waits: about what a short
	// one takes anyway, for its stream of events.
	placeBytes = 4 << 10
)

var errTooManyWaiting = status.Error(codes.ResourceExhausted,
	"quorate: too many callers wait for locks or elections at this member, or from this address")

// asCaller makes the calls under a context those of the service's caller.
func asCaller(ctx context.Context) context.Context {
	sent, _ := metadata.FromIncomingContext(ctx)
	return metadata.NewOutgoingContext(ctx, sent)
}

// afterwards is a context for what must be done though the caller has gone.
func afterwards(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), cleanupPatience)
}

// leaseOr returns the lease that the caller names, or a new one.
func (s *Store) leaseOr(ctx context.Context, lease int64) (int64, error) {
	if lease != 0 {
		return lease, nil
	}
	granted, err := s.lease.LeaseGrant(ctx, &pb.LeaseGrantRequest{TTL: leaseTTLSeconds})
	return granted.GetID(), err
}

// prefixOf is what all keys of a name begin with, keyOf the one of a lease.
func prefixOf(name []byte) string { return string(name) + "/" }

func keyOf(name []byte, lease int64) []byte { return fmt.Appendf(nil, "%s%x", prefixOf(name), lease) }

// ofName makes a range all keys of a name.
func ofName(r *pb.RangeRequest, name []byte) *pb.RangeRequest {
	r.Key, r.RangeEnd = []byte(prefixOf(name)), append(bytes.Clone(name), '/'+1)
	return r
}

// first is the range of the oldest key of a name.
func first(name []byte) *pb.RangeRequest {
	return ofName(&pb.RangeRequest{
		SortTarget: pb.RangeRequest_CREATE, SortOrder: pb.RangeRequest_ASCEND, Limit: 1,
	}, name)
}

// firstKey is first without the value.
func firstKey(name []byte) *pb.RangeRequest {
	r := first(name)
	r.KeysOnly = true
	return r
}

// createdAt compares the create revision of a key; zero: it does not exist.
func createdAt(key []byte, revision int64) *pb.Compare {
	return &pb.Compare{
		Key: key, Target: pb.Compare_CREATE, Result: pb.Compare_EQUAL,
		TargetUnion: &pb.Compare_CreateRevision{CreateRevision: revision},
	}
}

func putOp(r *pb.PutRequest) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: r}}
}

func rangeOp(r *pb.RangeRequest) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: r}}
}

func deleteOp(key []byte) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: &pb.DeleteRangeRequest{Key: key}}}
}

// awaitTurn waits until no key of a name was created at revision or before, for a request of so many bytes.
func (s *Store) awaitTurn(ctx context.Context, name []byte, revision int64, requestBytes int) error {
	leave, entered := s.waiting.EnterAs(admission.CallerOf(ctx).Host, 1+requestBytes/placeBytes)
	if !entered {
		return errTooManyWaiting
	}
	defer leave()
	before := ofName(&pb.RangeRequest{
		SortTarget: pb.RangeRequest_CREATE, SortOrder: pb.RangeRequest_DESCEND, Limit: 1, MaxCreateRevision: revision,
		KeysOnly: true,
	}, name)
	for {
		found, err := s.kv.Range(ctx, before)
		if err != nil || len(found.Kvs) == 0 {
			return err
		}
		err = s.events(ctx, &pb.WatchCreateRequest{
			Key: found.Kvs[0].Key, StartRevision: found.Header.Revision + 1,
			Filters: []pb.WatchCreateRequest_FilterType{pb.WatchCreateRequest_NOPUT},
		}, func(r *pb.WatchResponse) (done bool, err error) {
			return slices.ContainsFunc(r.Events, isDeletion), nil
		})
		if err != nil && !errors.Is(err, errOvertaken) {
			return err
		}
	}
}

func isDeletion(e *mvccpb.Event) bool { return e.Type == mvccpb.Event_DELETE }

// errOvertaken means that history was compacted before it was watched: the caller that watches reads what there is now.
var errOvertaken = errors.New("lockapi: the history to watch is compacted")

// events watches until see has seen enough.
func (s *Store) events(
	ctx context.Context, create *pb.WatchCreateRequest, see func(*pb.WatchResponse) (done bool, err error),
) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := s.watch.Watch(ctx)
	if err != nil {
		return err
	}
	request := &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: create}}
	if err := stream.Send(request); err != nil && !errors.Is(err, io.EOF) { // EOF: Recv tells why
		return err
	}
	for {
		response, err := stream.Recv()
		if err != nil {
			return err
		}
		if response.Canceled {
			if response.CompactRevision != 0 {
				return errOvertaken
			}
			return canceled(response.CancelReason)
		}
		if done, err := see(response); done || err != nil {
			return err
		}
	}
}

// canceled is the error of a watch that the server ended.
func canceled(reason string) error {
	if _, text, found := strings.Cut(reason, "desc = "); found {
		reason = text // of an error of gRPC
	}
	return errors.New(reason)
}

// etcdsWay gives an error the code that it has in etcd, whose services lose those of the calls that they make.
func etcdsWay(err error) error {
	if err == nil {
		return nil
	}
	s, isStatus := status.FromError(err)
	switch {
	case !isStatus:
		return status.Error(codes.Unknown, err.Error())
	case s.Code() == codes.Canceled, s.Code() == codes.DeadlineExceeded, !strings.HasPrefix(s.Message(), etcdsPrefix):
		return err
	}
	return status.Error(codes.Unknown, s.Message())
}

// etcdsPrefix begins the text of every error of etcd's.
var etcdsPrefix, _, _ = strings.Cut(rpctypes.ErrorDesc(rpctypes.ErrGRPCEmptyKey), " ")
