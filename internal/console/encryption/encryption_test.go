package encryption_test

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/console/consoletest"
	"github.com/quorate/quorate/internal/console/encryption"
	"github.com/quorate/quorate/internal/console/page"
)

// member counts the rotations that it is asked for.
type member struct {
	consoletest.Conn
	rotated int
}

func (m *member) Invoke(ctx context.Context, method string, args, reply any, options ...grpc.CallOption) error {
	if method == quoratepb.Encryption_Rotate_FullMethodName {
		m.rotated++
	}
	return m.Conn.Invoke(ctx, method, args, reply, options...)
}

const day = int64(24 * 3600_000)

// encrypted is how a member of which all is encrypted is observed.
func encrypted(days int64) *quoratepb.ObservedEncryption {
	return &quoratepb.ObservedEncryption{Encrypted: true, Provider: "file", Key: "6c7e4157d61a8982d07ad56b06201133",
		CreatedMs: consoletest.Now - days*day, Keys: 1, Counted: true, Bytes: 1 << 30}
}

func newMember() (*member, *quoratepb.Collected) {
	c := consoletest.Healthy(3)
	for n := range c.Members {
		consoletest.Of(c, n+1).Encryption = encrypted(int64(10 * (n + 1)))
	}
	return &member{Conn: consoletest.Conn{quoratepb.Doctor_Collect_FullMethodName: c,
		quoratepb.Encryption_Rotate_FullMethodName: &quoratepb.EncryptionStatus{},
		quoratepb.Encryption_Status_FullMethodName: &quoratepb.EncryptionStatus{Provider: "kms", WrappedBy: "projects/x",
			Keys: []*quoratepb.DataKey{{Id: "former", CreatedSeconds: 1_700_000_000, Files: 3, Bytes: 30},
				{Id: "active", CreatedSeconds: 1_700_000_100, Files: 7, Bytes: 70, Active: true}}}}}, c
}

func show(t *testing.T, m *member, admin bool) string {
	t.Helper()
	return html.UnescapeString(consoletest.Open(t, m, []page.Page{encryption.Page()}, admin).Get("/encryption"))
}

func want(t *testing.T, body string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(body, text) {
			t.Errorf("the page lacks %q:\n%s", text, body[strings.Index(body, "<main"):])
			return
		}
	}
}

// Ensure that the page says whether all members encrypt, and of each what wraps its keys, how old they are, and how much has former
// ones, also where a member is off, does not answer, is of an earlier build, or has files in the clear.
func TestPage_members(t *testing.T) {
	m, c := newMember()
	want(t, show(t, m, false), `<span class="tag good">on</span> All members encrypt`, "<b>3 of 3</b>", "<b>30 days</b>", "<b>0</b>",
		"a key file", "6c7e4157d61a…", "100 % of 1.00 GiB", "quorate key rotate --endpoints http://m2:2379",
		"quorate defrag --endpoints http://m1:2379")
	two := consoletest.Of(c, 2)
	two.Encryption.FormerBytes, two.Encryption.Keys, two.Encryption.Provider = 3<<30, 3, "kms"
	consoletest.Of(c, 3).Encryption = &quoratepb.ObservedEncryption{}
	body := show(t, m, false)
	want(t, body, ">in part<", "2 of 3 members encrypt: what the others have on disk can be read.", "<b>1</b><span>still have", "a key service",
		"25 % of 4.00 GiB", "2 former keys", ">off<", "turn it on, member by member")
	if strings.Contains(body, "Commands for m3") {
		t.Error("a member that does not encrypt has commands for its keys")
	}
	consoletest.Of(c, 3).Encryption = nil
	want(t, show(t, m, false), "2 of 3 members encrypt, and 1 member did not tell.", "by a build before 1.1")
	c.Members[2].Observation, c.Members[2].Fault, c.Members[2].FaultText = nil, "unreachable", "connection refused"
	want(t, show(t, m, false), "no answer", "connection refused")
	two.Encryption.PlainBytes = 5 << 20
	want(t, show(t, m, false), ">look here<", "Files that are not encrypted lie in an encrypted directory", "5.00 MiB are not")
	for n := range 2 {
		consoletest.Of(c, n+1).Encryption = &quoratepb.ObservedEncryption{}
	}
	c.Members = c.Members[:2]
	two.Config.Members = two.Config.Members[:2]
	consoletest.Of(c, 1).Config.Members = two.Config.Members
	want(t, show(t, m, false), ">off<", "No member encrypts")
	m.Conn[quoratepb.Doctor_Collect_FullMethodName] = status.Error(codes.Unavailable, "away")
	want(t, show(t, m, false), "No answer in time", "projects/x")
}

