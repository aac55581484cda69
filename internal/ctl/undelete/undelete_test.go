package undelete_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/ctltest"
	"github.com/quorate/quorate/internal/undelete/undeletetest"
)

// lost is a member whose keys below /app/ were deleted at revision 7, and of which one came again.
func lost(t *testing.T) *undeletetest.Member {
	m := undeletetest.Start(t)
	m.Set("/app/a", "one", 0)                       // 2
	m.Set("/app/b", strings.Repeat("v", 2048), 255) // 3
	m.Set("/app/c c\x1b", "three", 0)               // 4
	m.Set("/app/d", "four", 0)                      // 5
	m.Set("/etc", "x", 0)                           // 6
	m.Drop("/app/a", "/app/b", "/app/c c\x1b", "/app/d")
	m.Set("/app/d", "new", 0) // 8
	return m
}

const planText = `PLAN  keys that begin with /app/ · each as it was before its last deletion · the store is at revision 8, its history begins at 1
  KEY             DELETED AT  VALUE OF  SIZE
  /app/a          7           2         3 B
  /app/b          7           3         2.0 KiB  had lease ff
  "/app/c c\x1b"  7           4         5 B
3 keys, 2.0 KiB, to be written. 1 of them had a lease, and will not expire: leases are not restored.
Exist, and are left alone: 0 with the value that would be restored, 1 with another.
  /app/d  has another value since revision 8
`

func want(t *testing.T, got ctltest.Result, status int, out, errs string) {
	t.Helper()
	if diff := cmp.Diff(out, got.Out); diff != "" || got.Status != status || !strings.Contains(got.Err, errs) || errs == "" && got.Err != "" {
		t.Errorf("status %d, errors %q; want %d, …%q… (-want +got):\n%s", got.Status, got.Err, status, errs, diff)
	}
}

// Ensure that the plan is shown, that keys are restored only if the operator says so, and that a second time does nothing.
func TestUndelete(t *testing.T) {
	m := lost(t)
	want(t, ctltest.RunAt(t, m.Address, "undelete", "/app/", "--leased", "--dry-run"), 0, planText, "")
	s := ctltest.At(m.Address)
	s.Attended = true
	const leftOut = "2 keys, 23 B, to be written. 1 key had a lease and is left out: --leased restores it, without it.\n"
	if got := ctltest.RunAt(t, m.Address, "undelete", "/app/", "--dry-run"); got.Status != 0 || !strings.Contains(got.Out, leftOut) ||
		strings.Contains(got.Out, "/app/b") {
		t.Errorf("without --leased: status %d, %s", got.Status, got.Out)
	}
	want(t, ctltest.Run(t, t.Context(), s, "n\n", "undelete", "/app/", "--leased"), 1, planText, "nothing was changed")
	if _, _, exists := m.Value("/app/a"); exists || len(m.Txns) > 0 {
		t.Fatal("it was restored though nobody wanted it")
	}
	want(t, ctltest.Run(t, t.Context(), s, "y\n", "undelete", "/app/", "--leased"), 0,
		planText+"restored 3 keys, 2.0 KiB; the last one at revision 9\n", "Proceed?")
	for key, value := range map[string]string{"/app/a": "one", "/app/c c\x1b": "three", "/app/d": "new"} {
		if got, lease, _ := m.Value(key); got != value || lease != 0 {
			t.Errorf("%q is %q, lease %d", key, got, lease)
		}
	}
	again := ctltest.RunAt(t, m.Address, "undelete", "/app/", "--yes")
	want(t, again, 0, `PLAN  keys that begin with /app/ · each as it was before its last deletion · the store is at revision 9, its history begins at 1
Nothing is to be written.
Exist, and are left alone: 3 with the value that would be restored, 1 with another.
  /app/d  has another value since revision 8
`, "")
}

