package audit_test

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/audit"
	page "github.com/quorate/quorate/internal/console/audit"
	"github.com/quorate/quorate/internal/console/consoletest"
)

// member keeps a policy, as a member does, and checks it by package audit.
type member struct {
	consoletest.Conn
	policy  string
	version uint64
	sets    int
	asked   *quoratepb.AuditRecordsRequest
}

func (m *member) Invoke(ctx context.Context, method string, args, reply any, options ...grpc.CallOption) error {
	switch r := args.(type) {
	case *quoratepb.AuditPolicyRequest:
		if m.Conn[method] == nil {
			proto.Merge(reply.(proto.Message), &quoratepb.AuditPolicy{Policy: m.policy, Version: m.version})
			return nil
		}
	case *quoratepb.SetAuditPolicyRequest:
		p, err := audit.Parse([]byte(r.Policy))
		if err != nil || r.Version != m.version {
			return status.Errorf(codes.Aborted, "version %d: %v", r.Version, err)
		}
		text, err := p.WithSalt([]byte("0123456789abcdef"))
		m.policy, m.version, m.sets = string(text), m.version+1, m.sets+1
		return err
	case *quoratepb.AuditRecordsRequest:
		m.asked = r
	}
	return m.Conn.Invoke(ctx, method, args, reply, options...)
}

const sample = `{"keys": "prefix", "rules": [
	{"level": "none", "users": ["kubelet"], "prefixes": ["/leases/"]},
	{"level": "request", "users": ["", "ann"], "prefixes": ["/secrets/"], "keys": "hashed"},
	{"level": "none", "operations": ["range", "watch"]}, {"level": "metadata"}]}`

func newMember(policy string) *member {
	c := consoletest.Healthy(3)
	for n := range c.Members {
		consoletest.Of(c, n+1).Audit = []*quoratepb.ObservedOutput{{Name: fmt.Sprintf("/var/log/audit-%d.log", n+1), Kind: "file", Records: 5000}}
	}
	m := &member{Conn: consoletest.Conn{quoratepb.Doctor_Collect_FullMethodName: c,
		quoratepb.Audit_Heads_FullMethodName: &quoratepb.AuditHeads{Heads: []*quoratepb.AuditHead{
			{Member: 1, Chain: 7, Sequence: 30, UnixMillis: consoletest.Now, File: "audit-1.log"},
			{Member: 1, Chain: 7, Sequence: 40, UnixMillis: consoletest.Now + 60_000, File: "audit-1.log"},
			{Member: 2, Chain: 8, Sequence: 9, UnixMillis: consoletest.Now, File: "audit-2.log"}}},
		quoratepb.Audit_Records_FullMethodName: &quoratepb.AuditRecords{Member: 1, Output: "/var/log/audit-1.log", LookedAt: 3, Whole: true,
			Lines: []string{
				`{"seq":9,"time":"2026-11-30T07:41:05.9Z","user":"ann","from":"10.0.0.7:1","op":"put","key":"/a","decision":"denied","code":"PermissionDenied"}`,
				`{"seq":8,"time":"2026-11-30T07:41:04Z","user":"bob","op":"txn","parts":[{"what":"compare mod =","key":"/b"},` +
					`{"what":"put","key_hash":"c0ffee"}],"decision":"allowed","revision":3}`,
				`{"seq":7,"time":"2026-11-30T07:41:03Z","event":"lost","records":12,"why":"too slow"}`}},
	}}
	if policy != "" {
		m.policy, m.version = policy, 3
	}
	return m
}

func open(t *testing.T, m *member, admin bool) *consoletest.Browser {
	return consoletest.Open(t, m, page.Pages(), admin)
}

func want(t *testing.T, body string, texts ...string) {
	t.Helper()
	body = html.UnescapeString(body)
	for _, text := range texts {
		if !strings.Contains(body, text) {
			t.Errorf("the page lacks %q:\n%s", text, body[strings.Index(body, "<main"):])
			return
		}
	}
}