// Ensure that the keys of the member are listed, the active one first, with their shares, and say so where there are none, where the
// user may not see them, and where somebody else looks at this moment.
func TestPage_keys(t *testing.T) {
	m, _ := newMember()
	body := show(t, m, false)
	want(t, body, "Keys of m1", "a key service, whose key is called", "projects/x", "70 %", "30 %", "2023-11-14 22:15:00Z",
		"quorate key status --endpoints http://127.0.0.1:2379", "quorate key rotate --endpoints http://127.0.0.1:2379", "read-only")
	if strings.Index(body, ">active") > strings.Index(body, ">former") {
		t.Error("the active key is not the first")
	}
	many := new(quoratepb.EncryptionStatus)
	for i := range 80 {
		many.Keys = append(many.Keys, &quoratepb.DataKey{Id: fmt.Sprint("key", i), Active: i == 79})
	}
	m.Conn[quoratepb.Encryption_Status_FullMethodName] = many
	want(t, show(t, m, false), "30 more keys", ">key79")
	for text, err := range map[string]error{
		"The data directory of m1 is not encrypted": status.Error(codes.FailedPrecondition, "the data directory of this member is not encrypted"),
		"Not permitted":    status.Error(codes.PermissionDenied, "etcdserver: permission denied"),
		"Too much at once": status.Error(codes.ResourceExhausted, "another call looks at the keys of this member: try again"),
	} {
		m.Conn[quoratepb.Encryption_Status_FullMethodName] = err
		body := show(t, m, true)
		want(t, body, text)
		if strings.Contains(body, "/encryption/rotate") {
			t.Errorf("%s: there is a form", text)
		}
	}
}

// Ensure that a new key is begun once the name of the member was typed, by a console that may, and that a refusal is told.
func TestPage_rotate(t *testing.T) {
	m, _ := newMember()
	b := consoletest.Open(t, m, []page.Page{encryption.Page()}, true)
	want(t, b.Get("/encryption"), `action="/encryption/rotate"`, "Type m1 to go on")
	for typed, code := range map[string]int{"": http.StatusConflict, "m2": http.StatusConflict, "m1": http.StatusSeeOther} {
		if got, body, to := b.Post("/encryption/rotate", url.Values{"typed": {typed}}); got != code || code == http.StatusSeeOther && to != "/encryption" {
			t.Errorf("typed %q: %d, %s: %s", typed, got, to, body)
		}
	}
	if m.rotated != 1 {
		t.Errorf("%d rotations", m.rotated)
	}
	m.Conn[quoratepb.Encryption_Rotate_FullMethodName] = status.Error(codes.FailedPrecondition, "the KMS plug-in did not answer")
	if code, body, _ := b.Post("/encryption/rotate", url.Values{"typed": {"m1"}}); code != http.StatusConflict ||
		!strings.Contains(body, "the KMS plug-in did not answer") {
		t.Errorf("a refusal: %d: %s", code, body)
	}
	reads := consoletest.Open(t, m, []page.Page{encryption.Page()}, false)
	if code, _, _ := reads.Post("/encryption/rotate", url.Values{"typed": {"m1"}}); code != http.StatusForbidden || m.rotated != 2 {
		t.Errorf("a console that reads: %d, %d rotations", code, m.rotated)
	}
}

// Ensure that nothing that a member says is markup, or no number.
func TestPage_hostile(t *testing.T) {
	const evil = `"><script>alert(1)</script>` + "\u202e\x00"
	m, c := newMember()
	for n := range c.Members {
		consoletest.Of(c, n+1).Encryption = &quoratepb.ObservedEncryption{Encrypted: true, Provider: evil, Key: evil, CreatedMs: -1 << 62,
			Keys: -5, Counted: true, Bytes: 1 << 62, FormerBytes: -1 << 62, PlainBytes: 1<<63 - 1}
		consoletest.Of(c, n+1).Config.Members[0].ClientUrls = []string{evil}
	}
	m.Conn[quoratepb.Encryption_Status_FullMethodName] = &quoratepb.EncryptionStatus{Provider: evil, WrappedBy: evil, PlainBytes: -1,
		Keys: []*quoratepb.DataKey{{Id: evil, CreatedSeconds: -1 << 62, Files: -1, Bytes: -1 << 62}}}
	body := consoletest.Open(t, m, []page.Page{encryption.Page()}, true).Get("/encryption")
	for _, text := range []string{"<script>alert", "\u202e", "\x00", "NaN", "Inf"} {
		if strings.Contains(body, text) {
			t.Errorf("the page has %q", text)
		}
	}
}
