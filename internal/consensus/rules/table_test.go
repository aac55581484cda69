package rules_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/consensus/rules"
	"github.com/quorate/quorate/internal/identity"
)

// constants returns the names of the rules' constants, in their order, and by name the comments that begin their groups.
func constants(t *testing.T) (names []string, titles map[string]string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "names.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	titles = map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			name := spec.Names[0].Name
			if names = append(names, name); spec.Doc != nil {
				titles[name] = strings.TrimSuffix(strings.TrimSpace(spec.Doc.Text()), ".")
			}
		}
		return true
	})
	if len(names) != int(rules.Count)+1 || names[0] != "None" || names[rules.Count] != "Count" {
		t.Fatalf("%d names of %d rules: %v", len(names), rules.Count, names)
	}
	return names[:rules.Count], titles
}

var humps = regexp.MustCompile(`([a-z])([A-Z])`)

// hyphened is the name of a rule whose constant, or switch, is called name.
func hyphened(name string) string { return strings.ToLower(humps.ReplaceAllString(name, "$1-$2")) }

// Ensure that every rule has a row, that its name is that of its constant, and that no sentence stands there twice.
func TestTable(t *testing.T) {
	names, _ := constants(t)
	said := map[string]rules.Rule{}
	for r := rules.None + 1; r < rules.Count; r++ {
		row := r.Text()
		if row.Name != hyphened(names[r]) {
			t.Errorf("%s is called %q", names[r], row.Name)
		}
		if found, known := rules.Named(row.Name); !known || found != r || r.String() != row.Name {
			t.Errorf("%v is found as %v", r, found)
		}
		if row.Demands == "" || row.Source == "" || row.In == 0 {
			t.Errorf("%v lacks a sentence, a source, or a part: %+v", r, row)
		}
		if before, twice := said[row.Demands]; twice {
			t.Errorf("%v and %v demand the same", before, r)
		}
		said[row.Demands] = r
		if row.Law != "" && row.In&(rules.Core|rules.Identity) == 0 {
			t.Errorf("%v: the simulator notices %q, and cannot drop it", r, row.Law)
		}
	}
	if _, known := rules.Named(""); known {
		t.Error("a rule without a name was found")
	}
}

// Ensure that Without drops the rules that it names, and no other.
func TestWithout(t *testing.T) {
	if got, want := rules.Without(rules.TwoChanges, rules.CountSelf), (rules.Set{rules.TwoChanges: true, rules.CountSelf: true}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if rules.Without() != (rules.Set{}) {
		t.Error("nothing was to be dropped")
	}
	if got, want := rules.Demands(rules.TwoChanges, rules.CountLearners), "one change at a time, and learners receive everything and count nowhere"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Ensure that each part reads the rules that the table says, and no other: a switch that nothing reads drops nothing.
func TestTable_parts(t *testing.T) {
	names, _ := constants(t)
	core := read(t, "..", func(path string) bool {
		return !strings.HasSuffix(path, "_test.go") && !strings.HasPrefix(path, filepath.Join("..", "rules"))
	})
	model := read(t, "../../model", func(path string) bool {
		return !strings.HasSuffix(path, "_test.go") && !strings.HasSuffix(path, "mutations.go")
	})
	harness := read(t, "../raft", func(path string) bool { return strings.HasSuffix(path, "_test.go") })
	laboratory := read(t, "../../sim/lab", func(path string) bool { return !strings.HasSuffix(path, "_test.go") })
	for r := rules.None + 1; r < rules.Count; r++ {
		for _, part := range []struct {
			in   rules.Part
			name string
			read map[string]bool
		}{{rules.Core, "the core", core}, {rules.Model, "the model", model}} {
			if got, want := part.read[names[r]], r.Text().In&part.in != 0; got != want {
				t.Errorf("%v is read by %s: %t, the table says %t", r, part.name, got, want)
			}
		}
		if r.Text().In&rules.Harness != 0 && !harness[names[r]] && !laboratory[names[r]] {
			t.Errorf("%v is read by no harness", r)
		}
	}
	switches := map[string]bool{}
	for i := range reflect.TypeFor[identity.Rules]().NumField() {
		switches[hyphened(reflect.TypeFor[identity.Rules]().Field(i).Name)] = true
	}
	for r := range rules.All(rules.Identity) {
		if !switches[r.String()] {
			t.Errorf("package identity has no switch for %v", r)
		}
		delete(switches, r.String())
	}
	if len(switches) > 0 {
		t.Errorf("no rows for the switches %v of package identity", switches)
	}
}

var named = regexp.MustCompile(`\brules\.([A-Z]\w+)`)

// read returns the rules that the Go files below a folder mention.
func read(t *testing.T, root string, taken func(path string) bool) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || !taken(path) {
			return err
		}
		text, err := os.ReadFile(path)
		for _, match := range named.FindAllStringSubmatch(string(text), -1) {
			found[match[1]] = true
		}
		return err
	})
	if err != nil || len(found) == 0 {
		t.Fatalf("%s: %v", root, err)
	}
	return found
}
