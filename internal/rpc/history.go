package rpc

import (
	"bytes"
	"context"
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/kv/mvcc"
	"github.com/quorate/quorate/internal/limits/admission"
	"github.com/quorate/quorate/internal/rpc/split"
	"github.com/quorate/quorate/internal/rpc/top"
	"github.com/quorate/quorate/internal/rpc/wire"
)

// historyService is the native History service: what this member's store keeps of the past.
//
// Invariants:
//  1. A caller learns of no key that a Range of etcd's would not show it: the permission to read the range is asked for, again
//     if users or roles change while it is read.
//  2. A call looks at no more than the bounds below, however large the range and the history are.
//  3. A page token grants nothing: its key must lie in the range of the request.
//  4. A user without the role root learns no other user's name, as by etcd's UserList.
type historyService struct{ *shared }

// Bounds of one call. Looking at a row takes a microsecond or less, at a change a tenth of that.
const (
	mostHistoryItems   = 1000     // versions, or keys, in one answer
	mostHistoryBytes   = 1 << 20  // of values in one answer
	mostHistoryRead    = 4 << 20  // of rows that are read
	mostHistoryRows    = 32 << 10 // that are looked at
	mostHistoryChanges = 128 << 10
)

// serveVersions returns versions of a key.
func (h *historyService) serveVersions(ctx context.Context, r *quoratepb.VersionsRequest) (*wire.Counted, error) {
	limit, err := historyLimit(r.GetLimit())
	switch {
	case err != nil:
		return nil, err
	case len(r.GetKey()) == 0:
		return nil, rpctypes.ErrGRPCEmptyKey
	case r.GetBeforeRevision() < 0:
		return nil, status.Errorf(codes.InvalidArgument, "quorate: before_revision is %d: give next_before of the answer "+
			"before, or 0", r.GetBeforeRevision())
	}
	q := &mvcc.VersionQuery{Key: r.GetKey(), Before: kv.Revision(r.GetBeforeRevision()), Values: !r.GetKeysOnly(),
		Authors: r.GetAuthors(), Limit: limit, Bytes: mostHistoryBytes}
	if r.GetKeysOnly() {
		q.Bytes = mostHistoryRead
	}
	return h.readFor(ctx, r.GetKey(), nil, r.GetLinearizable(), nil, func(f *historyFrom) (proto.Message, error) {
		page, err := f.machine.Store().Versions(q, f.account)
		if err != nil {
			return nil, err
		}
		if q.Authors {
			if err := f.account.Take(len(page.Versions) * momentsOverhead); err != nil {
				return nil, err
			}
			f.names = h.namesFor(f.by, f.users, f.machine.Moments())
		}
		answer := &quoratepb.VersionsAnswer{ClusterId: h.cluster, MemberId: h.self, Revision: int64(page.Revision),
			FirstRevision: int64(page.First), NextBefore: int64(page.Next)}
		for i := range page.Versions {
			one := versionMessage(&page.Versions[i])
			if q.Authors {
				f.names.tell(one, page.Versions[i].By)
			}
			answer.Versions = append(answer.Versions, one)
		}
		return answer, nil
	})
}

// serveDeleted returns keys of a range that are gone.
func (h *historyService) serveDeleted(ctx context.Context, r *quoratepb.DeletedRequest) (*wire.Counted, error) {
	limit, err := historyLimit(r.GetLimit())
	switch {
	case err != nil:
		return nil, err
	case len(r.GetKey()) == 0:
		return nil, rpctypes.ErrGRPCEmptyKey
	case r.GetAtRevision() < 0:
		return nil, status.Errorf(codes.InvalidArgument, "quorate: at_revision is %d: give a revision, or 0 for what each "+
			"deletion took", r.GetAtRevision())
	}
	key, end := r.GetKey(), r.GetRangeEnd()
	q := &mvcc.DeletedQuery{Key: key, End: end, At: kv.Revision(r.GetAtRevision()), Existing: r.GetExisting(),
		Authors: r.GetAuthors(), Limit: limit, Bytes: mostHistoryRead, Rows: mostHistoryRows, Changes: mostHistoryChanges}
	if q.From, err = fromOf(r); err != nil {
		return nil, err
	}
	turns := h.bounds.deleted
	return h.readFor(ctx, key, end, r.GetLinearizable(), turns, func(f *historyFrom) (proto.Message, error) {
		page, err := f.machine.Store().Deleted(q, f.account)
		if err != nil {
			return nil, err
		}
		answer := &quoratepb.DeletedAnswer{ClusterId: h.cluster, MemberId: h.self, Revision: int64(page.Revision),
			FirstRevision: int64(page.First), LookedAt: int64(page.Looked), NextPage: pageToken(r, page.Next)}
		if q.Authors {
			if err := f.account.Take(len(page.Keys) * momentsOverhead); err != nil {
				return nil, err
			}
			f.names = h.namesFor(f.by, f.users, f.machine.Moments())
		}
		for i := range page.Keys {
			one := deletedMessage(&page.Keys[i])
			if q.Authors {
				f.names.tellDeletion(one, page.Keys[i].By)
			}
			answer.Keys = append(answer.Keys, one)
		}
		return answer, nil
	})
}

