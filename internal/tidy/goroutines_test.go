package tidy_test

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// TestConsoleGoroutines keeps the goroutines of the console to page.Go, which hands a panic to the section that waits: a fault of
// a page would end the member in any other one.
func TestConsoleGoroutines(t *testing.T) { check(t, checkConsoleGoroutines) }

// pageGo is the file that begins goroutines for the console.
const pageGo = "internal/console/page/goroutine.go"

func checkConsoleGoroutines(r *tree) []string {
	var p report
	for i := range r.files {
		f := &r.files[i]
		if f.test || f.path == pageGo || !strings.HasPrefix(f.dir+"/", "internal/console/") {
			continue
		}
		if slices.Contains(f.imports(), "golang.org/x/sync/errgroup") {
			p.addf("%s: a group catches no panics: use page.Go", f.path)
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if begins(n) {
				p.addf("%s: a goroutine in which a panic ends the member: use page.Go", r.at(n))
			}
			return true
		})
	}
	return p
}

// begins reports whether a node starts a goroutine, other than by page.Go.
func begins(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GoStmt:
		return true
	case *ast.CallExpr:
		s, ok := n.Fun.(*ast.SelectorExpr)
		afterFunc := ok && s.Sel.Name == "AfterFunc"
		return afterFunc || ok && (s.Sel.Name == "Go" || s.Sel.Name == "TryGo") && !selects(n.Fun, "page", "Go")
	}
	return false
}