// Ensure that the policy is told in words, that there are policies to begin with where there is none, and that one of a later build is
// shown as it is.
func TestPages_policy(t *testing.T) {
	body := open(t, newMember(sample), false).Get("/audit")
	want(t, body, "Version 3", "kubelet", "/leases/…", "not recorded", "recorded in detail", "as a hash", "nobody logged in<br>ann", "range, watch",
		"up to the last slash", "/audit/rule?at=2&do=edit", "quorate audit policy show")
	if strings.Contains(body, "every other call") {
		t.Error("rule 4 matches every call, and the page says that others are not recorded")
	}
	want(t, open(t, newMember(`{"rules": [{"level": "metadata", "operations": ["put"]}]}`), false).Get("/audit"), "every other call")
	want(t, open(t, newMember(""), false).Get("/audit"), "No policy is set", "/audit/rule?do=start&start=changes")
	later := newMember(`{"rules": [], "then": 1}`)
	want(t, open(t, later, false).Get("/audit"), "not understood", `"then": 1`)
	want(t, open(t, later, true).Get("/audit/rule?do=add&level=none"), "A later build wrote the policy")
	later.Conn[quoratepb.Audit_Policy_FullMethodName] = status.Error(codes.PermissionDenied, "etcdserver: permission denied")
	want(t, open(t, later, false).Get("/audit"), "Not permitted", "/var/log/audit-1.log")
}

// Ensure that the page says whether the outputs take records, and of each member why not.
func TestPages_outputs(t *testing.T) {
	m := newMember(sample)
	c := m.Conn[quoratepb.Doctor_Collect_FullMethodName].(*quoratepb.Collected)
	show := func(texts ...string) {
		t.Helper()
		want(t, open(t, m, false).Get("/audit"), texts...)
	}
	show("all take records", "5\u2009000", "best effort", "takes records")
	consoletest.Of(c, 2).Audit[0].Name, consoletest.Of(c, 2).Audit[0].Kind = "otlps://c:4317", "OTLP collector"
	show("/var/log/audit-1.log <span class=\"tag\">file</span>", "otlps://c:4317 <span class=\"tag\">OTLP collector</span>")
	consoletest.Of(c, 1).Audit[0].LateMs = 3000
	show("late, 3 s")
	consoletest.Of(c, 3).Audit = nil
	show("in part", "1 member records nothing", "started without --audit-log")
	consoletest.Of(c, 2).Audit[0].Dropped, consoletest.Of(c, 2).Audit[0].Lost = 7, 90
	show("records are lost", "7 records lost in the last minute", ">90<")
	one := consoletest.Of(c, 1).Audit[0]
	one.Required, one.DeadlineMs, one.Blocked, one.LateMs, one.Trouble = true, 5000, true, 12_000, "no space left on device"
	show("calls are refused", "1 member refuses", "required, within 5 s", "stuck for 12 s", "no space left on device")
	c.Members[1].Observation, c.Members[1].Fault, c.Members[1].FaultText = nil, "unreachable", "connection refused"
	show("no answer: connection refused")
	for n := range 3 {
		c.Members[n] = consoletest.Healthy(3).Members[n]
	}
	show("No member has an output, so nothing is recorded")
	m.Conn[quoratepb.Doctor_Collect_FullMethodName] = status.Error(codes.Unavailable, "away")
	show("No answer in time", "Version 3", "/var/log/audit-1.log, the newest first")
}

