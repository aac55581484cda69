package tidy_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
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

// repository is everything the rules look at, parsed once.
type repository struct {
	fset  *token.FileSet
	files []file
	texts []string // markdown files
}

func load(t *testing.T) *repository {
	t.Helper()
	r := &repository{fset: token.NewFileSet()}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		relative = filepath.ToSlash(relative)
		switch {
		case entry.IsDir() && skipDir(entry.Name()) && relative != ".":
			return filepath.SkipDir
		case entry.IsDir():
			return nil
		case strings.HasSuffix(relative, ".md"):
			r.texts = append(r.texts, relative)
		case strings.HasSuffix(relative, ".go"):
			return r.add(name, relative)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.files) < 50 {
		t.Fatalf("found only %d Go files: the walk is broken", len(r.files))
	}
	return r
}

func skipDir(name string) bool {
	return strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules" || name == "quorate-dev" ||
		name == "bin"
}

func (r *repository) add(name, relative string) error {
	source, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	syntax, err := parser.ParseFile(r.fset, relative, source, parser.ParseComments)
	if err != nil {
		return err
	}
	r.files = append(r.files, file{
		path: relative, dir: path.Dir(relative), test: strings.HasSuffix(relative, "_test.go"),
		made: ast.IsGenerated(syntax), source: source, syntax: syntax,
	})
	return nil
}

func (f *file) lines() int { return bytes.Count(f.source, []byte("\n")) }

// imports returns the import paths of f.
func (f *file) imports() []string {
	var paths []string
	for _, spec := range f.syntax.Imports {
		paths = append(paths, strings.Trim(spec.Path.Value, `"`))
	}
	return paths
}
