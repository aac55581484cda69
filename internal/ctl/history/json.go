package history

import (
	"time"
	"unicode/utf8"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/command"
)

type pageJSON struct {
	Key      string        `json:"key,omitempty"`
	KeyBytes []byte        `json:"key_base64,omitempty"`
	Revision int64         `json:"revision"`       // of the store
	First    int64         `json:"first_revision"` // the oldest one that can be read
	Versions []versionJSON `json:"versions"`
	Before   int64         `json:"next_before,omitempty"` // --before of the next call
}

type versionJSON struct {
	Revision int64       `json:"mod_revision"`
	What     string      `json:"what"` // created, changed, deleted
	Created  int64       `json:"create_revision,omitempty"`
	Version  int64       `json:"version,omitempty"`
	Size     int64       `json:"size"`
	Lease    string      `json:"lease,omitempty"`
	Author   *authorJSON `json:"author"` // null: not known
	After    *momentJSON `json:"after"`  // null: not known
	Before   *momentJSON `json:"before"`
}

type authorJSON struct {
	User    string `json:"user"`
	Cut     bool   `json:"user_cut,omitempty"`
	Hidden  bool   `json:"user_hidden,omitempty"`
	Member  string `json:"member,omitempty"`
	ID      string `json:"member_id,omitempty"`
	Client  string `json:"client_id,omitempty"`
	Expired bool   `json:"lease_expired,omitempty"`
}

type momentJSON struct {
	Time     string `json:"time"`
	Member   string `json:"member,omitempty"`
	ID       string `json:"member_id"`
	Revision int64  `json:"revision"`
}

func output(key string, page *quoratepb.VersionsAnswer) pageJSON {
	out := pageJSON{Key: key, Revision: page.GetRevision(), First: page.GetFirstRevision(), Before: page.GetNextBefore()}
	if !utf8.ValidString(key) {
		out.Key, out.KeyBytes = "", []byte(key)
	}
	for _, v := range page.GetVersions() {
		one := versionJSON{Revision: v.GetModRevision(), What: kind(v), Created: v.GetCreateRevision(), Version: v.GetVersion(),
			Size: v.GetSize(), Author: author(v.GetAuthor()), After: moment(v.GetAfter()), Before: moment(v.GetBefore())}
		if v.GetLease() != 0 {
			one.Lease = command.HexID(uint64(v.GetLease()))
		}
		out.Versions = append(out.Versions, one)
	}
	return out
}

func author(a *quoratepb.Author) *authorJSON {
	if a == nil {
		return nil
	}
	one := &authorJSON{User: a.GetUser(), Cut: a.GetUserCut(), Hidden: a.GetUserHidden(), Member: a.GetMember(),
		Expired: a.GetLeaseExpired()}
	if a.GetMemberId() != 0 {
		one.ID = command.HexID(a.GetMemberId())
	}
	if a.GetClientId() != 0 {
		one.Client = command.HexID(a.GetClientId())
	}
	return one
}

func moment(m *quoratepb.Moment) *momentJSON {
	if m == nil {
		return nil
	}
	return &momentJSON{Time: time.UnixMilli(m.GetUnixMs()).UTC().Format("2006-01-02T15:04:05.000Z07:00"), Member: m.GetMember(),
		ID: command.HexID(m.GetMemberId()), Revision: m.GetRevision()}
}

// kind is what a revision did to the key.
func kind(v *quoratepb.KeyVersion) string {
	switch {
	case v.GetDeleted():
		return "deleted"
	case v.GetVersion() == 1:
		return "created"
	}
	return "changed"
}

type changesJSON struct {
	Prefix      string       `json:"prefix"`
	PrefixBytes []byte       `json:"prefix_base64,omitempty"`
	Revision    int64        `json:"revision"`       // of the store
	First       int64        `json:"first_revision"` // the oldest one that can be read
	Changes     []changeJSON `json:"changes"`
	Before      int64        `json:"next_before,omitempty"` // --before of the next call
}

type changeJSON struct {
	Key      string      `json:"key,omitempty"`
	KeyBytes []byte      `json:"key_base64,omitempty"`
	Revision int64       `json:"mod_revision"`
	What     string      `json:"what"`   // created, changed, deleted
	Author   *authorJSON `json:"author"` // null: not known
	After    *momentJSON `json:"after"`  // null: not known
	Before   *momentJSON `json:"before"`
}

func changesOutput(prefix string, all *quoratepb.ChangesAnswer, next int64) changesJSON {
	out := changesJSON{Prefix: prefix, Revision: all.GetRevision(), First: all.GetFirstRevision(), Before: next}
	if !utf8.ValidString(prefix) {
		out.Prefix, out.PrefixBytes = "", []byte(prefix)
	}
	for _, c := range all.GetChanges() {
		one := changeJSON{Key: string(c.GetKey()), Revision: c.GetModRevision(), What: kindOf(c), Author: author(c.GetAuthor()),
			After: moment(c.GetAfter()), Before: moment(c.GetBefore())}
		if !utf8.Valid(c.GetKey()) {
			one.Key, one.KeyBytes = "", c.GetKey()
		}
		out.Changes = append(out.Changes, one)
	}
	return out
}

// kindOf is what a revision did to a key.
func kindOf(c *quoratepb.KeyChange) string {
	switch {
	case c.GetDeleted():
		return "deleted"
	case c.GetCreated():
		return "created"
	}
	return "changed"
}