// historyFrom is what an answer is made from.
type historyFrom struct {
	machine *apply.Machine
	account kv.Account
	by      auth.Credentials
	users   *auth.State // that the caller was checked by
	names   *names      // nil: the answer says not who wrote what
}

// readFor answers from this member's state, for a caller that may read the range. It waits for its turn, if there are turns,
// before it holds the store: one that was replaced would stay as long as callers wait.
func (h *historyService) readFor(
	ctx context.Context, key, end []byte, linearizable bool, turns *admission.HostTurns,
	read func(*historyFrom) (proto.Message, error),
) (*wire.Counted, error) {
	if err := h.awaitState(ctx, !linearizable); err != nil {
		return nil, err
	}
	by, users, err := h.access.ReadBy(ctx, key, end)
	if err != nil {
		return nil, err
	}
	limited, err := h.limitRead(by, oneRange(key, end))
	if err != nil {
		return nil, err
	}
	answer, begun, from := &wire.Counted{}, h.timings.Now(), &historyFrom{by: by, users: users}
	err = h.unanswered(h.options.Answers.Build(ctx, 0, func(account kv.Account) (err error) {
		if turns != nil {
			leave, err := turns.Enter(ctx, admission.CallerOf(ctx).Host, 1)
			if err != nil {
				return err
			}
			defer leave()
		}
		machine, release := h.options.Member.Machine()
		defer release()
		begun = h.timings.Now()
		answer.Memory = account
		from.machine, from.account = machine, account
		answer.Message, err = read(from)
		return err
	}))
	took := h.timings.Now().Sub(begun)
	split.Of(ctx).Read(took)
	if !h.access.Unchanged(users) {
		_, refused := h.access.Read(ctx, key, end)
		if refused == nil && from.names.all() {
			refused = h.access.Root(ctx)
		}
		if refused != nil {
			if err == nil {
				answer.Memory.Release()
			}
			return nil, refused // it learns nothing, not even why the range cannot be read
		}
	}
	if err != nil {
		return nil, err
	}
	limited.countAnswer(h.shared, proto.Size(answer.Message))
	h.tookRead(ctx, top.Range, key, took, proto.Size(answer.Message), func() string { return by.User })
	uncompressed(ctx, answer.Memory)
	return answer, nil
}

// namesFor returns what a caller may learn. While authentication is disabled anybody may list the users.
func (h *historyService) namesFor(by auth.Credentials, users *auth.State, moments kv.Moments) *names {
	n := &names{config: h.options.Member.Status().Config, moments: moments, caller: by.User, root: true}
	if users.Enabled() {
		check := users.Check(by)
		n.root = check.Root() == nil
	}
	return n
}

