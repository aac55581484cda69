package tidy_test

import (
	"go/ast"
	"regexp"
	"strings"
	"testing"
)

var code = regexp.MustCompile("`([^`]+)`")

// TestLimits walks the table of docs/limits.md: each row names a constant or flag, a metric and a test that exist.
func TestLimits(t *testing.T) { check(t, checkLimits) }

func checkLimits(r *tree) []string {
	var p report
	names, texts := symbols(r)
	for _, line := range strings.Split(r.read("docs/limits.md"), "\n") {
		cells := strings.Split(strings.Trim(line, "| "), "|")
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") || strings.HasPrefix(line, "| what grows") {
			continue
		}
		if len(cells) != 7 {
			p.addf("docs/limits.md: a row has %d cells, not 7: %s", len(cells), line)
			continue
		}
		for _, column := range []struct {
			cell  int
			what  string
			known func(string) bool
		}{
			{3, "constant or flag", func(s string) bool {
				return names[s[strings.LastIndex(s, ".")+1:]] || texts[strings.TrimPrefix(s, "--")]
			}},
			{5, "metric", func(s string) bool { return texts[s] || texts[strings.TrimPrefix(s, "quorate_")] }},
			{6, "test", func(s string) bool { return names[s] }},
		} {
			found := code.FindAllStringSubmatch(cells[column.cell], -1)
			if len(found) == 0 {
				p.addf("docs/limits.md: no %s in: %s", column.what, line)
			}
			for _, name := range found {
				if !column.known(name[1]) {
					p.addf("docs/limits.md: %s `%s` is not in the tree", column.what, name[1])
				}
			}
		}
	}
	return p
}

// symbols are the names that the tree declares, and its string literals.
func symbols(r *tree) (names, texts map[string]bool) {
	names, texts = map[string]bool{}, map[string]bool{}
	for i := range r.files {
		ast.Inspect(r.files[i].syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				names[n.Name.Name] = true
			case *ast.ValueSpec:
				for _, name := range n.Names {
					names[name.Name] = true
				}
			case *ast.Field:
				for _, name := range n.Names {
					names[name.Name] = true
				}
			case *ast.BasicLit:
				texts[strings.Trim(n.Value, "\"`")] = true
			}
			return true
		})
	}
	return names, texts
}
