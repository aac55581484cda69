package keys

import (
	"context"
	"encoding/base64"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/console/page"
	"github.com/quorate/quorate/internal/ctl/wording"
)

const mostChanged = 100 // changes of one page

// changeRow is a change of a key as the list shows it.
type changeRow struct {
	Revision         int64
	Created, Deleted bool
	Name, Href       string
	When, By         string
}

// changesView are the changes of the keys with a prefix.
type changesView struct {
	Prefix   string
	All      bool
	Value    string // of the field
	Rows     []changeRow
	Revision int64
	First    int64
	Looked   int64
	Member   string
	Begins   bool // it is not the first page
	More     string
	Tree     string
	Rights   *rights
}

// changes lists what was done to the keys of a prefix, the newest change first.
func changes(ctx context.Context, r *page.Request) (any, error) {
	prefix, err := prefixIn(r.Query)
	if err != nil {
		return nil, err
	}
	token, err := base64.RawURLEncoding.DecodeString(r.Query.Get("page"))
	if err != nil {
		return nil, badf("The address is not one that this console made: begin again without its part page=.")
	}
	v := &changesView{Prefix: short(prefix), All: len(prefix) == 0, Member: r.Member, Begins: len(token) > 0,
		Tree: toPrefix("/keys", prefix)}
	if len(prefix) > 0 {
		v.Value = cut(nameOf(prefix), mostLink)
	}
	key, end := rangeOf(prefix)
	answer, err := quoratepb.NewHistoryClient(r.Conn).Changes(ctx, &quoratepb.ChangesRequest{Key: key, RangeEnd: end,
		Limit: mostChanged, Page: token, Authors: true})
	if err != nil {
		if v.Rights, err = rightsOf(ctx, r, err); err != nil {
			return nil, err
		}
		return v, nil
	}
	v.Revision, v.First, v.Looked = answer.GetRevision(), answer.GetFirstRevision(), answer.GetLookedAt()
	for _, one := range answer.GetChanges() {
		row := changeRow{Revision: one.GetModRevision(), Created: one.GetCreated(), Deleted: one.GetDeleted(),
			Name: short(one.GetKey()), When: wording.Between(one.GetAfter(), one.GetBefore()), By: wording.By(one.GetAuthor())}
		if row.Deleted {
			row.Href = toKey("/keys/key", one.GetKey())
		} else {
			row.Href = toKey("/keys/key", one.GetKey(), "rev", number(one.GetModRevision()))
		}
		v.Rows = append(v.Rows, row)
	}
	if next := answer.GetNextPage(); len(next) > 0 {
		v.More = toPrefix("/keys/changes", prefix, "page", base64.RawURLEncoding.EncodeToString(next))
	}
	return v, nil
}

func changesCommand(r *page.Request) string {
	prefix, err := prefixIn(r.Query)
	if err != nil {
		return ""
	}
	return command(r, prefix, "history", "--prefix")
}