// serveRevisionAt returns which revisions the store may have had at a time.
func (h *historyService) serveRevisionAt(
	ctx context.Context, r *quoratepb.RevisionAtRequest,
) (*quoratepb.RevisionAtAnswer, error) {
	if at := r.GetUnixMs(); at < 0 || at > kv.MostMomentTime {
		return nil, status.Errorf(codes.InvalidArgument, "quorate: unix_ms is %d: give a time from 1970 on, and before the "+
			"year 10000, in milliseconds", at)
	}
	if err := h.access.User(ctx); err != nil {
		return nil, err
	}
	if err := h.awaitState(ctx, !r.GetLinearizable()); err != nil {
		return nil, err
	}
	machine, release := h.options.Member.Machine()
	defer release()
	store := machine.Store()
	n := &names{config: h.options.Member.Status().Config}
	answer := &quoratepb.RevisionAtAnswer{ClusterId: h.cluster, MemberId: h.self, Revision: int64(store.Revision()),
		FirstRevision: int64(max(store.CompactRevision(), 1))}
	n.moments = machine.Moments().UpTo(kv.Revision(answer.GetRevision()))
	after, before, repeated := n.moments.At(r.GetUnixMs())
	answer.After, answer.Before, answer.Repeated = n.moment(after), n.moment(before), n.moment(repeated)
	answer.AtMost = answer.GetRevision()
	if after != nil {
		answer.AtLeast = int64(after.Seen)
	}
	if before != nil {
		answer.AtMost = int64(before.Noted)
	}
	return answer, nil
}

// historyLimit is how many items an answer may have.
func historyLimit(asked int64) (int, error) {
	if asked < 0 {
		return 0, status.Errorf(codes.InvalidArgument, "quorate: limit is %d: give how many are wanted, or 0", asked)
	}
	if asked == 0 || asked > mostHistoryItems {
		return mostHistoryItems, nil
	}
	return int(asked), nil
}

func versionMessage(v *mvcc.Version) *quoratepb.KeyVersion {
	if v.Deleted {
		return &quoratepb.KeyVersion{ModRevision: int64(v.ModRevision), Deleted: true}
	}
	return &quoratepb.KeyVersion{ModRevision: int64(v.ModRevision), CreateRevision: int64(v.CreateRevision), Version: v.Version,
		Lease: int64(v.Lease), Size: int64(v.Size), Value: v.Value}
}

func deletedMessage(d *mvcc.DeletedKey) *quoratepb.DeletedKey {
	one := &quoratepb.DeletedKey{Key: d.Key, DeletedRevision: int64(d.Deleted), ReadRevision: int64(d.Read),
		Was: versionMessage(&d.Was), Same: d.Same}
	if d.Now.ModRevision > 0 {
		one.Now = versionMessage(&d.Now)
	}
	return one
}

// A page token is the form, a sum of the request without its limit, and the first key of the page.
const (
	pageForm    = 1
	pageHeadLen = 9
)

func pageToken(r *quoratepb.DeletedRequest, next []byte) []byte {
	if len(next) == 0 {
		return nil
	}
	token := append(make([]byte, 0, pageHeadLen+len(next)), pageForm)
	return append(binary.BigEndian.AppendUint64(token, pageSum(r)), next...)
}

// pageSum tells pages of different requests apart. It protects nothing.
func pageSum(r *quoratepb.DeletedRequest) uint64 {
	text := binary.AppendUvarint(nil, uint64(len(r.GetKey())))
	text = append(append(text, r.GetKey()...), r.GetRangeEnd()...)
	text = binary.BigEndian.AppendUint64(text, uint64(r.GetAtRevision()))
	if r.GetExisting() {
		text = append(text, 1)
	}
	return xxhash.Sum64(text)
}

// fromOf returns the first key of the page that a request asks for; nil: it asks for the first page.
func fromOf(r *quoratepb.DeletedRequest) ([]byte, error) {
	token := r.GetPage()
	if len(token) == 0 {
		return nil, nil
	}
	if len(token) <= pageHeadLen || token[0] != pageForm || binary.BigEndian.Uint64(token[1:]) != pageSum(r) ||
		!pageIn(token[pageHeadLen:], r) {
		return nil, status.Error(codes.InvalidArgument, "quorate: the page belongs to another request: give next_page of the "+
			"answer before, with the same key, range_end, at_revision and existing, or begin without a page")
	}
	return token[pageHeadLen:], nil
}

// pageIn reports whether a page that begins with a key lies in the range of a request.
func pageIn(key []byte, r *quoratepb.DeletedRequest) bool {
	end := r.GetRangeEnd()
	switch {
	case len(end) == 0:
		return bytes.Equal(key, r.GetKey())
	case bytes.Compare(key, r.GetKey()) < 0:
		return false
	}
	return len(end) == 1 && end[0] == 0 || bytes.Compare(key, end) < 0
}
