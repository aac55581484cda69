package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// mutation is one small change of one file, as a replacement of bytes.
type mutation struct {
	File   string `json:"file"` // from the root of the module, with slashes
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Source string `json:"source"` // the line as it is
	Kind   string `json:"kind"`
	Change string `json:"change"` // what is replaced by what

	start, end int
	with       string
	of         []byte // the file as it was read
}

func (m *mutation) place() string { return fmt.Sprintf("%s:%d", m.File, m.Line) }

// sameAs reports whether two mutations make the same change at the same place.
func (m *mutation) sameAs(other *mutation) bool {
	return m.place() == other.place() && m.Column == other.Column && m.Kind == other.Kind && m.Change == other.Change
}

// apply returns the mutated source.
func (m *mutation) apply() []byte { return slices.Concat(m.of[:m.start], []byte(m.with), m.of[m.end:]) }

// silentMethods make texts for people.
var silentMethods = []string{"String", "GoString", "Error", "Format", "LogValue"}

// silentCalls are calls that nothing depends on: logs, metrics, the core's events, which are for both, and assertions, which
// hold always.
var silentCalls = []string{"slog", "logger", "metrics", "event", "invariant", "panic"}

// silentFields are counters for metrics. Nothing reads them but the code that shows them.
var silentFields = []string{"counts", "metrics"}

// flipped moves the bound of a comparison by one, or asks for the opposite.
var flipped = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.EQL: token.NEQ, token.NEQ: token.EQL,
}

// enumeration walks one file.
type enumeration struct {
	file   string
	source []byte
	lines  [][]byte
	fset   *token.FileSet
	whole  map[ast.Expr]bool      // negated as conditions or results already
	added  map[*ast.BasicLit]bool // literals of x+1 and x-1, which are dropped instead
	found  []mutation
}

// enumerate returns the mutations of a file in the order of its text. A generated file has none.
func enumerate(file string, source []byte) ([]mutation, error) {
	fset := token.NewFileSet()
	syntax, err := parser.ParseFile(fset, file, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	if ast.IsGenerated(syntax) {
		return nil, nil
	}
	e := &enumeration{file: file, source: source, lines: bytes.Split(source, []byte("\n")), fset: fset,
		whole: map[ast.Expr]bool{}, added: map[*ast.BasicLit]bool{}}
	ast.Inspect(syntax, e.visit)
	slices.SortStableFunc(e.found, func(a, b mutation) int { return a.start - b.start })
	return e.found, nil
}

// visit collects the mutations of one node, and reports whether to look at what is inside.
func (e *enumeration) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncDecl:
		if n.Recv != nil && slices.Contains(silentMethods, n.Name.Name) {
			return false
		}
		e.results(n.Type, n.Body)
	case *ast.FuncLit:
		e.results(n.Type, n.Body)
	case *ast.GenDecl:
		return n.Tok != token.CONST && n.Tok != token.IMPORT && n.Tok != token.TYPE
	case *ast.CallExpr:
		return !silent(n)
	case *ast.IfStmt:
		e.condition(n.Cond, true)
	case *ast.ForStmt:
		e.condition(n.Cond, false)
	case *ast.SwitchStmt:
		e.cases(n)
	case *ast.BlockStmt:
		e.statements(n.List)
	case *ast.CaseClause:
		e.statements(n.Body)
	case *ast.CommClause:
		e.statements(n.Body)
	case *ast.BinaryExpr:
		e.binary(n)
	case *ast.BasicLit:
		if n.Kind == token.INT && n.Value == "1" && !e.added[n] {
			e.add(n, "literal changed", "2")
		}
	}
	return true
}

// condition negates a condition, and drops it to true and to false. Loops are not dropped to true: they would only not end.
// The mutant still calls what the condition calls, and uses what it uses, so that it compiles.
func (e *enumeration) condition(cond ast.Expr, toTrue bool) {
	if cond == nil {
		return
	}
	text := e.text(cond)
	e.whole[cond] = true
	e.add(cond, "condition negated", "!("+text+")")
	if toTrue {
		e.add(cond, "condition dropped to true", "("+text+") || true")
	}
	e.add(cond, "condition dropped to false", "("+text+") && false")
}

