package keys

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/console/page"
)

// mostLoaded bounds a value that is read to be shown, edited or compared.
const mostLoaded = 4 << 20

// versionAt asks for the version that is current at a revision; 0: now.
func versionAt(ctx context.Context, r *page.Request, key []byte, at int64) (*quoratepb.VersionsAnswer, error) {
	ask := &quoratepb.VersionsRequest{Key: key, Limit: 1, KeysOnly: true, Authors: true}
	if at > 0 {
		ask.BeforeRevision = at + 1
	}
	answer, err := quoratepb.NewHistoryClient(r.Conn).Versions(ctx, ask)
	if err == nil && at > 0 && at < answer.GetFirstRevision() {
		return nil, badf("Revision %d is compacted: the history is kept since revision %d.", at, answer.GetFirstRevision())
	}
	return answer, err
}

// read reads the value of a key at a revision; 0: now, and then of is changed to what was read.
func read(ctx context.Context, r *page.Request, key []byte, at int64, of *quoratepb.KeyVersion) (*mvccpb.KeyValue, error) {
	answer, err := pb.NewKVClient(r.Conn).Range(ctx, &pb.RangeRequest{Key: key, Revision: at, Serializable: true})
	if err != nil || len(answer.GetKvs()) == 0 {
		return nil, err
	}
	kv := answer.GetKvs()[0]
	if of.ModRevision != kv.GetModRevision() {
		of.Author, of.After, of.Before = nil, nil, nil
	}
	of.ModRevision, of.CreateRevision, of.Version = kv.GetModRevision(), kv.GetCreateRevision(), kv.GetVersion()
	of.Lease, of.Size = kv.GetLease(), int64(len(kv.GetValue()))
	return kv, nil
}

// current reads a key as all acknowledged writes have left it; nil: it does not exist.
func current(ctx context.Context, r *page.Request, key []byte) (*mvccpb.KeyValue, error) {
	answer, err := pb.NewKVClient(r.Conn).Range(ctx, &pb.RangeRequest{Key: key})
	if err != nil || len(answer.GetKvs()) == 0 {
		return nil, err
	}
	return answer.GetKvs()[0], nil
}
