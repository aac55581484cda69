package doctor_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/doctor"
)

var rewrite = flag.Bool("rewrite", false, "write the table of docs/doctor.md instead of comparing with it")

const documentFile = "../../docs/doctor.md"

// Ensure that the document has all codes, as the code has them.
func TestCodes_document(t *testing.T) {
	content, err := os.ReadFile(documentFile)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- codes -->\n", "<!-- /codes -->"
	before, rest, found := strings.Cut(string(content), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no place for the codes", documentFile)
	}
	var table strings.Builder
	table.WriteString("| code | severity | found when |\n|---|---|---|\n")
	for _, row := range doctor.Codes() {
		fmt.Fprintf(&table, "| `%s` | %s | %s |\n", row.Code, row.Impact, row.Means)
	}
	want := before + begin + table.String() + end + after
	switch {
	case *rewrite:
		if err := os.WriteFile(documentFile, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	case want != string(content):
		t.Errorf("%s differs from the table: run this test with -rewrite", documentFile)
	}
}

// Ensure that a code has one row, and that what it explains comes after it: else two findings could explain each other.
func TestCodes_order(t *testing.T) {
	seen := map[doctor.Code]bool{}
	for _, row := range doctor.Codes() {
		if seen[row.Code] || row.Means == "" || row.Impact == "" {
			t.Errorf("%s: a second row, or an empty one", row.Code)
		}
		seen[row.Code] = true
	}
	if len(seen) < 30 {
		t.Errorf("%d codes", len(seen))
	}
}
