package backup_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/ctltest"
)

var env = []string{"AWS_ACCESS_KEY_ID=key", "AWS_SECRET_ACCESS_KEY=plain-secret"}

func run(t *testing.T, args ...string) ctltest.Result {
	t.Helper()
	return ctltest.Run(t, t.Context(), command.Streams{Environ: env}, "", append([]string{"backup", "check"}, args...)...)
}

// Ensure that a directory passes, in words and in JSON, and that nothing is left in it, but what members have there.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	got := run(t, "file://"+dir)
	if got.Status != command.StatusOK || !strings.Contains(got.Out, "keep    ok") ||
		!strings.HasSuffix(got.Out, "file://"+dir+" can hold backups.\n") {
		t.Errorf("%+v", got)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	got = run(t, "file://"+dir, "-o", "json")
	if got.Status != command.StatusOK || !strings.Contains(got.Out, `"ok":true`) || !strings.Contains(got.Out,
		`"warnings":["/`) {
		t.Errorf("%+v", got)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
	if err := os.Mkdir(dir+"/.tmp", 0o700); err != nil {
		t.Fatal(err)
	}
	run(t, "file://"+dir)
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("a member's directory: %v, %v", left, err)
	}
}

// Ensure that mistakes end with their status and one sentence that says what to do.
func TestCheck_mistakes(t *testing.T) {
	run(t, "file:///absent").Want(t, command.StatusRefused, "", "Make the directory or bucket")
	run(t, "/mnt").Want(t, command.StatusUsage, "", "file:///DIRECTORY or s3://BUCKET")
	run(t, "file:///tmp", "-o", "xml").Want(t, command.StatusUsage, "", "choose table or json")
	run(t).Want(t, command.StatusUsage, "", "backup check URL")
	got := run(t, "s3://backups?endpoint=http://127.0.0.1:1", "--timeout=100ms")
	if got.Status != command.StatusUnreachable {
		t.Errorf("%+v", got)
	}
}

// Ensure that each refusal of a server of S3 is told by a sentence of its own, and that no secret is printed.
func TestCheck_refusals(t *testing.T) {
	answer := ""
	status := 0
	v := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, answer)
	}))
	t.Cleanup(v.Close)
	for _, c := range []struct {
		status     int
		code, want string
		exit       int
	}{
		{403, "AccessDenied", "s3:ListBucket", command.StatusRefused},
		{403, "InvalidAccessKeyId", "mistyped, revoked or expired", command.StatusRefused},
		{403, "SignatureDoesNotMatch", "mistyped, revoked or expired", command.StatusRefused},
		{403, "RequestTimeTooSkewed", "Set the clock", command.StatusRefused},
		{404, "NoSuchBucket", "correct the URL", command.StatusRefused},
		{301, "PermanentRedirect", "Add region=REGION", command.StatusRefused},
		{503, "SlowDown", "Try again later", command.StatusUnreachable},
	} {
		status, answer = c.status, "<Error><Code>"+c.code+"</Code><Message>words</Message></Error>"
		got := run(t, "s3://backups?endpoint="+v.URL)
		if got.Status != c.exit || !strings.Contains(got.Err, c.want) || !strings.Contains(got.Out, "list  failed") ||
			strings.Contains(got.Out+got.Err, "plain-secret") {
			t.Errorf("%s: %+v, want words of %q", c.code, got, c.want)
		}
		got = run(t, "s3://backups?endpoint="+v.URL, "-o", "json")
		if got.Status != c.exit || got.Err != "" || !strings.Contains(got.Out, c.want) || !strings.Contains(got.Out,
			`"ok":false`) {
			t.Errorf("%s: %+v, want words of %q", c.code, got, c.want)
		}
	}
	secure := httptest.NewTLSServer(nil)
	t.Cleanup(secure.Close)
	if got := run(t, "s3://backups?endpoint="+secure.URL); got.Status != command.StatusRefused || !strings.Contains(got.Err,
		"ca=FILE") {
		t.Errorf("%+v", got)
	}
}

// Ensure that --at takes times in each form that `quorate undelete` takes, and says which there are.
func TestRestore_at(t *testing.T) {
	place := "file://" + t.TempDir()
	for at, want := range map[string]string{"15m": "has no backup", "2026-11-30 12:00:00": "has no backup",
		"2026-11-30T12:00:00": "has no backup", "2026-11-30T12:00:00Z": "has no backup", "2926-11-30T12:00:00Z": "has no backup",
		"2926-11-30 12:00:00": "has no backup", "2926-11-30 12:00": "has no backup", "1969-12-31 12:00:00": "no time after the beginning of 1970",
		"1969-12-31T12:00:00Z": "no time after the beginning of 1970", "2000000h": "no time after the beginning of 1970",
		"entry:7": "has no backup", "70": "has no backup", "-15m": "or 15m (ago), a revision, or entry:INDEX",
		"yesterday": `--at "yesterday": write "latest"`} {
		got := ctltest.Run(t, t.Context(), command.Streams{}, "", "restore", "--from", place, "--at="+at, "--plan")
		if got.Status == command.StatusOK || !strings.Contains(got.Err, want) {
			t.Errorf("%s: %+v", at, got)
		}
	}
}