// Ensure that records are shown with who, what and how they ended, and asked for as the form says, with the command that does it.
func TestPages_records(t *testing.T) {
	m := newMember(sample)
	b := open(t, m, false)
	want(t, b.Get("/audit"), "Latest records of m1", "2026-11-30 07:41:05Z", "10.0.0.7:1", `<span class="tag bad">denied, PermissionDenied`,
		"compare mod = /b, put hash c0ffee", "12 records are missing here: too slow", "which are all of the file",
		"quorate audit records --limit 50 --endpoints")
	if m.asked.User != nil || m.asked.Prefix != nil || m.asked.GetOperation() != "" || m.asked.GetLimit() != 50 {
		t.Errorf("asked for %v", m.asked)
	}
	want(t, b.Get("/audit?by=ann&prefix=%2Fa%2F&operation=put"), "quorate audit records --by ann --prefix /a/ --operation put --limit 50",
		"All records")
	if m.asked.GetUser() != "ann" || string(m.asked.GetPrefix()) != "/a/" || m.asked.GetOperation() != "put" {
		t.Errorf("asked for %v", m.asked)
	}
	b.Get("/audit?prefix=" + url.QueryEscape(`"\x00a"`))
	if string(m.asked.GetPrefix()) != "\x00a" {
		t.Errorf("asked for %v", m.asked)
	}
	want(t, b.Get("/audit?operation=pat"), "There is no operation pat.")
	want(t, b.Get("/audit?prefix=%22a"), "ends with a quote")
	m.Conn[quoratepb.Audit_Records_FullMethodName] = &quoratepb.AuditRecords{LookedAt: 900}
	want(t, b.Get("/audit?by=eve"), "None of the latest records is like that.", "900 records were looked at, at its end")
	m.Conn[quoratepb.Audit_Records_FullMethodName] = status.Error(codes.FailedPrecondition, "this member writes records to no file")
	want(t, b.Get("/audit?by=x"), "no file", "This member writes records to no file.")
	m.Conn[quoratepb.Audit_Records_FullMethodName] = status.Error(codes.ResourceExhausted, "another call reads")
	want(t, b.Get("/audit?by=y"), "Too much at once")
}

// Ensure that the page says which rule counts for a call, as package audit decides, and how files are verified.
func TestPages_check(t *testing.T) {
	b := open(t, newMember(sample), false)
	for query, text := range map[string]string{
		"call=put&caller=kubelet&key=/leases/a": "rule 1 leaves it out", "call=put&caller=kubelet&key=/x": "rule 4: who, from where",
		"call=put&caller=ann&key=/secrets/x": "rule 2: also sizes", "call=put&key=/secrets/x": "keys are written as a hash",
		"call=range": "rule 3 leaves it out", "call=pat": "There is no operation pat", "call=put&key=%22a": "ends with a quote",
	} {
		want(t, b.Get("/audit?"+query), text)
	}
	want(t, open(t, newMember(""), false).Get("/audit?call=put"), "no policy is set")
	want(t, open(t, newMember(`{"rules": []}`), false).Get("/audit?call=put"), "no rule matches it")
	want(t, b.Get("/audit"), "on the machine of m2", "quorate audit verify /var/log/audit-2*.log* --endpoints", `class="number">40<`,
		`class="number">2<`, "audit-2.log")
}

