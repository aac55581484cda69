package tidy_test

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// TestLeftovers finds notes to oneself, and tests that sleep.
func TestLeftovers(t *testing.T) {
	check(t, checkNotes)
	check(t, checkSleeps)
}

func checkNotes(r *tree) []string {
	var p report
	marks := []string{"TO" + "DO", "FIX" + "ME", "X" + "XX"}
	for i := range r.files {
		for _, group := range r.files[i].syntax.Comments {
			for _, mark := range marks {
				if strings.Contains(group.Text(), mark) {
					p.addf("%s: %s: do it, or write down in an issue why not", r.at(group), mark)
				}
			}
		}
	}
	return p
}

// checkSleeps allows no sleep in any test: a fixed time is too long or not long enough. A load at a certain rate, or a fault of
// a certain length, uses a ticker or a timer, and a context that ends it.
func checkSleeps(r *tree) []string {
	var p report
	for i := range r.files {
		f := &r.files[i]
		if !f.test {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && selects(call.Fun, "time", "Sleep") {
				p.addf("%s: a test sleeps: wait for what it waits for", r.at(n))
			}
			return true
		})
	}
	return p
}

// TestCallContexts keeps the contexts of calls to package incoming: gRPC's function hides nothing that its own has set below, so
// that an inner call would have the token of the outer one.
func TestCallContexts(t *testing.T) { check(t, checkCallContexts) }

func checkCallContexts(r *tree) []string {
	var p report
	for i := range r.files {
		f := &r.files[i]
		if f.test || f.dir == "internal/rpc/incoming" {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && selects(call.Fun, "metadata", "NewIncomingContext") {
				p.addf("%s: the metadata of a call from outside stays visible below: use incoming.NewContext", r.at(n))
			}
			return true
		})
	}
	return p
}

// wallClocks are the files that send or compare what a clock shows, because members and clients compare their clocks: stamps of the
// fast path.
var wallClocks = []string{
	"internal/member/offers/stamps.go", "internal/member/offers/deadline.go", "internal/nativeclient/roundtrip.go",
	"internal/member/clients/streams/next.go",
}

// TestWallClock refuses times in Unix nanoseconds: an operator or NTP may set the clock of a machine, and what has passed since such
// a time is then anything.
func TestWallClock(t *testing.T) { check(t, checkWallClock) }

func checkWallClock(r *tree) []string {
	var p report
	for i := range r.files {
		f := &r.files[i]
		product := strings.HasPrefix(f.dir, "internal/") && !strings.HasPrefix(f.dir, "internal/sim") || f.dir == "client"
		if f.test || !product || slices.Contains(wallClocks, f.path) {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "UnixNano" {
				p.addf("%s: the clock may be set: keep a time.Time, or a monotime.Atomic", r.at(n))
			}
			return true
		})
	}
	return p
}

// selects reports whether an expression is name of a package.
func selects(e ast.Expr, pkg, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == pkg
}
