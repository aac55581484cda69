package audit_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/audit"
)

func parse(t *testing.T, text string) *audit.Policy {
	t.Helper()
	p, err := audit.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func call(user string, op audit.Op, ranges ...string) *audit.Event {
	e := &audit.Event{User: user, Op: op}
	for _, r := range ranges {
		key, end, _ := strings.Cut(r, "..")
		e.Parts = append(e.Parts, audit.Part{Key: []byte(key), End: []byte(end)})
	}
	return e
}

// Ensure that the first rule counts that matches; that a rule which records nothing needs all keys of a call, and another one
// any; and that changes of the policy are recorded whatever it says.
func TestPolicy_Match(t *testing.T) {
	p := parse(t, `{"keys": "hashed", "rules": [
		{"level": "none", "users": ["kubelet"], "operations": ["range", "put"], "prefixes": ["/leases/"]},
		{"level": "request", "prefixes": ["/secrets/"], "keys": "prefix"},
		{"level": "none", "operations": ["range", "watch", "audit"]},
		{"level": "metadata"}]}`)
	change := call("root", audit.OpAudit)
	change.Changes = true
	left := call("kubelet", audit.OpPut, "/leases/a")
	left.Left = 1
	for name, row := range map[string]struct {
		call  *audit.Event
		level audit.Level
		shape audit.Shape
	}{
		"below the prefix":               {call("kubelet", audit.OpPut, "/leases/a"), audit.None, audit.Hashed},
		"another user":                   {call("alice", audit.OpPut, "/leases/a"), audit.Metadata, audit.Hashed},
		"another operation":              {call("kubelet", audit.OpDelete, "/leases/a"), audit.Metadata, audit.Hashed},
		"one key outside":                {call("kubelet", audit.OpPut, "/leases/a", "/x"), audit.Metadata, audit.Hashed},
		"keys that are not shown":        {left, audit.Metadata, audit.Hashed},
		"a range that passes the prefix": {call("kubelet", audit.OpRange, "/leases/..\x00"), audit.Request, audit.Prefix},
		"a range inside":                 {call("kubelet", audit.OpRange, "/leases/a../leases/b"), audit.None, audit.Hashed},
		"all of the prefix":              {call("kubelet", audit.OpRange, "/leases/../leases0"), audit.None, audit.Hashed},
		"no key":                         {call("kubelet", audit.OpPut), audit.Metadata, audit.Hashed},
		"any key of another rule":        {call("bob", audit.OpTxn, "/x", "/secrets/a"), audit.Request, audit.Prefix},
		"a range before it":              {call("bob", audit.OpRange, "/a../secrets/"), audit.None, audit.Hashed},
		"a range that reaches it":        {call("bob", audit.OpRange, "/a../secrets/a"), audit.Request, audit.Prefix},
		"a look at the policy":           {call("root", audit.OpAudit), audit.None, audit.Hashed},
		"a change of the policy":         {change, audit.Request, audit.Plain},
	} {
		if level, shape := p.Match(row.call); level != row.level || level != audit.None && shape != row.shape {
			t.Errorf("%s: got level %d, shape %d; want %d, %d", name, level, shape, row.level, row.shape)
		}
	}
	if level, _ := new(audit.Policy).Match(call("", audit.OpPut, "k")); level != audit.None {
		t.Errorf("a policy without rules records at level %d", level)
	}
	if level, shape := audit.Everything().Match(call("", audit.OpPut, "k")); level != audit.Metadata || shape != audit.Hashed {
		t.Errorf("a policy of a later build records at level %d, keys as %d", level, shape)
	}
}

// Ensure that a policy that cannot be meant is refused, with what is wrong.
func TestParse_refused(t *testing.T) {
	many := strings.Repeat(`{"level": "none"},`, 128)
	for text, want := range map[string]string{
		``:                              "no JSON object",
		`[]`:                            "no JSON object",
		`{"rules": [{}]}`:               "rule 1 of the audit policy: it has no level",
		`{"rules": [{"level": "all"}]}`: `level "all"`,
		`{"rules": [{"level": "none", "user": "x"}]}`:                                    "unknown field",
		`{"rules": [{"level": "none", "operations": ["read"]}]}`:                         `no operation "read"`,
		`{"rules": [{"level": "none", "keys": "clear"}]}`:                                `keys "clear"`,
		`{"keys": "x", "rules": []}`:                                                     `keys "x"`,
		`{"rules": []} {}`:                                                               "more text",
		`{"salt": "AAAA", "rules": []}`:                                                  "salt",
		`{"rules": [` + many + `{"level": "none"}]}`:                                     "at most 128 rules",
		`{"rules": [{"level": "none", "users": [` + strings.Repeat(`"",`, 64) + `""]}]}`: "has 65 names",
		`{"rules": []}` + strings.Repeat(" ", audit.MaxPolicyBytes):                      "at most 16384 bytes",
	} {
		if _, err := audit.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: got %v, want %q", text, err, want)
		}
	}
}