// Ensure that a change is previewed with what becomes of each rule, with what may not be meant, and with its command; and that what
// cannot be set says why.
func TestPages_preview(t *testing.T) {
	b := open(t, newMember(sample), false)
	for query, texts := range map[string][]string{
		"do=add&level=metadata&op=put&op=txn&users=eve%0D%0A%0D%0Amallory&nobody=yes&prefixes=/x/&place=2&keys=plain": {
			"A new rule, at place 2", ">new<", "put, txn", "eve<br>mallory<br>nobody logged in", "/x/…", "read-only",
			"quorate audit policy set - --endpoints http://127.0.0.1:2379 <<'END'",
			`{"level":"metadata","users":["eve","mallory",""],"prefixes":["/x/"],"operations":["put","txn"],"keys":"plain"},`},
		"do=add&level=none&place=1":            {"Rule 1 matches every call: the rules behind it never count."},
		"do=add&level=none":                    {"A new rule, at place 5", "Rule 4 matches every call"},
		"do=edit&at=3&level=metadata&op=range": {"Rule 3 changes", ">changed<", "Reads are recorded, too"},
		"do=edit&at=2":                         {"The rule", "/secrets/", "ann", `value="yes" checked`},
		"do=remove&at=4":                       {"Rule 4 is removed", ">removed<", "every other call"},
		"do=up&at=2":                           {"Rule 2 moves up", ">moved up<"},
		"do=up&at=1":                           {"The rule is the first one already."},
		"do=remove&at=9":                       {"The policy has no rule 9: it has 4."},
		"do=edit&at=x&level=none":              {"The policy has no rule 0"},
		"do=add&level=loud":                    {"This cannot be set", "Rule 5 of the audit policy: level \"loud\""},
		"do=add&level=none&op=pat":             {"there is no operation"},
		"do=add&level=none&place=7":            {"The place of the rule is a number from 1 to 5."},
		"do=start&start=unheard":               {"There is no such policy"},
		"do=edit&at=4&level=metadata":          {"no change"},
		"":                                     {"This page is reached from the page Audit"},
	} {
		body := b.Get("/audit/rule?" + query)
		want(t, body, texts...)
		if strings.Contains(body, `method="post"`) {
			t.Errorf("%s: a console that reads has a form", query)
		}
	}
	m := newMember("")
	c := m.Conn[quoratepb.Doctor_Collect_FullMethodName].(*quoratepb.Collected)
	consoletest.Of(c, 2).Audit = nil
	for n := range c.Members {
		consoletest.Of(c, n+1).Config.Level = 1
	}
	body := open(t, m, true).Get("/audit/rule?do=start&start=everything")
	want(t, body, "The policy begins", "feature level 2, and level 1 is active", "record nothing: m2")
	if strings.Contains(body, `method="post"`) {
		t.Error("a policy that is refused has a form")
	}
}

// formOf are the fields of the form of a page that changes something.
func formOf(t *testing.T, body string) url.Values {
	t.Helper()
	_, form, found := strings.Cut(body, `<form method="post"`)
	if !found {
		t.Fatalf("no form in %s", body)
	}
	form, _, _ = strings.Cut(form, "</form>")
	fields := url.Values{}
	for _, m := range regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)"`).FindAllStringSubmatch(form, -1) {
		fields.Add(html.UnescapeString(m[1]), html.UnescapeString(m[2]))
	}
	return fields
}

// Ensure that a form sets what its preview has shown, with the salt that there is, and nothing if the policy was changed since; that
// the command of a preview sets the same; and that a console that reads has no such form.
func TestPages_set(t *testing.T) {
	m := newMember("")
	b := open(t, m, true)
	if code, body, to := b.Post("/audit/rule", formOf(t, b.Get("/audit/rule?do=start&start=changes"))); code != http.StatusSeeOther ||
		to != "/audit" || m.sets != 1 {
		t.Fatalf("%d, %s: %s", code, to, body)
	}
	before, err := audit.ParseDocument([]byte(m.policy))
	if err != nil || len(before.Rules) != 2 || len(before.Salt) != audit.SaltBytes {
		t.Fatalf("%v: %s", err, m.policy)
	}
	body := b.Get("/audit/rule?do=add&level=request&users=a%26b%0D%0Ac&op=put&op=txn&place=1")
	form := formOf(t, body)
	if code, body, _ := b.Post("/audit/rule", form); code != http.StatusSeeOther {
		t.Fatalf("%d: %s", code, body)
	}
	after, err := audit.ParseDocument([]byte(m.policy))
	if err != nil || len(after.Rules) != 3 || after.Rules[0].Level != "request" || strings.Join(after.Rules[0].Users, " ") != "a&b c" ||
		strings.Join(after.Rules[0].Operations, " ") != "put txn" || string(after.Salt) != string(before.Salt) {
		t.Fatalf("%v: %s", err, m.policy)
	}
	_, command, _ := strings.Cut(html.UnescapeString(body), "<<'END'\n")
	command, _, _ = strings.Cut(command, "\nEND")
	p, err := audit.Parse([]byte(command))
	if err != nil {
		t.Fatalf("%v: %s", err, command)
	}
	if text, err := p.WithSalt(nil); err != nil || string(text) != m.policy {
		t.Errorf("%v: the command sets %s, the form %s", err, text, m.policy)
	}
	for what, change := range map[string]func(url.Values){
		"changed since the preview": func(url.Values) {}, "does not say which policy": func(f url.Values) { f.Set("version", "x") },
	} {
		f := url.Values{}
		for k, v := range form {
			f[k] = v
		}
		change(f)
		if code, body, _ := b.Post("/audit/rule", f); code != http.StatusConflict || !strings.Contains(body, what) {
			t.Errorf("%s: %d: %s", what, code, body)
		}
	}
	fresh := formOf(t, b.Get("/audit/rule?do=remove&at=1"))
	fresh.Set("at", "9")
	if code, _, _ := b.Post("/audit/rule", fresh); code != http.StatusConflict || m.sets != 2 {
		t.Errorf("a wrong form: %d, %d sets", code, m.sets)
	}
	if code, _, _ := open(t, m, false).Post("/audit/rule", form); code != http.StatusForbidden {
		t.Errorf("a console that reads: %d", code)
	}
}