// Ensure that programs get all of the plan and of the result.
func TestUndelete_json(t *testing.T) {
	m := lost(t)
	want(t, ctltest.RunAt(t, m.Address, "undelete", "/app/", "--leased", "--yes", "-o", "json", "--limit", "2", "--rows", "0"), 0,
		`{"revision":8,"first_revision":1,"keys":[{"key":"/app/a","deleted_revision":7,"read_revision":6,"mod_revision":2,"size":3},`+
			`{"key":"/app/b","deleted_revision":7,"read_revision":6,"mod_revision":3,"size":2048,"lease":"ff"}],"bytes":2063,"leased":1,"left_out":0,`+
			`"existing":{"same":0,"other":0,"listed":[]},"more_from":{"key":"/app/c c\u001b"}}`+"\n"+
			`{"restored":2,"bytes":2063,"revision":9,"came":{"same":0,"other":0,"listed":[]},"compacted":[],"too_large":[]}`+"\n", "")
}

// Ensure that a revision is restored, that much is told in little, and how to go on.
func TestUndelete_at(t *testing.T) {
	m := lost(t)
	got := ctltest.RunAt(t, m.Address, "undelete", "", "--leased", "--at", "3", "--yes", "--rows", "1", "--limit", "1")
	want(t, got, 0, `PLAN  all keys · as of revision 3 · the store is at revision 8, its history begins at 1
  KEY     DELETED AT  VALUE OF  SIZE
  /app/a  7           2         3 B
1 key, 9 B, to be written.
More keys are gone, from /app/b on: the same command, given again, goes on there.
restored 1 key, 9 B; the last one at revision 9
More keys are gone: quorate undelete '' --from /app/b --at 3
`, "")
	want(t, ctltest.RunAt(t, m.Address, "undelete", "/etc", "--at", "7", "--dry-run"), 0,
		"nothing to restore: what existed at revision 7 is unchanged\n", "")
	m.Forget(5)
	for line, says := range map[string]string{
		"/app/ --at 4":         "revision 4 is compacted: the history is kept since revision 5",
		"/app/ --at 99":        "revision 99 is in the future: the store is at revision 9",
		"/none --at 7":         "nothing to restore: no key that begins with /none existed at revision 7",
		"/none":                "nothing to restore: no key that begins with /none was deleted since revision 5, where the history that is kept begins",
		"/none --exact":        "nothing to restore: the key /none was not deleted since revision 5",
		"/none --exact --at 6": "the key /none did not exist at revision 6",
	} {
		want(t, ctltest.RunAt(t, m.Address, append([]string{"undelete", "--dry-run"}, strings.Fields(line)...)...), 1, "", says)
	}
}

// Ensure that command lines that make no sense are refused, with the reason.
func TestUndelete_usage(t *testing.T) {
	for line, says := range map[string]string{
		"":                      "usage: quorate undelete PREFIX",
		"/a":                    "there is no terminal to ask on: add --yes, or --dry-run",
		"/a --yes --at 0":       "is no revision: write a positive number",
		"/a --yes --at -3":      "is no revision: write a positive number",
		"/a --yes --limit 0":    "--limit 0: choose 1 to 100000",
		"/a --yes --rows -1":    "--rows -1",
		"/a --exact --from b":   "--exact and --from exclude each other",
		"/a --yes --output xml": "--output \"xml\"",
	} {
		want(t, ctltest.RunAt(t, "127.0.0.1:1", append([]string{"undelete"}, strings.Fields(line)...)...), command.StatusUsage, "", says)
	}
	want(t, ctltest.RunAt(t, "127.0.0.1:1", "undelete", "", "--exact", "--yes"), command.StatusUsage, "", "--exact needs a key")
	want(t, ctltest.RunAt(t, "127.0.0.1:1", "undelete", "/a", "--yes"), command.StatusUnreachable, "", "cannot reach 127.0.0.1:1")
}

