package history_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/ctltest"
	"github.com/quorate/quorate/internal/undelete/undeletetest"
)

func moment(ms int64, member string) *quoratepb.Moment {
	return &quoratepb.Moment{UnixMs: ms, MemberId: 0xa1, Member: member, Revision: 4}
}

// past has each kind of version, and of author.
func past() *quoratepb.VersionsAnswer {
	const noon = 1764504000000
	return &quoratepb.VersionsAnswer{Revision: 90, FirstRevision: 3, Versions: []*quoratepb.KeyVersion{
		{ModRevision: 80, Deleted: true, Author: &quoratepb.Author{MemberId: 0xa1, Member: "m1", LeaseExpired: true},
			After: moment(noon+5500, "m1")},
		{ModRevision: 70, CreateRevision: 3, Version: 6, Size: 3, Lease: 255, Author: &quoratepb.Author{MemberId: 0xa1, Member: "m1",
			User: "ann\x1b"}, After: moment(noon+1999, "m1"), Before: moment(noon+5001, "m2")},
		{ModRevision: 60, CreateRevision: 3, Version: 5, Author: &quoratepb.Author{MemberId: 0xa9, UserHidden: true},
			After: moment(noon+9000, "m1"), Before: moment(noon, "")},
		{ModRevision: 50, CreateRevision: 3, Version: 4, Author: &quoratepb.Author{ClientId: 0xc1, User: "bob", UserCut: true},
			Before: moment(noon, "m1")},
		{ModRevision: 40, CreateRevision: 3, Version: 3, Author: &quoratepb.Author{MemberId: 0xa1, Member: "m1"},
			After: moment(noon-86400000, "m1"), Before: moment(noon, "m1")},
		{ModRevision: 2, CreateRevision: 2, Version: 1},
	}}
}

const table = `REVISION  WRITTEN (UTC)                                                                            USER           THROUGH    WHAT     VERSION  SIZE  LEASE
80        after 2025-11-30 12:00:05                                                                lease expired  m1         deleted
70        2025-11-30 12:00:01 to 12:00:06                                                          ann            m1         changed  6        3 B   ff
60        clocks differ: after 2025-11-30 12:00:09 by m1, before 2025-11-30 12:00:00 by member a1  another user   member a9  changed  5        0 B
50        before 2025-11-30 12:00:00                                                               bob…           client c1  changed  4        0 B
40        2025-11-29 12:00:00 to 2025-11-30 12:00:00                                                              m1         changed  3        0 B
2         not known                                                                                not known                 created  1        0 B
The history begins at revision 3; what was before it is compacted.
`

// Ensure that all that is known is shown, and what is not known said to be so; that programs get it, too; and that a key without
// a history, and a server that keeps none, are told.
func TestHistory(t *testing.T) {
	m := undeletetest.Start(t)
	m.Past = past()
	got := ctltest.RunAt(t, m.Address, "history", "k")
	if diff := cmp.Diff(table, got.Out); diff != "" || got.Status != 0 {
		t.Errorf("status %d, %s: %s", got.Status, got.Err, diff)
	}
	got = ctltest.RunAt(t, m.Address, "history", "k", "-o", "json")
	for _, part := range []string{`{"key":"k","revision":90,"first_revision":3,"versions":[{"mod_revision":80,"what":"deleted",`,
		`"author":{"user":"","member":"m1","member_id":"a1","lease_expired":true},`,
		`"after":{"time":"2025-11-30T12:00:05.500Z","member":"m1","member_id":"a1","revision":4},"before":null}`,
		`"author":null,"after":null,"before":null}]}`, `"user_hidden":true`, `"client_id":"c1"`, `"user_cut":true`} {
		if !strings.Contains(got.Out, part) {
			t.Errorf("%s is not in %s", part, got.Out)
		}
	}
	m.Past.NextBefore = 2
	if got = ctltest.RunAt(t, m.Address, "history", "k k", "--limit", "6"); !strings.Contains(got.Out,
		"Older versions: quorate history 'k k' --before 2\n") {
		t.Errorf("%s", got.Out)
	}
	m.Past = &quoratepb.VersionsAnswer{FirstRevision: 3}
	for part, words := range map[string][]string{
		"no version of k is kept: the history begins at revision 3": {"k"}, "write the key": {""},
		"no version of k below revision 2 is kept": {"k", "--before", "2"},
		"--limit 0": {"k", "--limit", "0"}, "--before -1": {"k", "--before", "-1"}, "usage: quorate history KEY": {},
	} {
		if got := ctltest.RunAt(t, m.Address, append([]string{"history"}, words...)...); got.Status == 0 || got.Out != "" ||
			!strings.Contains(got.Err, part) {
			t.Errorf("%q: status %d, %s%s", words, got.Status, got.Out, got.Err)
		}
	}
}

