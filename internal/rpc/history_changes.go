package rpc

import (
	"context"
	"encoding/binary"
	"math"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/mvcc"
	"github.com/quorate/quorate/internal/rpc/wire"
)

// serveChanges returns changes of the keys of a range.
func (h *historyService) serveChanges(ctx context.Context, r *quoratepb.ChangesRequest) (*wire.Counted, error) {
	limit, err := historyLimit(r.GetLimit())
	switch {
	case err != nil:
		return nil, err
	case len(r.GetKey()) == 0:
		return nil, rpctypes.ErrGRPCEmptyKey
	case r.GetBeforeRevision() < 0:
		return nil, status.Errorf(codes.InvalidArgument, "quorate: before_revision is %d: give a revision, or 0",
			r.GetBeforeRevision())
	}
	key, end := r.GetKey(), r.GetRangeEnd()
	q := &mvcc.ChangeQuery{Key: key, End: end, Before: kv.Rev{Main: kv.Revision(r.GetBeforeRevision())},
		Authors: r.GetAuthors(), Limit: limit, Bytes: mostHistoryBytes, Changes: mostHistoryChanges}
	if page := r.GetPage(); len(page) > 0 {
		if q.Before, err = changeOf(page); err != nil {
			return nil, err
		}
	}
	return h.readFor(ctx, key, end, r.GetLinearizable(), h.bounds.deleted, func(f *historyFrom) (proto.Message, error) {
		page, err := f.machine.Store().Changes(q, f.account)
		if err != nil {
			return nil, err
		}
		answer := &quoratepb.ChangesAnswer{ClusterId: h.cluster, MemberId: h.self, Revision: int64(page.Revision),
			FirstRevision: int64(page.First), LookedAt: int64(page.Looked), NextPage: changeToken(page.Next)}
		if q.Authors {
			if err := f.account.Take(len(page.Changes) * momentsOverhead); err != nil {
				return nil, err
			}
			f.names = h.namesFor(f.by, f.users, f.machine.Moments())
		}
		for i := range page.Changes {
			c := &page.Changes[i]
			one := &quoratepb.KeyChange{Key: c.Key, ModRevision: int64(c.At.Main), Created: c.Created, Deleted: c.Deleted}
			if q.Authors {
				f.names.tellChange(one, c.By)
			}
			answer.Changes = append(answer.Changes, one)
		}
		return answer, nil
	})
}

// A page token of changes is the form, and the position before which the page begins. It grants nothing: whoever may read the
// range may read it from any position.
const changeTokenLen = 1 + 8 + 4

func changeToken(next kv.Rev) []byte {
	if next == (kv.Rev{}) {
		return nil
	}
	token := append(make([]byte, 0, changeTokenLen), pageForm)
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(token, uint64(next.Main)), uint32(next.Sub))
}

// changeOf reverses changeToken.
func changeOf(token []byte) (kv.Rev, error) {
	if len(token) == changeTokenLen && token[0] == pageForm {
		at := kv.Rev{Main: kv.Revision(binary.BigEndian.Uint64(token[1:])), Sub: int64(binary.BigEndian.Uint32(token[9:]))}
		if at.Main > 0 && at.Main < math.MaxInt64 {
			return at, nil
		}
	}
	return kv.Rev{}, status.Error(codes.InvalidArgument, "quorate: the page is none of this method: give next_page of the "+
		"answer before, or begin without a page")
}
