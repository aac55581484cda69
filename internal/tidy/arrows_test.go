package tidy_test

import (
	"flag"
	"fmt"
	"go/ast"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write down how many upward arrows each package has now")

// arrowsFile says how many upward arrows the files of each package may have. `go test ./internal/tidy -rewrite` writes it;
// a larger number needs a reason in the commit.
const arrowsFile = "internal/tidy/testdata/arrows.txt"

// TestArrows counts, in each package, the arrows between files that run upward. There is an arrow from a file to another one
// that declares what it uses. In a package that can be read from top to bottom there is an order of the files in which all arrows
// run down. How many still run up, in the best order that is found, measures how entangled the files are.
func TestArrows(t *testing.T) {
	if !*rewrite {
		check(t, checkArrows)
		return
	}
	r, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	counts := upwardArrows(r)
	for _, dir := range slices.Sorted(maps.Keys(counts)) {
		if counts[dir] > 0 {
			fmt.Fprintf(&out, "%s %d\n", dir, counts[dir])
		}
	}
	if err := os.WriteFile("testdata/arrows.txt", []byte(out.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

func checkArrows(r *tree) []string {
	var p report
	allowed := map[string]int{}
	for line := range strings.Lines(r.read(arrowsFile)) {
		var dir string
		var n int
		if _, err := fmt.Sscan(line, &dir, &n); err == nil {
			allowed[dir] = n
		}
	}
	counts := upwardArrows(r)
	for _, dir := range slices.Sorted(maps.Keys(counts)) {
		if counts[dir] > allowed[dir] {
			p.addf("%s: %d arrows between its files run upward, %d are allowed: let a file use what stands below it only",
				dir, counts[dir], allowed[dir])
		}
	}
	return p
}

// upwardArrows counts them for each package without its tests.
func upwardArrows(r *tree) map[string]int {
	packages := map[string][]*file{}
	for i := range r.files {
		if f := &r.files[i]; !f.test && !f.made {
			packages[f.dir] = append(packages[f.dir], f)
		}
	}
	counts := map[string]int{}
	for dir, files := range packages {
		counts[dir] = upward(arrowsOf(files))
	}
	return counts
}

// arrowsOf returns which files use what another one declares. A method counts if only one file declares one of its name.
func arrowsOf(files []*file) map[string]map[string]bool {
	home, methods := map[string]string{}, map[string][]string{}
	for _, f := range files {
		for _, declaration := range f.syntax.Decls {
			switch d := declaration.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil {
					methods[d.Name.Name] = append(methods[d.Name.Name], f.path)
				} else {
					home[d.Name.Name] = f.path
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch s := spec.(type) {
					case *ast.TypeSpec:
						home[s.Name.Name] = f.path
					case *ast.ValueSpec:
						for _, name := range s.Names {
							home[name.Name] = f.path
						}
					}
				}
			}
		}
	}
	arrows := map[string]map[string]bool{}
	for _, f := range files {
		arrows[f.path] = map[string]bool{}
		for _, id := range f.syntax.Unresolved {
			if to := home[id.Name]; to != "" && to != f.path {
				arrows[f.path][to] = true
			}
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if at := methods[s.Sel.Name]; len(at) == 1 && at[0] != f.path {
					arrows[f.path][at[0]] = true
				}
			}
			return true
		})
	}
	return arrows
}

// upward puts the files into an order with few arrows against it (Eades, Lin, Smyth: "A fast and effective heuristic for the
// feedback arc set problem", 1993) and counts those.
func upward(arrows map[string]map[string]bool) int {
	left := slices.Sorted(maps.Keys(arrows))
	degree := func(of string) (in, out int) {
		for _, other := range left {
			if arrows[other][of] {
				in++
			}
			if arrows[of][other] {
				out++
			}
		}
		return in, out
	}
	var top, bottom []string
	for len(left) > 0 {
		best, most, place := 0, 0, &top
		for i, f := range left {
			in, out := degree(f)
			if out == 0 { // uses nothing that is left
				best, place = i, &bottom
				break
			}
			if in == 0 {
				best, place = i, &top
				break
			}
			if i == 0 || out-in > most {
				best, most = i, out-in
			}
		}
		*place = append(*place, left[best])
		left = slices.Delete(left, best, best+1)
	}
	slices.Reverse(bottom)
	order := append(top, bottom...)
	n := 0
	for i, f := range order {
		for _, above := range order[:i] {
			if arrows[f][above] {
				n++
			}
		}
	}
	return n
}
