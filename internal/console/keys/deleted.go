package keys

import (
	"context"
	"encoding/base64"
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/console/page"
	"github.com/quorate/quorate/internal/ctl/wording"
)

const mostDeleted = 100 // keys of one page

// deletedRow is a key that is gone.
type deletedRow struct {
	Name, Href    string
	When, By      string // of its deletion
	Deleted, Read int64
	Version, Size int64
	Lease         int64
}

// deletedView are keys that are gone.
type deletedView struct {
	Prefix   string
	All      bool
	Value    string // of the field
	At       string // of the field
	Rows     []deletedRow
	Revision int64
	First    int64
	Looked   int64
	Member   string
	Begins   bool // it is not the first page
	More     string
	Cut      bool // there is more, and no link can name where it goes on
	Tree     string
	Undelete string
	Rights   *rights
}

// deleted lists keys of a prefix that are gone.
func deleted(ctx context.Context, r *page.Request) (any, error) {
	prefix, err := prefixIn(r.Query)
	if err != nil {
		return nil, err
	}
	at, err := revisionIn(r.Query, "at")
	if err != nil {
		return nil, err
	}
	token, err := base64.RawURLEncoding.DecodeString(r.Query.Get("page"))
	if err != nil {
		return nil, badf("The address is not one that this console made: begin again without its part page=.")
	}
	v := &deletedView{Prefix: short(prefix), All: len(prefix) == 0, At: number(at), Member: r.Member, Begins: len(token) > 0,
		Tree: toPrefix("/keys", prefix)}
	if len(prefix) > 0 {
		v.Value = cut(nameOf(prefix), mostLink)
	}
	if r.Admin {
		v.Undelete = toPrefix("/keys/undelete", prefix, "at", number(at))
	}
	key, end := rangeOf(prefix)
	answer, err := quoratepb.NewHistoryClient(r.Conn).Deleted(ctx, &quoratepb.DeletedRequest{Key: key, RangeEnd: end,
		AtRevision: at, Limit: mostDeleted, Page: token, Authors: true})
	if err != nil {
		if v.Rights, err = rightsOf(ctx, r, err); err != nil {
			return nil, revisionFault(ctx, r, key, at, err)
		}
		return v, nil
	}
	v.Revision, v.First, v.Looked = answer.GetRevision(), answer.GetFirstRevision(), answer.GetLookedAt()
	for _, one := range answer.GetKeys() {
		row := deletedRow{Name: short(one.GetKey()), Deleted: one.GetDeletedRevision(),
			Read: one.GetReadRevision(), Version: one.GetWas().GetVersion(), Size: one.GetWas().GetSize(),
			Lease: one.GetWas().GetLease(), Href: toKey("/keys/key", one.GetKey(), "rev", number(one.GetReadRevision()))}
		if row.Deleted > 0 {
			row.When, row.By = wording.Between(one.GetAfter(), one.GetBefore()), wording.By(one.GetAuthor())
		}
		v.Rows = append(v.Rows, row)
	}
	if next := answer.GetNextPage(); len(next) > 0 {
		v.More = toPrefix("/keys/deleted", prefix, "at", number(at), "page", base64.RawURLEncoding.EncodeToString(next))
		v.Cut = v.More == ""
	}
	return v, nil
}

// revisionFault says which revisions can be read, if an error refuses one.
func revisionFault(ctx context.Context, r *page.Request, key []byte, at int64, err error) error {
	known := rpctypes.Error(err)
	if at == 0 || !errors.Is(known, rpctypes.ErrCompacted) && !errors.Is(known, rpctypes.ErrFutureRev) {
		return err
	}
	answer, askErr := quoratepb.NewHistoryClient(r.Conn).Versions(ctx, &quoratepb.VersionsRequest{Key: key, Limit: 1,
		KeysOnly: true})
	if askErr != nil {
		return err
	}
	return badf("Revision %d cannot be read: the history is kept from revision %d to revision %d.", at,
		answer.GetFirstRevision(), answer.GetRevision())
}

func deletedCommand(r *page.Request) string {
	prefix, err := prefixIn(r.Query)
	if err != nil {
		return ""
	}
	words := []string{"undelete", "--dry-run"}
	if at, err := revisionIn(r.Query, "at"); err == nil && at > 0 {
		words = append(words, "--at", number(at))
	}
	return command(r, prefix, words...)
}