// cases are conditions where a switch has no tag.
func (e *enumeration) cases(n *ast.SwitchStmt) {
	if n.Tag != nil {
		return
	}
	for _, statement := range n.Body.List {
		for _, cond := range statement.(*ast.CaseClause).List {
			e.condition(cond, true)
		}
	}
}

// statements drops statements of a block. Declarations stay: nothing would compile without them.
func (e *enumeration) statements(list []ast.Stmt) {
	for _, s := range list {
		if labeled, ok := s.(*ast.LabeledStmt); ok {
			s = labeled.Stmt
		}
		switch s := s.(type) {
		case *ast.AssignStmt:
			blank, ok := s.Lhs[0].(*ast.Ident)
			if s.Tok != token.DEFINE && !(ok && blank.Name == "_" && len(s.Lhs) == 1) && !named(s.Lhs[0], silentFields) {
				e.add(s, "assignment dropped", "")
			}
		case *ast.IncDecStmt:
			if !named(s.X, silentFields) {
				e.add(s, "assignment dropped", "")
			}
		case *ast.ExprStmt:
			if call, ok := s.X.(*ast.CallExpr); ok && !silent(call) {
				e.add(s, "call dropped", "")
			}
		case *ast.BranchStmt:
			if s.Tok == token.CONTINUE || s.Tok == token.BREAK {
				e.add(s, s.Tok.String()+" dropped", "")
			}
		}
	}
}

func (e *enumeration) binary(n *ast.BinaryExpr) {
	switch n.Op {
	case token.LAND, token.LOR:
		e.add(n, "right operand dropped", e.text(n.X))
		e.add(n, "left operand dropped", e.text(n.Y))
	case token.ADD, token.SUB:
		if one, ok := n.Y.(*ast.BasicLit); ok && one.Kind == token.INT && one.Value == "1" {
			e.added[one] = true
			e.add(n, n.Op.String()+"1 dropped", e.text(n.X))
		}
	}
	other, compares := flipped[n.Op]
	if compares && !(e.whole[n] && (n.Op == token.EQL || n.Op == token.NEQ)) {
		e.add(n, "comparison changed", e.text(n.X)+" "+other.String()+" "+e.text(n.Y))
	}
}

// results negates what a function returns as bool. Functions inside of it look after their own.
func (e *enumeration) results(signature *ast.FuncType, body *ast.BlockStmt) {
	if signature.Results == nil || body == nil {
		return
	}
	var isBool []bool
	for _, field := range signature.Results.List {
		name, ok := field.Type.(*ast.Ident)
		for range max(1, len(field.Names)) {
			isBool = append(isBool, ok && name.Name == "bool")
		}
	}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.ReturnStmt:
			for i, value := range n.Results {
				if len(n.Results) == len(isBool) && isBool[i] {
					e.whole[value] = true
					e.add(value, "result negated", negated(e.text(value)))
				}
			}
		}
		return true
	})
}

func negated(text string) string {
	switch text {
	case "true":
		return "false"
	case "false":
		return "true"
	}
	return "!(" + text + ")"
}

// silent reports whether nothing depends on a call.
func silent(call *ast.CallExpr) bool { return named(call.Fun, silentCalls) }

// named reports whether one of some names is a part of a.b.c.
func named(e ast.Expr, names []string) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return slices.Contains(names, strings.ToLower(e.Name))
	case *ast.SelectorExpr:
		return slices.Contains(names, strings.ToLower(e.Sel.Name)) || named(e.X, names)
	}
	return false
}

func (e *enumeration) text(n ast.Node) string {
	return string(e.source[e.fset.Position(n.Pos()).Offset:e.fset.Position(n.End()).Offset])
}

func (e *enumeration) add(n ast.Node, kind, with string) {
	at := e.fset.Position(n.Pos())
	change := short(e.text(n)) + " -> " + short(with)
	if with == "" {
		change = short(e.text(n)) + " -> nothing"
	}
	e.found = append(e.found, mutation{
		File: e.file, Line: at.Line, Column: at.Column, Source: strings.TrimSpace(string(e.lines[at.Line-1])),
		Kind: kind, Change: change, start: at.Offset, end: e.fset.Position(n.End()).Offset, with: with, of: e.source,
	})
}

// short is a text on one line of at most 100 characters.
func short(text string) string {
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) > 100 {
		return string(runes[:97]) + "..."
	}
	return string(runes)
}