// Ensure that a record is one line of JSON that has what it says, whatever bytes a client sends, and never a value; and that it
// has a bound.
func TestPolicy_Body(t *testing.T) {
	hostile := "a\n\"\\\x00\u202eé\U0001f600\xff"
	long := strings.Repeat("\x01", 4096)
	e := &audit.Event{Time: time.Unix(1, 234567000), User: hostile, From: []byte("10.0.0.1:2"), Op: audit.OpTxn, Method: "/a/B", Size: 7,
		Code: "PermissionDenied", Denied: true, Revision: 9, Trace: "t", About: long, Left: 3}
	for range audit.MaxParts {
		e.Parts = append(e.Parts, audit.Part{What: hostile, Key: []byte(long), End: []byte(hostile), Size: 5, Lease: 6})
	}
	policy := parse(t, `{"salt": "AAAAAAAAAAAAAAAAAAAAAA==", "rules": []}`)
	var chain audit.Chain
	for _, shape := range []audit.Shape{audit.Plain, audit.Hashed, audit.Prefix} {
		line := chain.Append(nil, policy.Body(nil, e, audit.Request, shape))
		if n := strings.Count(string(line), "\n"); n != 1 || line[len(line)-1] != '\n' || len(line) > 256<<10 {
			t.Fatalf("shape %d: %d lines, %d bytes", shape, n, len(line))
		}
		for _, c := range line[:len(line)-1] {
			if c < ' ' || c > '~' {
				t.Fatalf("shape %d: byte %x", shape, c)
			}
		}
		var got struct {
			Seq            uint64
			Time           time.Time
			User, Decision string
			Parts          []map[string]any
			Left           int `json:"parts_left_out"`
		}
		if err := json.Unmarshal(line, &got); err != nil {
			t.Fatalf("shape %d: %v in %s", shape, err, line)
		}
		if got.Seq != chain.Sequence || got.User != strings.ToValidUTF8(hostile, "\ufffd") || got.Decision != "denied" || got.Left != 3 ||
			len(got.Parts) != audit.MaxParts || !got.Time.Equal(e.Time) {
			t.Errorf("shape %d: got %+v", shape, got)
		}
		fields := map[audit.Shape]string{audit.Plain: "key", audit.Hashed: "key_hash", audit.Prefix: "key_prefix"}
		if _, found := got.Parts[0][fields[shape]]; !found {
			t.Errorf("shape %d: got %v", shape, got.Parts[0])
		}
	}
	e.Parts = []audit.Part{{Key: []byte("/a/b"), Size: 5}}
	for want, shape := range map[string]audit.Shape{`"key":"/a/b"`: audit.Plain, `"key_prefix":"/a/"`: audit.Prefix} {
		if body := string(policy.Body(nil, e, audit.Metadata, shape)); !strings.Contains(body, want) || strings.Contains(body, "bytes") {
			t.Errorf("got %s, want %s and no size", body, want)
		}
	}
	other := parse(t, `{"salt": "AQAAAAAAAAAAAAAAAAAAAA==", "rules": []}`)
	if string(policy.Body(nil, e, audit.Metadata, audit.Hashed)) == string(other.Body(nil, e, audit.Metadata, audit.Hashed)) {
		t.Error("the hash of a key does not depend on the salt")
	}
}

// Ensure that each method of the services has a kind, but for those that are never recorded.
func TestOpOf(t *testing.T) {
	for method, want := range map[string]audit.Op{
		"/etcdserverpb.KV/Put": audit.OpPut, "/etcdserverpb.Auth/Authenticate": audit.OpLogin, "/etcdserverpb.Auth/UserAdd": audit.OpAuth,
		"/quorate.v1.Membership/Start": audit.OpCluster,
		"/quorate.v1.Backup/Status":    audit.OpStatus, "/quorate.v1.Backup/Start": audit.OpCluster, "/quorate.v1.Doctor/Collect": audit.OpStatus,
		"/etcdserverpb.Maintenance/Status": audit.OpStatus, "/etcdserverpb.Maintenance/Snapshot": audit.OpMaintenance,
		"/quorate.v1.Encryption/Status": audit.OpStatus, "/quorate.v1.Encryption/Rotate": audit.OpMaintenance, "/x/Y": audit.OpOther, "": audit.OpOther,
	} {
		if got := audit.OpOf(method); got != want {
			t.Errorf("%s is %v, want %v", method, got, want)
		}
	}
}

// Ensure that a policy keeps its meaning with its salt.
func TestPolicy_WithSalt(t *testing.T) {
	p := parse(t, `{"rules": [{"level": "metadata", "prefixes": ["/\u00e9"]}]}`)
	text, err := p.WithSalt(make([]byte, audit.SaltBytes))
	if err != nil {
		t.Fatal(err)
	}
	again := parse(t, string(text))
	kept, err := again.WithSalt([]byte("another one, 16b"))
	if err != nil || string(kept) != string(text) {
		t.Errorf("got %s, %v; want %s", kept, err, text)
	}
	if level, _ := again.Match(call("", audit.OpPut, "/é/x")); level != audit.Metadata {
		t.Errorf("got level %d", level)
	}
}

func BenchmarkPolicy_Body(b *testing.B) {
	p, _ := audit.Parse([]byte(`{"rules": [{"level": "metadata"}]}`))
	e := &audit.Event{Time: time.Now(), User: "alice", From: []byte("10.0.0.1:12345"), Op: audit.OpPut, Method: "/etcdserverpb.KV/Put",
		Parts: []audit.Part{{Key: []byte("/registry/pods/default/web-7d4b9c")}}, Revision: 1234567}
	var chain audit.Chain
	var body, line []byte
	b.ReportAllocs()
	for b.Loop() {
		level, shape := p.Match(e)
		body = p.Body(body[:0], e, level, shape)
		line = chain.Append(line[:0], body)
	}
	b.ReportMetric(float64(len(line)), "bytes/record")
}
