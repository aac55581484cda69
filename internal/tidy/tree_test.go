package tidy_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/quorate/quorate"

// file is one Go file of the repository.
type file struct {
	path   string // from the root, with slashes
	dir    string
	test   bool
	made   bool // generated
	source []byte
	syntax *ast.File
}

// tree is everything that the rules look at, parsed once.
type tree struct {
	fsys  fs.FS
	fset  *token.FileSet
	files []file
	texts []text // the documents
}

// text is one markdown file.
type text struct {
	path    string
	content string
}

// A rule looks at a tree and returns what breaks it, a line each, with what to do about it.
type rule func(*tree) []string

// repository is this repository. It is parsed once for all rules.
var repository = sync.OnceValues(func() (*tree, error) {
	r, err := parse(os.DirFS(filepath.Join("..", "..")))
	if err == nil && len(r.files) < 50 {
		err = fmt.Errorf("found only %d Go files: the walk is broken", len(r.files))
	}
	return r, err
})

// check fails the test for each breach of the rule in this repository.
func check(t *testing.T, broken rule) {
	t.Helper()
	r, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	for _, breach := range broken(r) {
		t.Error(breach)
	}
}

func parse(fsys fs.FS) (*tree, error) {
	r := &tree{fsys: fsys, fset: token.NewFileSet()}
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && skipDir(entry.Name()) && name != ".":
			return fs.SkipDir
		case entry.IsDir():
			return nil
		case strings.HasSuffix(name, ".md"):
			content, err := fs.ReadFile(fsys, name)
			r.texts = append(r.texts, text{name, string(content)})
			return err
		case strings.HasSuffix(name, ".go"):
			return r.add(name)
		}
		return nil
	})
	return r, err
}

func skipDir(name string) bool {
	return strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules" || name == "quorate-dev" ||
		name == "bin"
}

func (r *tree) add(name string) error {
	source, err := fs.ReadFile(r.fsys, name)
	if err != nil {
		return err
	}
	syntax, err := parser.ParseFile(r.fset, name, source, parser.ParseComments)
	if err != nil {
		return err
	}
	r.files = append(r.files, file{
		path: name, dir: path.Dir(name), test: strings.HasSuffix(name, "_test.go"),
		made: ast.IsGenerated(syntax), source: source, syntax: syntax,
	})
	return nil
}

func (r *tree) exists(name string) bool {
	_, err := fs.Stat(r.fsys, name)
	return err == nil
}

func (r *tree) read(name string) string {
	content, err := fs.ReadFile(r.fsys, name)
	if err != nil {
		return ""
	}
	return string(content)
}

func (r *tree) at(node ast.Node) token.Position { return r.fset.Position(node.Pos()) }

func (f *file) lines() int { return bytes.Count(f.source, []byte("\n")) }

// imports returns the import paths of f.
func (f *file) imports() []string {
	var paths []string
	for _, spec := range f.syntax.Imports {
		paths = append(paths, strings.Trim(spec.Path.Value, `"`))
	}
	return paths
}

// report collects what breaks a rule.
type report []string

func (p *report) addf(format string, args ...any) { *p = append(*p, fmt.Sprintf(format, args...)) }
