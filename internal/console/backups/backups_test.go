package backups_test

import (
	"context"
	"html"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/console/backups"
	"github.com/quorate/quorate/internal/console/consoletest"
	"github.com/quorate/quorate/internal/console/page"
)

const hour = 3600_000

// healthy is a backup that is well.
func healthy() *quoratepb.BackupStatus {
	proven := &quoratepb.BackupProven{Revision: 70_000, Index: 71_000, TimeMs: 98 * hour, StateMs: 98*hour - 2000, TookMs: 95_000, Proven: true,
		Member: 3, MemberName: "m3", Bases: 4, Entries: 123_456}
	return &quoratepb.BackupStatus{Generation: 2, On: true, Place: "s3://backups/prod", NowMs: 100 * hour, Member: 2, MemberName: "m2",
		ReportedMs: 100*hour - 4000, Restorable: &quoratepb.BackupMark{Index: 90_000, Revision: 80_000, TimeMs: 100*hour - 1000},
		Base: &quoratepb.BackupMark{Index: 70_000, Revision: 69_000, TimeMs: 97 * hour}, BaseSeconds: 21600, SealMs: 1000,
		VerifySeconds: 86400, SinceMs: 9 * hour, Verified: proven, Proven: proven}
}

func show(t *testing.T, b *quoratepb.BackupStatus, target string, texts ...string) string {
	t.Helper()
	p := backups.Page()
	if strings.HasPrefix(target, "/backups/change") {
		p = backups.Confirm()
	}
	code, body := consoletest.Show(t, consoletest.Conn{quoratepb.Backup_Status_FullMethodName: b}, p, target)
	if code != http.StatusOK {
		t.Fatalf("status %d", code)
	}
	for _, text := range texts {
		if !strings.Contains(body, text) {
			t.Fatalf("the page lacks %q:\n%s", text, body[strings.Index(body, "<main"):])
		}
	}
	return body
}

// Ensure that the page says how far a backup is, which restore was proven and by whom, and how the last try ended if it was
// another one.
func TestPage(t *testing.T) {
	show(t, &quoratepb.BackupStatus{}, "/backups", "There is no continuous backup", "quorate backup start URL")
	b := healthy()
	body := show(t, b, "/backups", `<span class="tag good">on</span> The backup goes to <code>s3://backups/prod</code>`, "<b>1 s</b>", "<b>3 h</b>",
		"revision 80\u2009000", "m2, which reported 4 s ago", `<span class="tag good">proven</span> 2 h ago`, "<b>70\u2009000</b>",
		"<b>1 min 35 s</b>", "<b>4</b>", "<dd>m3</dd>", "tries every 24 h", "<dd>everything</dd>",
		"who can read the place can read all keys", "This console is read-only")
	if strings.Contains(body, `method="post"`) || strings.Contains(body, "could not try") {
		t.Error("a page that only reads has a form, or the last try twice")
	}
	b.Proving, b.ProvingName, b.ProvingSinceMs = 1, "m1", 100*hour-60_000
	b.Verified = &quoratepb.BackupProven{TimeMs: 99 * hour, Failed: true, Why: "object obj/aa: gone", By: "root"}
	show(t, b, "/backups", "cannot be restored", "the operator root tried 1 h ago: object obj/aa: gone",
		"Copy the objects that are named below obj/ or base/ elsewhere first, remove only them and nothing below log/",
		"due in 3 hours", "m1 tries a restore, since 1 min",
		`<span class="tag good">proven</span> 2 h ago`)
	b.Verified = &quoratepb.BackupProven{TimeMs: 99 * hour, Member: 3, MemberName: "m3", Why: "no room"}
	b.Proven.TimeMs = hour
	show(t, b, "/backups", "m3 could not try 1 h ago: no room", "proven, long ago")
	b.Verified = &quoratepb.BackupProven{TimeMs: 99 * hour, Failed: true, Why: "object log/aa: missing", Member: 3, MemberName: "m3"}
	if body := show(t, b, "/backups", "There is nothing to remove", "due in 3 hours"); strings.Contains(body, "remove only") {
		t.Error("a good segment is to be removed")
	}
	b.Trouble, b.Gaps, b.Gap = "AccessDenied", 1, &quoratepb.BackupHole{After: 5, Until: 9, TimeMs: 99 * hour}
	b.Proven, b.VerifySeconds = nil, 0
	b.Keep, b.Recipients = "14d", []string{"age1a", "age1b"}
	b.Retention = &quoratepb.BackupRetained{Why: "denied"}
	show(t, b, "/backups", "by the rule 14d", "to 2 recipients", "Members cannot prove an encrypted backup; only an operator can",
		"quorate backup verify --from URL --identity FILE --report --endpoints", "Retention removes less than the rule lets it: denied")
	show(t, b, "/backups", "the place takes nothing", "AccessDenied", "after entry 5 until entry 9", "No restore was proven yet")
	b.Recipients = nil
	show(t, b, "/backups", "Members do not try one", "quorate backup verify --from URL --report --endpoints")
}

