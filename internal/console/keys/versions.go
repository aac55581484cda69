package keys

import (
	"context"
	"unicode/utf8"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/console/page"
	"github.com/quorate/quorate/internal/ctl/wording"
)

const (
	mostRecent   = 8  // versions beside the value
	mostVersions = 50 // on their own page
)

// versionRow is a version as lists show it.
type versionRow struct {
	ModRevision   int64
	Deleted       bool
	Created       bool // it made the key
	Version, Size int64
	Lease         int64
	LeaseHref     string
	Href          string // to the value
	Before        string // to the difference to the version before
	Written, By   string // when, and by whom
	Newer, Older  bool   // it is one of the two that are compared
}

// versionsView is the history of a key.
type versionsView struct {
	Name     string // of the key, for the form
	Rows     []versionRow
	First    int64 // the history is kept since this revision
	Revision int64
	Member   string
	Choose   bool   // the reader may choose two
	All      string // link to all versions
	More     string // link to older ones
	Begins   int64  // only versions below this one are shown; 0: all
}

// recent shows the last versions of a key.
func recent(ctx context.Context, r *page.Request) (any, error) {
	key, err := keyIn(r.Query)
	if err != nil {
		return nil, page.ErrHidden // the section above says what is wrong
	}
	v, err := versionsOf(ctx, r, key, 0, mostRecent)
	if err != nil {
		return nil, err
	}
	if v.More != "" {
		v.More, v.All = "", toKey("/keys/versions", key)
	}
	return v, nil
}

// versions shows all versions, and lets the reader choose two.
func versions(ctx context.Context, r *page.Request) (any, error) {
	key, err := keyIn(r.Query)
	if err != nil {
		return nil, err
	}
	before, err := revisionIn(r.Query, "before")
	if err != nil {
		return nil, err
	}
	v, err := versionsOf(ctx, r, key, before, mostVersions)
	if err != nil {
		return nil, err
	}
	newer, _ := revisionIn(r.Query, "b")
	older, _ := revisionIn(r.Query, "a")
	for i := range v.Rows {
		v.Rows[i].Newer = newer == v.Rows[i].ModRevision || newer == 0 && i == 0
		v.Rows[i].Older = older == v.Rows[i].ModRevision || older == 0 && i == 1
	}
	v.Choose = len(v.Rows) > 1 && len(nameOf(key)) <= mostLink/3
	return v, nil
}

func versionsOf(ctx context.Context, r *page.Request, key []byte, before, limit int64) (*versionsView, error) {
	answer, err := quoratepb.NewHistoryClient(r.Conn).Versions(ctx, &quoratepb.VersionsRequest{Key: key, BeforeRevision: before,
		Limit: limit, KeysOnly: true, Authors: true})
	if err != nil {
		return nil, err
	}
	v := &versionsView{Name: nameOf(key), First: answer.GetFirstRevision(), Revision: answer.GetRevision(), Member: r.Member,
		Begins: before}
	list := answer.GetVersions()
	for i, one := range list {
		row := versionRow{ModRevision: one.GetModRevision(), Deleted: one.GetDeleted(), Version: one.GetVersion(),
			Size: one.GetSize(), Lease: one.GetLease(), Created: one.GetVersion() == 1,
			Written: wording.Between(one.GetAfter(), one.GetBefore()), By: wording.By(one.GetAuthor())}
		if row.Lease != 0 {
			row.LeaseHref = toLease(row.Lease)
		}
		if !row.Deleted {
			row.Href = toKey("/keys/key", key, "rev", number(row.ModRevision))
		}
		if i+1 < len(list) && !row.Deleted && !list[i+1].GetDeleted() {
			row.Before = toKey("/keys/versions", key, "a", number(list[i+1].GetModRevision()), "b", number(row.ModRevision))
		}
		v.Rows = append(v.Rows, row)
	}
	if next := answer.GetNextBefore(); next > 0 {
		v.More = toKey("/keys/versions", key, "before", number(next))
	}
	return v, nil
}

// differenceView is the difference between two versions.
type differenceView struct {
	Name     string
	Older    int64
	Newer    int64
	Sizes    [2]int64
	Bytes    bool // at least one is no text
	At       int  // the first byte in which they differ
	Large    bool
	Gone     int64 // the key does not exist at this revision; 0: it does at both
	Indented bool  // both are JSON, and were broken into lines first
	Lines    comparison
	Key      string // link
}

// difference shows the difference between two versions.
func difference(ctx context.Context, r *page.Request) (any, error) {
	key, err := keyIn(r.Query)
	if err != nil {
		return nil, page.ErrHidden // the section below says what is wrong
	}
	older, err := revisionIn(r.Query, "a")
	if err != nil {
		return nil, err
	}
	newer, err := revisionIn(r.Query, "b")
	if err != nil {
		return nil, err
	}
	if older == 0 || newer == 0 {
		return nil, page.ErrHidden
	}
	v := &differenceView{Name: short(key), Older: older, Newer: newer, Key: toKey("/keys/key", key)}
	var values [2][]byte
	for i, at := range []int64{older, newer} {
		answer, err := versionAt(ctx, r, key, at)
		if err != nil {
			return nil, err
		}
		list := answer.GetVersions()
		if len(list) == 0 || list[0].GetDeleted() {
			v.Gone = at
			return v, nil
		}
		if v.Sizes[i] = list[0].GetSize(); v.Sizes[i] > mostLoaded {
			v.Large = true
			return v, nil
		}
		kv, err := read(ctx, r, key, at, list[0])
		if err != nil {
			return nil, err
		}
		values[i] = kv.GetValue()
	}
	v.compare(values[0], values[1])
	return v, nil
}

// compare compares two values: texts by lines, anything else by bytes.
func (v *differenceView) compare(before, after []byte) {
	v.Bytes = !isText(before) || !isText(after)
	if v.Bytes {
		for v.At < min(len(before), len(after)) && before[v.At] == after[v.At] {
			v.At++
		}
		v.Lines.Same = v.At == len(before) && v.At == len(after)
		return
	}
	if kindOf(before) == kindJSON && kindOf(after) == kindJSON {
		a, oneFits := indent(before)
		b, otherFits := indent(after)
		if oneFits && otherFits && string(a) != string(b) {
			v.Indented = string(a) != string(before) || string(b) != string(after)
			before, after = a, b
		}
	}
	v.Lines = compare(string(before), string(after))
	v.Large = v.Lines.TooLarge
}

func isText(value []byte) bool {
	kind := kindOf(value)
	return utf8.Valid(value) && kind != kindBinary && kind != kindKube
}
