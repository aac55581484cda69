package frozen_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/quorate/quorate/test/golden/frozen"
)

func table() []frozen.Value {
	return []frozen.Value{
		{Name: "a number", Bytes: []byte{1, 2, 255}},
		{Name: "a text", Bytes: []byte("quorate \"boots\" 1\nboots 3\nend")},
		{Name: "nothing"},
		{Name: "long", Bytes: make([]byte, 100)},
	}
}

// Ensure that a table reads back as it was printed.
func TestParse(t *testing.T) {
	text := frozen.Print(table())
	got, err := frozen.Parse(text)
	if err != nil || !reflect.DeepEqual(got, table()) {
		t.Fatalf("%v, %v, of\n%s", got, err, text)
	}
	for _, broken := range []string{"    00\n", "name\n    0x\n", "name\n    \"\n"} {
		if _, err := frozen.Parse(broken); err == nil {
			t.Errorf("%q is taken for a table", broken)
		}
	}
}

// Ensure that one byte that changed, one value that is gone, and one name that stands twice are faults, that the sentence says
// what to do, and that a new value is none.
func TestCompare(t *testing.T) {
	with := func(change func([]frozen.Value) []frozen.Value) []frozen.Value { return change(table()) }
	for name, tc := range map[string]struct {
		values []frozen.Value
		want   string
		added  int
	}{
		"nothing changed": {values: table()},
		"a byte": {values: with(func(v []frozen.Value) []frozen.Value { v[0].Bytes = []byte{1, 3, 255}; return v }),
			want: `"a number" is encoded otherwise: `},
		"a byte more": {values: with(func(v []frozen.Value) []frozen.Value { v[2].Bytes = []byte{0}; return v }),
			want: `"nothing" is encoded otherwise: `},
		"gone":  {values: table()[1:], want: `"a number" is no longer encoded: `},
		"twice": {values: append(table(), table()[0]), want: `two values have the name "a number"`},
		"new": {values: append(table(), frozen.Value{Name: "another", Bytes: []byte{1}}),
			added: 1},
	} {
		faults, added := frozen.Compare(table(), tc.values)
		text := strings.Join(faults, "\n")
		if (text == "") != (tc.want == "") || !strings.Contains(text, tc.want) || len(added) != tc.added {
			t.Errorf("%s: %d new values, and %q, want %q", name, len(added), text, tc.want)
		}
		if strings.Contains(tc.want, "encoded") && !strings.Contains(text, "raise the level") {
			t.Errorf("%s: %q does not say what to do", name, text)
		}
	}
}

// Ensure that rewriting appends, and leaves a value that changed as it was.
func TestCheck_rewrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bytes.txt")
	frozen.Check(t, path, true, table()[:2])
	frozen.Check(t, path, true, table())
	frozen.Check(t, path, false, table())
	changed := table()
	changed[0].Bytes = []byte{7}
	told := &recorder{TB: t}
	frozen.Check(told, path, true, changed)
	kept, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !told.failed || string(kept) != frozen.Print(table()) {
		t.Errorf("failed: %v, and the table is now\n%s", told.failed, kept)
	}
}

// recorder notes that a test failed, and lets it go on.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Errorf(string, ...any) { r.failed = true }