// Ensure that a backup whose entries are sealed late is not behind as early, and that the proof of an encrypted one may be
// older: only operators prove it.
func TestPage_late(t *testing.T) {
	b := healthy()
	b.SealMs, b.Restorable.TimeMs, b.Proven.TimeMs = hour, 98*hour+1, 100*hour-49*hour
	show(t, b, "/backups", `<span class="tag good">on</span>`, "proven, long ago")
	b.Restorable.TimeMs, b.Recipients = 98*hour, []string{"age1a"}
	show(t, b, "/backups", `<span class="tag bad">behind</span>`, `<span class="tag good">proven</span>`)
}

// Ensure that a change is shown before it is done, with the command that does the same, and that a form with a mistake, or a
// secret, is refused by words that do not repeat it.
func TestConfirm(t *testing.T) {
	b := healthy()
	show(t, b, "/backups/change?do=stop", "Stop the continuous backup", "that is a gap", "quorate backup stop --endpoints")
	show(t, b, "/backups/change?do=start&place=file:///mnt/b&base=1h&seal=500ms&verify=0s", "Move the continuous backup",
		"instead of s3://backups/prod", "Members do not prove it",
		"quorate backup start file:///mnt/b --base-every 1h --seal-after 500ms --verify-every 0s --endpoints")
	show(t, b, "/backups/change?do=start&place=s3://backups/prod&base=6h&seal=1s&verify=24h", "Change the continuous backup",
		"A member proves it every 24h")
	sealed := healthy()
	sealed.Recipients = []string{"age1a"}
	show(t, sealed, "/backups/change?do=start&place=s3://backups/prod&base=6h&seal=1s&verify=24h", "Members cannot prove it")
	show(t, &quoratepb.BackupStatus{}, "/backups/change?do=start&place=s3://bkt/p&base=6h&seal=1s&verify=24h", "Start the continuous backup",
		"All keys, users and password hashes of the cluster are written to s3://bkt/p.")
	for query, want := range map[string]string{"do=start&place=s3://key:hidden@b/p&base=6h&seal=1s&verify=24h": "Nothing was changed",
		"do=start&place=s3://bkt/p&base=often&seal=1s&verify=24h": "is not a duration", "do=start&place=s3://bkt/p&base=6h&seal=1s&verify=1500ms": "is not a duration",
		"": "by one of its forms"} {
		if body := show(t, b, "/backups/change?"+query, want); strings.Contains(body[strings.Index(body, "<main"):], "hidden@") {
			t.Errorf("%s: the page repeats a secret", query)
		}
	}
}

// Ensure that a browser sends no URL with a password: the address of the next page would have it, and the browser's history.
func TestForm_secretStaysInTheBrowser(t *testing.T) {
	conn := consoletest.Conn{quoratepb.Backup_Status_FullMethodName: healthy()}
	body := consoletest.Open(t, conn, []page.Page{backups.Page(), backups.Confirm()}, true).Get("/backups")
	_, after, found := strings.Cut(body, `name="place"`)
	_, after, hasPattern := strings.Cut(after, `pattern="`)
	pattern, _, ends := strings.Cut(after, `"`)
	if !found || !hasPattern || !ends {
		t.Fatal(body)
	}
	form := regexp.MustCompile("^(?:" + html.UnescapeString(pattern) + ")$") // as browsers take it
	for url, sent := range map[string]bool{"file:///mnt/b": true, "s3://backups": true, " s3://backups/prod ": true, "s3://b?region=x": true,
		"s3://b/p?endpoint=https://h:9000&region=x": true, "s3://key:hidden@b/p": false, "s3://hidden@b": false, "s3://b/p@hidden": false,
		"https://key:hidden@h/": false, "": false} {
		if form.MatchString(url) != sent {
			t.Errorf("%q: sent %t", url, !sent)
		}
	}
}

// recipient is one whose secret key nobody has.
const recipient = "age1k0xkuylettylk8x7lg4hy39a34kfe88kx3wwdzw4f20ghhjkgu6snkpnlz"

