package rules_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/consensus/rules"
)

var rewrite = flag.Bool("rewrite", false, "write the tables of docs/rules.md instead of comparing with them")

const documentFile = "../../../docs/rules.md"

// Ensure that docs/rules.md, below its first heading, is what package rules makes.
func TestDocument(t *testing.T) {
	got, err := os.ReadFile(documentFile)
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(got), "\n## ")
	want := head + tables(t)
	if *rewrite {
		if err := os.WriteFile(documentFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(got) != want {
		t.Errorf("%s differs from the table: run this test with -rewrite", documentFile)
	}
}

// Ensure that the mutants of spec/README.md bear the names of rules.
func TestDocument_specification(t *testing.T) {
	text, err := os.ReadFile("../../../spec/README.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("\\*\\*mutant\\*\\* `([a-z-]+)`").FindAllStringSubmatch(string(text), -1)
	for _, match := range found {
		if _, known := rules.Named(match[1]); !known {
			t.Errorf("no rule is called %s", match[1])
		}
	}
	if len(found) < 6 {
		t.Errorf("%d mutants drop a rule", len(found))
	}
}

// tables has a section for each group of rules.
func tables(t *testing.T) string {
	names, titles := constants(t)
	var b strings.Builder
	for r := rules.None + 1; r < rules.Count; r++ {
		if title := titles[names[r]]; title != "" {
			fmt.Fprintf(&b, "\n## %s\n| without it | the rule | stated in | dropped in | the simulator reports |\n|---|---|---|---|---|\n", title)
		}
		row := r.Text()
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", row.Name, row.Demands, linked(t, row.Source), parts(row.In), row.Law)
	}
	return b.String()
}

func parts(in rules.Part) string {
	var words []string
	for _, part := range []struct {
		in   rules.Part
		name string
	}{{rules.Core, "core"}, {rules.Harness, "harness"}, {rules.Identity, "identity"}, {rules.Model, "model"}} {
		if in&part.in != 0 {
			words = append(words, part.name)
		}
	}
	return strings.Join(words, ", ")
}

var (
	decision = regexp.MustCompile(`ADR (\d+)`)
	document = regexp.MustCompile(`docs/([\w-]+\.md)`)
)

// linked turns the documents that a source names into links.
func linked(t *testing.T, source string) string {
	source = decision.ReplaceAllStringFunc(source, func(name string) string {
		number, _ := strconv.Atoi(strings.TrimPrefix(name, "ADR "))
		found, err := filepath.Glob(fmt.Sprintf("../../../docs/adr/%04d-*.md", number))
		if err != nil || len(found) != 1 {
			t.Errorf("%s: %d files (%v)", name, len(found), err)
			return name
		}
		return fmt.Sprintf("[%s](adr/%s)", name, filepath.Base(found[0]))
	})
	return document.ReplaceAllString(source, "[$1]($1)")
}
