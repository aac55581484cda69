package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// figures are what was measured, in the order in which it is printed.
type figures []figure

type figure struct {
	what   string
	number int
}

// source is one Go file that a person wrote.
type source struct {
	path, dir string // from the root
	test      bool
	text      []byte
	parsed    *ast.File
}

// proofDirs hold what is not linked into the product: the simulator, the model, checks of the tree and tools of tests.
var proofDirs = []string{"internal/sim", "internal/model", "internal/tidy", "internal/base/testnet", "cmd/quoratesim",
	"cmd/quoratemutate", "test"}

func (s *source) proof() bool {
	return slices.ContainsFunc(proofDirs, func(dir string) bool { return s.dir == dir || strings.HasPrefix(s.dir, dir+"/") })
}

// product reports whether a file is linked into the product.
func (s *source) product() bool { return !s.test && !s.proof() }

var generated = []byte("// Code generated ")

// measure reads the tree below a root.
func measure(root string) (figures, error) {
	sources, err := read(root)
	if err != nil {
		return nil, err
	}
	state := unexportedTypes(sources)
	top, packages := map[string]bool{}, map[string]bool{}
	var shared, ports, functions, wirings, roads, product, proof, tests int
	for i := range sources {
		s := &sources[i]
		lines := bytes.Count(s.text, []byte("\n"))
		switch {
		case s.test:
			tests += lines
		case s.proof():
			proof += lines
		default:
			product += lines
		}
		if inside, ok := strings.CutPrefix(s.dir, "internal/"); ok {
			first, _, _ := strings.Cut(inside, "/")
			packages[s.dir], top[first] = true, true
		}
		if s.test {
			continue
		}
		if calls(s, "node", "New") && s.dir != "internal/member/node" {
			wirings++
		}
		if s.product() {
			count := fieldsOf(s, state[s.dir])
			shared, ports, functions = shared+count.shared, ports+count.ports, functions+count.functions
			if strings.HasPrefix(s.dir, "internal/rpc") {
				roads += roadsOf(s)
			}
		}
	}
	return figures{
		{"packages of internal", len(packages)},
		{"entries at the top of internal", len(top)},
		{"pointer fields to unexported types of the same package", shared},
		{"structs of ports", ports},
		{"fields that are functions", functions},
		{"wirings of a member: calls of node.New", wirings},
		{"roads of a put: calls of rpc that propose at the member", roads},
		{"files that name a rule which tests drop, median of the rules", ruleFiles(sources)},
		{"lines of the product", product},
		{"lines of proof: simulator, model, checks", proof},
		{"lines of tests", tests},
	}, nil
}

// read parses all files that persons wrote.
func read(root string) (all []source, err error) {
	positions := token.NewFileSet()
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			if name := entry.Name(); path != root && (strings.HasPrefix(name, ".") || name == "testdata") {
				return filepath.SkipDir
			}
			return nil
		case !strings.HasSuffix(path, ".go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil || bytes.HasPrefix(text, generated) {
			return err
		}
		parsed, err := parser.ParseFile(positions, path, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		at, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		all = append(all, source{
			path: filepath.ToSlash(at), dir: filepath.ToSlash(filepath.Dir(at)), test: strings.HasSuffix(path, "_test.go"),
			text: text, parsed: parsed,
		})
		return nil
	})
	return all, err
}

// unexportedTypes are the unexported struct types of each package.
func unexportedTypes(sources []source) map[string]map[string]bool {
	all := map[string]map[string]bool{}
	for i := range sources {
		s := &sources[i]
		if s.test {
			continue
		}
		ast.Inspect(s.parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || spec.Name.IsExported() {
				return true
			}
			if _, ok := spec.Type.(*ast.StructType); ok {
				if all[s.dir] == nil {
					all[s.dir] = map[string]bool{}
				}
				all[s.dir][spec.Name.Name] = true
			}
			return true
		})
	}
	return all
}

// fieldCounts are what the structs of a file have.
type fieldCounts struct{ shared, ports, functions int }

func fieldsOf(s *source, state map[string]bool) (c fieldCounts) {
	ast.Inspect(s.parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		body, ok := spec.Type.(*ast.StructType)
		if !ok {
			return true
		}
		if strings.HasSuffix(strings.ToLower(spec.Name.Name), "ports") {
			c.ports++
		}
		for _, field := range body.Fields.List {
			names := max(1, len(field.Names))
			switch t := field.Type.(type) {
			case *ast.FuncType:
				c.functions += names
			case *ast.StarExpr:
				if name, ok := t.X.(*ast.Ident); ok && state[name.Name] {
					c.shared += names
				}
			}
		}
		return true
	})
	return c
}

// calls reports whether a file calls a function of a package.
func calls(s *source, pkg, function string) (found bool) {
	ast.Inspect(s.parsed, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		selector, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || selector.Sel.Name != function {
			return true
		}
		of, ok := selector.X.(*ast.Ident)
		found = found || ok && of.Name == pkg
		return true
	})
	return found
}

// proposes are the ways to give a command to the member, by any name that they have had.
var proposes = []string{"ProposeAsync", "ProposeThen"}

// roadsOf counts where a file of rpc gives a command of a client to the member.
func roadsOf(s *source) (n int) {
	ast.Inspect(s.parsed, func(node ast.Node) bool {
		selector, ok := node.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		of, onField := selector.X.(*ast.SelectorExpr)
		waits := selector.Sel.Name == "Propose" && onField && of.Sel.Name == "Member"
		if waits || slices.Contains(proposes, selector.Sel.Name) {
			n++
		}
		return true
	})
	return n
}

// ruleName finds the rules that tests drop, in the packages that have had their table.
var ruleName = regexp.MustCompile(`(?m)^\s*\{(?:Name: )?"([a-z]+(?:-[a-z]+)+)", `)

// ruleFiles is in how many files the name of a rule stands, kebab-case or as a Go field, in the median.
func ruleFiles(sources []source) int {
	rules := map[string]bool{}
	for i := range sources {
		if s := &sources[i]; s.dir == "internal/sim/breaks" || s.dir == "internal/consensus/rules" {
			for _, match := range ruleName.FindAllSubmatch(s.text, -1) {
				rules[string(match[1])] = true
			}
		}
	}
	var counts []int
	for rule := range rules {
		words := strings.Split(rule, "-")
		for i, w := range words {
			words[i] = strings.ToUpper(w[:1]) + w[1:]
		}
		kebab, field := []byte(`"`+rule+`"`), []byte(strings.Join(words, ""))
		n := 0
		for i := range sources {
			if bytes.Contains(sources[i].text, kebab) || bytes.Contains(sources[i].text, field) {
				n++
			}
		}
		counts = append(counts, n)
	}
	if len(counts) == 0 {
		return 0
	}
	slices.Sort(counts)
	return counts[len(counts)/2]
}
