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
		"--limit 0": {"k", "--limit", "0"}, "--before -1": {"k", "--before", "-1"}, "write: quorate history KEY": {},
	} {
		if got := ctltest.RunAt(t, m.Address, append([]string{"history"}, words...)...); got.Status == 0 || got.Out != "" ||
			!strings.Contains(got.Err, part) {
			t.Errorf("%q: status %d, %s%s", words, got.Status, got.Out, got.Err)
		}
	}
}
