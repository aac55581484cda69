package tidy_test

import (
	"path"
	"slices"
	"testing"
)

// bannedNames say nothing about what is inside.
var bannedNames = []string{"util", "utils", "common", "helper", "helpers", "types", "base", "manager", "impl", "data",
	"info", "new", "v2", "misc"}

// TestPackages wants a doc of some length for each package, in doc.go, and a name that means something.
func TestPackages(t *testing.T) { check(t, checkPackageDocs) }

func checkPackageDocs(r *tree) []string {
	var p report
	documented := map[string]bool{}
	var dirs []string
	for i := range r.files {
		f := &r.files[i]
		if f.test {
			continue
		}
		if !slices.Contains(dirs, f.dir) {
			dirs = append(dirs, f.dir)
		}
		if f.syntax.Doc != nil && len(f.syntax.Doc.Text()) > 80 {
			documented[f.dir] = true
		}
	}
	for _, dir := range dirs {
		if !documented[dir] {
			p.addf("%s: package has no doc: say in doc.go what it is, what it is not, and its invariants", dir)
		}
		if slices.Contains(bannedNames, path.Base(dir)) {
			p.addf("%s: the name says nothing: name the duty", dir)
		}
	}
	return p
}
