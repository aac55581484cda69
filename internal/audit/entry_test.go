package audit_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/audit"
)

// entryOf is a record of a call as it is read again.
func entryOf(t *testing.T, policy string, e *audit.Event) audit.Entry {
	t.Helper()
	p := parse(t, policy)
	level, shape := p.Match(e)
	chain := audit.Chain{Member: 0xa1, ID: 7}
	line := chain.Append(nil, p.Body(nil, e, level, shape))
	got, ok := audit.ParseEntry(bytes.TrimSuffix(line, []byte("\n")))
	if !ok {
		t.Fatalf("not a record: %s", line)
	}
	return got
}

// Ensure that a record is read again as it was written, whatever a client has sent, and that a line that is none is not taken.
func TestParseEntry(t *testing.T) {
	e := call("ann\x1b", audit.OpPut, "\xff\x00")
	e.Time, e.From, e.Method, e.Code, e.Denied, e.Revision = time.UnixMicro(1_800_000_000_000_001), []byte("10.0.0.7:1"), "/s/m",
		"PermissionDenied", true, 9
	e.Write = audit.Write{Client: 0xc, Session: 0xb, Sequence: 7, Attempt: audit.AttemptRepeat}
	got := entryOf(t, `{"rules": [{"level": "metadata"}]}`, e)
	if got.Write != "c/b/7" || got.Attempt != audit.AttemptRepeat {
		t.Errorf("the write: %+v", got)
	}
	if got.Seq != 1 || got.Member != "a1" || !got.Time.Equal(e.Time) || got.User != "ann\x1b" || got.From != "10.0.0.7:1" ||
		got.Op != "put" || got.Method != "/s/m" || got.Decision != "denied" || got.Code != e.Code || got.Revision != 9 ||
		string(got.KeyBase64) != "\xff\x00" {
		t.Errorf("got %+v", got)
	}
	chain := audit.Chain{Member: 1, ID: 2}
	lost, ok := audit.ParseEntry(chain.Append(nil, audit.EventBody(nil, e.Time, audit.EventLost, 5, "too slow")))
	if !ok || lost.Event != audit.EventLost || lost.Count != 5 || lost.Why != "too slow" {
		t.Errorf("got %+v, %v", lost, ok)
	}
	for _, line := range []string{"", "{}", `{"seq":0}`, `{"seq":"1"}`, "[1]", `{"seq":1`, `{"seq":-1}`} {
		if got, ok := audit.ParseEntry([]byte(line)); ok {
			t.Errorf("%s is taken for %+v", line, got)
		}
	}
}

// Ensure that a record is found by a prefix wherever one of its keys may lie below it, in each shape that a policy gives keys.
func TestEntry_Below(t *testing.T) {
	txn := call("", audit.OpTxn, "/a/1", "/b/1..")
	txn.Parts[0].What, txn.Parts[1].What = "compare mod =", "put"
	toEnd := call("", audit.OpRange)
	toEnd.Parts = []audit.Part{{Key: []byte("/m"), End: []byte{0}}}
	for _, row := range []struct {
		shape  string
		event  *audit.Event
		prefix string
		want   bool
	}{
		{"plain", call("", audit.OpPut, "/a/b"), "/a/", true},
		{"plain", call("", audit.OpPut, "/a/b"), "/b/", false},
		{"plain", call("", audit.OpPut, "\xff\xfe"), "\xff", true},
		{"plain", call("", audit.OpRange, "/a../z"), "/k/", true},
		{"plain", call("", audit.OpRange, "/a../c"), "/d", false},
		{"plain", toEnd, "/z", true}, {"plain", toEnd, "/a", false},
		{"plain", txn, "/b/", true}, {"plain", txn, "/c/", false},
		{"plain", call("", audit.OpCluster), "", false},
		{"prefix", call("", audit.OpPut, "/a/b/c"), "/a/", true},
		{"prefix", call("", audit.OpPut, "/a/b/c"), "/a/b/c", true}, // it may be that one
		{"prefix", call("", audit.OpPut, "/a/b/c"), "/b/", false},
		{"hashed", call("", audit.OpPut, "/a/b"), "/a/", false},
	} {
		got := entryOf(t, `{"keys": "`+row.shape+`", "rules": [{"level": "metadata"}]}`, row.event)
		if below := got.Below([]byte(row.prefix)); below != row.want {
			t.Errorf("%s, %v: %v below %q", row.shape, row.event.Parts, below, row.prefix)
		}
	}
}