// Ensure that the changes of all keys with a prefix are shown, page by page, for people and for programs, that a revision of which
// not all changes came is left to the next call, and that a history without any, and a server that knows none, are told.
func TestHistory_prefix(t *testing.T) {
	const noon = 1764504000000
	m := undeletetest.Start(t)
	m.Changed = []*quoratepb.ChangesAnswer{
		{Revision: 90, FirstRevision: 3, NextPage: []byte{1}},
		{Revision: 90, FirstRevision: 3, NextPage: []byte{2}, Changes: []*quoratepb.KeyChange{
			{Key: []byte("/a/x"), ModRevision: 80, Deleted: true, Author: &quoratepb.Author{MemberId: 0xa1, Member: "m1", User: "ann\x1b"},
				After: moment(noon, "m1"), Before: moment(noon+5000, "m1")},
			{Key: []byte("/a/\xff"), ModRevision: 70, Created: true},
			{Key: []byte("/a/y"), ModRevision: 60, Author: &quoratepb.Author{MemberId: 0xa1, Member: "m1", LeaseExpired: true}}}},
		{Revision: 90, FirstRevision: 3, Changes: []*quoratepb.KeyChange{{Key: []byte("/a/z"), ModRevision: 60}}},
	}
	const rows = `REVISION  WRITTEN (UTC)                    USER           THROUGH  WHAT     KEY
80        2025-11-30 12:00:00 to 12:00:05  ann            m1       deleted  /a/x
70        not known                        not known               created  "/a/\xff"
`
	const rest = `60        not known                        lease expired  m1       changed  /a/y
60        not known                        not known               changed  /a/z
The history begins behind revision 3; changes up to it are compacted.
`
	if got := ctltest.RunAt(t, m.Address, "history", "/a/", "--prefix"); got.Out != rows+rest || got.Status != 0 {
		t.Errorf("status %d, %s: %s", got.Status, got.Err, cmp.Diff(rows+rest, got.Out))
	}
	got := ctltest.RunAt(t, m.Address, "history", "/a/", "--prefix", "--limit", "3")
	want := strings.NewReplacer("USER           ", "USER       ", "ann            ", "ann        ", "not known               created",
		"not known           created").Replace(rows) + "Older changes: quorate history /a/ --prefix --before 61\n"
	if got.Out != want {
		t.Errorf("%s%s", got.Out, got.Err)
	}
	got = ctltest.RunAt(t, m.Address, "history", "", "--prefix", "-o", "json", "--limit", "3")
	for _, part := range []string{`{"prefix":"","revision":90,"first_revision":3,"changes":[{"key":"/a/x","mod_revision":80,"what":"deleted",`,
		`{"key_base64":"L2Ev/w==","mod_revision":70,"what":"created","author":null,"after":null,"before":null}],"next_before":61}`} {
		if !strings.Contains(got.Out, part) {
			t.Errorf("%s is not in %s%s", part, got.Out, got.Err)
		}
	}
	if got = ctltest.RunAt(t, m.Address, "history", "/a/", "--prefix", "--limit", "2"); got.Out != strings.ReplaceAll(want, "61", "70") {
		t.Errorf("%s%s", got.Out, got.Err)
	}
	m.Changed[1].Changes = m.Changed[1].Changes[2:]
	got = ctltest.RunAt(t, m.Address, "history", "/a/", "--prefix", "--limit", "1")
	if !strings.Contains(got.Out, "--before 60\n") || !strings.Contains(got.Err, "revision 60 has more changes than these") {
		t.Errorf("%s%s", got.Out, got.Err)
	}
	m.Changed = []*quoratepb.ChangesAnswer{{FirstRevision: 3}}
	got = ctltest.RunAt(t, m.Address, "history", "/b/", "--prefix")
	if got.Status == 0 || !strings.Contains(got.Err, "no key that begins with /b/ was changed: the history begins at revision 3") {
		t.Errorf("status %d, %s%s", got.Status, got.Out, got.Err)
	}
	m.Changed[0].NextPage = []byte{0}
	if got = ctltest.RunAt(t, m.Address, "history", "/b/", "--prefix"); !strings.Contains(got.Err, "gave the same page twice") {
		t.Errorf("status %d, %s%s", got.Status, got.Out, got.Err)
	}
	m.Changed = nil
	if got = ctltest.RunAt(t, m.Address, "history", "/b/", "--prefix"); !strings.Contains(got.Err, "does not tell the history of keys") {
		t.Errorf("status %d, %s%s", got.Status, got.Out, got.Err)
	}
}