// Ensure that keys that cannot be restored are named, and what is left after an error.
func TestUndelete_incomplete(t *testing.T) {
	m := lost(t)
	m.MaxBytes = 1000
	got := ctltest.RunAt(t, m.Address, "undelete", "/app/", "--leased", "--yes", "--rows", "1")
	if got.Status != 1 || !strings.Contains(got.Out, "restored 2 keys, 23 B") || !strings.Contains(got.Out, "  and 2 other keys") ||
		!strings.Contains(got.Out, "Not restored, because larger than a request may be (--max-request-bytes): 1 key\n  /app/b\n") ||
		!strings.Contains(got.Err, "1 of 3 keys could not be restored") {
		t.Errorf("%+v", got)
	}
	m.Refusal = status.Error(codes.Unimplemented, "unknown service quorate.v1.History")
	want(t, ctltest.RunAt(t, m.Address, "undelete", "/app/", "--yes"), 1, "", "this server does not tell which keys were deleted")
	m.Refusal = status.Error(codes.Unimplemented, "quorate: it cannot be called through a proxy with --namespace: call a member")
	want(t, ctltest.RunAt(t, m.Address, "undelete", "/app/", "--yes"), 1, "", "call a member")
	m.Refusal = nil
	calls := 0
	m.Before = func(*pb.TxnRequest) error {
		if calls++; calls > 1 {
			return status.Error(codes.PermissionDenied, "etcdserver: permission denied")
		}
		return nil
	}
	m.MaxBytes = 1 << 20
	got = ctltest.RunAt(t, m.Address, "undelete", "/app/b", "--leased", "--yes")
	if got.Status != 1 || !strings.Contains(got.Err, "1 of 1 keys were not reached; the same command goes on") {
		t.Errorf("%+v", got)
	}
	m.Before = func(*pb.TxnRequest) error { m.Forget(8); return nil }
	got = ctltest.RunAt(t, m.Address, "undelete", "/app/b", "--leased", "--yes")
	if got.Status != 1 || !strings.Contains(got.Out, "Not restored, because compacted before they were read: 1 key\n  /app/b\n") {
		t.Errorf("%+v", got)
	}
}

// Ensure that a time stands for the last revision that was certainly there, which the plan names, and that a time without one is
// refused with what to do.
func TestUndelete_atTime(t *testing.T) {
	m := lost(t)
	const at = "2025-11-30 12:03:10"
	m.Times = &quoratepb.RevisionAtAnswer{Revision: 8, FirstRevision: 1, AtLeast: 3, AtMost: 5,
		After: &quoratepb.Moment{UnixMs: 1764504185500, MemberId: 10, Member: "m1", Revision: 3}}
	got := ctltest.RunAt(t, m.Address, "undelete", "", "--leased", "--at", at, "--yes", "--limit", "1", "--rows", "0")
	for _, part := range []string{"as of revision 3, the last that was certainly there at 2025-11-30 12:03:10 UTC (m1 noted it at " +
		"2025-11-30 12:03:05; up to revision 5 may have been)", "restored 1 key", "--at 3"} {
		if got.Status != 0 || !strings.Contains(got.Out, part) {
			t.Errorf("status %d: %q is not in %s %s", got.Status, part, got.Out, got.Err)
		}
	}
	if got = ctltest.RunAt(t, m.Address, "undelete", "", "--at", at, "--dry-run", "-o", "json"); !strings.Contains(got.Out,
		`"at":3,"at_most":5,`) {
		t.Errorf("%s", got.Out)
	}
	for part, answer := range map[string]*quoratepb.RevisionAtAnswer{
		"at revision 3 for the first time, and at revision 6 for the last: give a revision": {FirstRevision: 1, AtLeast: 3,
			Repeated: &quoratepb.Moment{Revision: 6}},
		"has not noted times yet": {FirstRevision: 1},
		"before all times that are known: the first is 2025-11-30 12:03:05, of revision 4": {FirstRevision: 1,
			Before: &quoratepb.Moment{UnixMs: 1764504185500, Revision: 4}},
		"was at revision 3, which is compacted: the history is kept since revision 4": {FirstRevision: 4, AtLeast: 3},
		"does not know times of revisions":                                            nil,
	} {
		m.Times = answer
		want(t, ctltest.RunAt(t, m.Address, "undelete", "/app/", "--at", at, "--yes"), 1, "", part)
	}
}