var hidden = regexp.MustCompile(`<input type="hidden"[^>]*>`)

// Ensure that nothing that a policy, a record, a member or a reader says is markup, or moves the text.
func TestPages_hostile(t *testing.T) {
	const evil = `"><script>alert(1)</script>` + "\u202e\u0001"
	quoted := strings.ReplaceAll(strings.ReplaceAll(evil, `"`, `\"`), "\u0001", `\u0001`)
	m := newMember(`{"rules": [{"level": "metadata", "users": ["` + quoted + `"], "prefixes": ["` + quoted + `"]}]}`)
	c := m.Conn[quoratepb.Doctor_Collect_FullMethodName].(*quoratepb.Collected)
	for n := range c.Members {
		for range 200 {
			consoletest.Of(c, n+1).Audit = append(consoletest.Of(c, n+1).Audit, &quoratepb.ObservedOutput{Name: evil, Kind: evil, Trouble: evil,
				LateMs: -1 << 62, DeadlineMs: -1, Records: 1<<64 - 1, Lost: 1<<64 - 1, Required: true})
		}
	}
	line := `{"seq":1,"time":"2026-11-30T07:41:05Z","user":"` + quoted + `","from":"` + quoted + `","op":"` + quoted + `","key":"` + quoted +
		`","end":"` + quoted + `","about":"` + quoted + `","decision":"` + quoted + `","code":"` + quoted + `"}`
	m.Conn[quoratepb.Audit_Records_FullMethodName] = &quoratepb.AuditRecords{Output: evil, LookedAt: -1 << 62, Lines: []string{line, evil,
		strings.ReplaceAll(line, `"op"`, `"event":"`+quoted+`","op"`)}}
	m.Conn[quoratepb.Audit_Heads_FullMethodName] = &quoratepb.AuditHeads{Heads: []*quoratepb.AuditHead{{Member: 1 << 63, File: evil,
		UnixMillis: -1 << 62, Sequence: 1<<64 - 1}}}
	b, text := open(t, m, true), url.QueryEscape(evil)
	for _, target := range []string{"/audit", "/audit?by=" + text + "&prefix=" + text + "&operation=" + text + "&call=" + text + "&key=" + text,
		"/audit/rule?do=add&level=" + text + "&users=" + text + "&prefixes=" + text + "&op=" + text + "&place=" + text + "&keys=" + text,
		"/audit/rule?do=edit&at=1", "/audit/rule?do=remove&at=1", "/audit/rule?do=" + text} {
		body := hidden.ReplaceAllString(b.Get(target), "") // fields that nobody sees keep what they are
		for _, odd := range []string{"<script>alert", "\u202e", "\u0001", "NaN"} {
			if strings.Contains(body, odd) {
				at := strings.Index(body, odd)
				t.Errorf("%s has %q: %q", target, odd, body[max(0, at-120):at+20])
			}
		}
	}
}
