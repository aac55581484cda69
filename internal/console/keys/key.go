package keys

import (
	"context"
	"strconv"
	"strings"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/console/page"
	"github.com/quorate/quorate/internal/ctl/wording"
)

// keyView is a key as it is, or was at a revision.
type keyView struct {
	Name      string
	Crumbs    []crumb
	Skipped   bool
	At        int64  // the revision that was asked for; 0: now
	Gone      bool   // there is no such key
	Deleted   int64  // the revision that deleted it; 0: it is not known
	Written   string // when this version was written, or the key deleted
	By        string // and by whom
	Kept      bool   // an earlier version can be read
	First     int64  // the oldest revision that can be read
	Revision  int64  // of the store
	Member    string
	Version   *quoratepb.KeyVersion
	LeaseHref string
	Large     bool // the value is not read
	Value     valueView
	Now       string // link to the key as it is now
	Download  string
	Edit      string
	NoEdit    string // why the value cannot be edited
	Delete    string
	Undelete  string
	New       string
	Watch     string
}

// show shows a key: what is known about it, and its value.
func show(ctx context.Context, r *page.Request) (any, error) {
	key, err := keyIn(r.Query)
	if err != nil {
		return nil, err
	}
	at, err := revisionIn(r.Query, "rev")
	if err != nil {
		return nil, err
	}
	v := keyView{Name: nameOf(key), At: at, Member: r.Member}
	v.Name = cut(v.Name, 8*mostShown)
	v.Crumbs, v.Skipped = crumbsOf(key[:nameFrom(key)])
	answer, err := versionAt(ctx, r, key, at)
	if err != nil {
		return nil, err
	}
	v.First, v.Revision = answer.GetFirstRevision(), answer.GetRevision()
	if len(answer.GetVersions()) == 0 || answer.GetVersions()[0].GetDeleted() {
		v.gone(r, key, answer)
		return v, nil
	}
	v.Version = answer.GetVersions()[0]
	v.Large = v.Version.GetSize() > mostLoaded
	var value []byte
	if !v.Large {
		kv, err := read(ctx, r, key, max(at, 0), v.Version)
		if err != nil {
			return nil, err
		}
		if kv == nil { // it went between the two calls
			v.Gone = true
			return v, nil
		}
		value = kv.GetValue()
		v.Value = viewOf(value)
	}
	v.wrote(v.Version)
	v.link(r, key, value)
	return v, nil
}

// wrote says by whom and when.
func (v *keyView) wrote(one *quoratepb.KeyVersion) {
	v.Written, v.By = wording.Between(one.GetAfter(), one.GetBefore()), wording.By(one.GetAuthor())
}

// gone says what is known of a key that does not exist.
func (v *keyView) gone(r *page.Request, key []byte, answer *quoratepb.VersionsAnswer) {
	v.Gone = true
	v.Kept = answer.GetNextBefore() > 0
	if list := answer.GetVersions(); len(list) > 0 {
		v.Deleted = list[0].GetModRevision()
		v.wrote(list[0])
	}
	if v.At > 0 {
		v.Now = toKey("/keys/key", key)
	}
	if r.Admin && v.At == 0 {
		v.New = toKey("/keys/new", key)
		if v.Kept {
			v.Undelete = toKey("/keys/undelete", key)
		}
	}
}

// link adds the ways to elsewhere.
func (v *keyView) link(r *page.Request, key, value []byte) {
	at := number(v.At)
	v.Download = toKey("/keys/value", key, "rev", at)
	if v.Version.GetLease() != 0 {
		v.LeaseHref = toLease(v.Version.GetLease())
	}
	if v.At > 0 {
		v.Now = toKey("/keys/key", key)
		return
	}
	v.Watch = toPrefix("/keys/watch", key, "from", number(v.Revision+1))
	if !r.Admin {
		return
	}
	v.Delete = toKey("/keys/delete", key)
	if v.NoEdit = whyFixed(value); v.Large {
		v.NoEdit = "it is larger than " + page.Bytes(mostEdited)
	}
	if v.NoEdit == "" {
		v.Edit = toKey("/keys/edit", key)
	}
}

func showCommand(r *page.Request) string {
	key, err := keyIn(r.Query)
	if err != nil {
		return ""
	}
	words := []string{"get"}
	if at, err := revisionIn(r.Query, "rev"); err == nil && at > 0 {
		words = append(words, "--rev", number(at))
	}
	return command(r, key, words...)
}

// mostSaved bounds a value that is downloaded.
const mostSaved = 16 << 20

// save returns the value of a key as a file.
func save(ctx context.Context, r *page.Request) (page.Contents, error) {
	key, err := keyIn(r.Query)
	if err != nil {
		return page.Contents{}, err
	}
	at, err := revisionIn(r.Query, "rev")
	if err != nil {
		return page.Contents{}, err
	}
	answer, err := versionAt(ctx, r, key, at)
	if err != nil {
		return page.Contents{}, err
	}
	if list := answer.GetVersions(); len(list) > 0 && list[0].GetSize() > mostSaved {
		return page.Contents{}, badf("The value has %s, and the console sends at most %s. Read it with: quorate get "+
			"--values-only", page.Bytes(list[0].GetSize()), page.Bytes(mostSaved))
	}
	kv, err := read(ctx, r, key, at, &quoratepb.KeyVersion{})
	if err != nil {
		return page.Contents{}, err
	}
	if kv == nil {
		return page.Contents{}, badf("There is no such key: it was deleted meanwhile, or did not exist at this revision.")
	}
	return page.Contents{Name: fileName(key, kv.GetModRevision()), Body: kv.GetValue()}, nil
}

// fileName is a name for the value of a key: of its last part the letters, digits, dots and dashes that every system accepts.
func fileName(key []byte, revision int64) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return -1
	}, string(key[nameFrom(key):][:min(64, len(key)-nameFrom(key))]))
	if name = strings.Trim(name, ".-"); name == "" {
		name = "value"
	}
	return name + "@" + strconv.FormatInt(revision, 10) + ".txt"
}