// Ensure that form and confirmation say who can read the backup and what is removed, and that zero is shown as what it stands for.
func TestConfirm_rest(t *testing.T) {
	const zero = "/backups/change?do=start&place=s3://bkt/p&base=0&seal=0&verify=24h"
	never, b := &quoratepb.BackupStatus{}, healthy()
	admin := func(path string, b *quoratepb.BackupStatus, words ...string) {
		t.Helper()
		conn := consoletest.Conn{quoratepb.Backup_Status_FullMethodName: b}
		body := consoletest.Open(t, conn, []page.Page{backups.Page(), backups.Confirm()}, true).Get(path)
		for _, want := range words {
			if !strings.Contains(body, want) {
				t.Errorf("%s does not say %q: %s", path, want, body)
			}
		}
	}
	clear, all := "It is in the clear: who can read the place can read all keys", "Nothing is ever removed from the place"
	show(t, never, zero, clear, all, "A base is made every 6h, and entries are sealed after 1s.")
	admin("/backups", never, `name="keep" value="all"`, "who can read the place can read all keys")
	b.BaseSeconds, b.SealMs = 3600, 500
	show(t, b, zero, clear, all, "A base is made every 1h, and entries are sealed after 500ms.")
	show(t, b, zero+"&keep=all&recipients=", clear, all, "--verify-every 24h --keep all --endpoints")
	b.Place = "s3://bkt/p"
	show(t, b, zero+"&keep=14d,daily:3&recipients="+recipient, "It is encrypted to 1 recipient, and to nobody else from now on: "+recipient,
		"already stays there in the clear", "the rule 14d,daily:3. The member that ships removes the rest, for ever", "Members cannot prove it",
		"--keep 14d,daily:3 --recipient "+recipient+" --endpoints", "quorate backup retention --from s3://bkt/p --keep 14d,daily:3 --endpoints")
	admin(zero+"&keep=14d,daily:3&recipients="+recipient, b, `name="keep" value="14d,daily:3"`, `name="recipients" value="`+recipient+`"`)
	b.Recipients, b.Keep = []string{"age1a"}, "14d"
	show(t, b, zero, "It is encrypted to 1 recipient, as before.", "the rule 14d, as before")
	show(t, b, zero+"&keep=14d", "the rule 14d, as before")
	show(t, b, zero+"&keep=all", all)
	admin("/backups", b, `name="keep" value="14d"`, "to 1 recipient, as before")
	for query, want := range map[string]string{"&keep=x": "is no rule", "&recipients=age1nothing": "recipient 1 of 1",
		"&recipients=AGE-SECRET-KEY-1HIDDEN": "this is the secret key"} {
		if body := show(t, b, zero+query, want); strings.Contains(body[strings.Index(body, "<main"):], "1HIDDEN") {
			t.Error("the page repeats a secret key")
		}
	}
}

// asked takes what is asked of the service.
type asked struct {
	grpc.ClientConnInterface
	got []any
	err error
}

func (a *asked) Invoke(_ context.Context, _ string, request, _ any, _ ...grpc.CallOption) error {
	a.got = append(a.got, request)
	return a.err
}

// Ensure that forms do what they say, and nothing if something is wrong with them.
func TestActions(t *testing.T) {
	actions := map[string]page.Action{}
	for _, a := range backups.Page().Actions {
		actions[a.Path] = a
	}
	do := func(conn *asked, path string, form url.Values) error {
		_, err := actions[path].Do(t.Context(), &page.Request{Conn: conn, Form: form, Admin: true})
		return err
	}
	good := url.Values{"place": {" file:///mnt/b"}, "base": {"2h"}, "seal": {"1s"}, "verify": {"0"}, "keep": {"2d"},
		"recipients": {" " + recipient + ",\n"}}
	conn := &asked{}
	if err := do(conn, "/backups/start", good); err != nil {
		t.Fatal(err)
	}
	if r, ok := conn.got[0].(*quoratepb.StartBackupRequest); !ok || r.GetPlace() != "file:///mnt/b" || r.GetBaseSeconds() != 7200 ||
		r.GetSealMs() != 1000 || r.GetKeep() != "2d" || !slices.Equal(r.GetRecipients(), []string{recipient}) || r.VerifySeconds == nil || r.GetVerifySeconds() != 0 {
		t.Errorf("got %v", conn.got[0])
	}
	if err := do(conn, "/backups/start", url.Values{"place": {"/mnt"}}); err == nil || len(conn.got) != 1 {
		t.Errorf("a path: %v", err)
	}
	for name, value := range map[string]string{"keep": "2", "recipients": "AGE-SECRET-KEY-1HIDDEN"} {
		bad := maps.Clone(good)
		bad[name] = []string{value}
		if err := do(conn, "/backups/start", bad); err == nil || len(conn.got) != 1 || strings.Contains(err.Error(), "1HIDDEN") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := do(conn, "/backups/stop", url.Values{"typed": {"yes"}}); err == nil || len(conn.got) != 1 {
		t.Errorf("stop, not typed: %v", err)
	}
	if err := do(conn, "/backups/stop", url.Values{"typed": {"stop"}}); err != nil || len(conn.got) != 2 {
		t.Errorf("stop: %v", err)
	}
	conn.err = status.Error(codes.InvalidArgument, "59 seconds between bases")
	if err := do(conn, "/backups/start", good); err == nil || !strings.Contains(err.Error(), "59 seconds between bases. Nothing") {
		t.Errorf("refused: %v", err)
	}
}
