package audit_test

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/ctltest"
)

// Ensure that a script can tell files that are proved, files with damage, and files that no head proves from each other, and
// from a command line that is wrong.
func TestVerify_status(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	chain, at := audit.Chain{Member: 1, ID: 7}, time.Unix(1_800_000_000, 0)
	records := chain.Append(nil, chain.FileBody(nil, at, audit.Begins, 0))
	for range 200 {
		records = chain.Append(records, new(audit.Policy).Body(nil, &audit.Event{Time: at, Op: audit.OpPut}, audit.Metadata,
			audit.Plain))
	}
	var heads, packed bytes.Buffer
	head := audit.Head{Member: 1, Chain: 7, Sequence: chain.Sequence, At: at, Sum: chain.Sum}
	if err := audit.WriteHeads(&heads, []audit.Head{head}); err != nil {
		t.Fatal(err)
	}
	to := gzip.NewWriter(&packed)
	if _, err := to.Write(records); err != nil || to.Close() != nil {
		t.Fatal(err)
	}
	damaged := bytes.Clone(packed.Bytes())
	damaged[len(damaged)/2] ^= 1
	known, none := write("heads", heads.Bytes()), write("none", nil)
	for _, tc := range []struct {
		name, heads string
		file        []byte
		status      int
		says        string
	}{
		{"whole", known, records, command.StatusOK, "intact: "},
		{"whole.gz", known, packed.Bytes(), command.StatusOK, "intact: "},
		{"edited", known, bytes.Replace(records, []byte("put"), []byte("get"), 1), command.StatusRefused, "broken: "},
		{"edited-unproved", none, bytes.Replace(records, []byte("put"), []byte("get"), 1), command.StatusRefused, "broken: "},
		{"damaged.gz", known, damaged, command.StatusRefused, "broken: "},
		{"half.gz", known, packed.Bytes()[:packed.Len()/2], command.StatusRefused, "broken: "},
		{"no.gz", known, []byte("not packed at all"), command.StatusRefused, "broken: "},
		{"unproved", none, records, command.StatusNotProved, "not proved: "},
	} {
		got := ctltest.Run(t, t.Context(), command.Streams{}, "", "audit", "verify", "--heads", tc.heads, write(tc.name, tc.file))
		if got.Status != tc.status || !strings.Contains(got.Out+got.Err, tc.says) {
			t.Errorf("%s: got %+v, want status %d and %q", tc.name, got, tc.status, tc.says)
		}
	}
	got := ctltest.Run(t, t.Context(), command.Streams{}, "", "audit", "verify", "--heads", known, filepath.Join(dir, "absent"))
	if got.Status != command.StatusUsage {
		t.Errorf("a file that is not there: got %+v", got)
	}
}
