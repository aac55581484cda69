package tidy_test

import (
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/ctl"
)

var (
	// advisedCommand finds commands where texts put them: in backquotes, or on an indented line of an example.
	advisedCommand = regexp.MustCompile("(?m)(?:`|^[ \\t]+)quorate ([a-z]+(?:-[a-z]+)*)((?: [a-z]+)*)")
	// unsafeAdvice tells somebody to make old data count again, which rolls a member back.
	unsafeAdvice = regexp.MustCompile(`(?i)\brestore (it|them|the|its|a)\b|\bput (it|them|the .*) back\b|from a backup`)
)

// safeAdvice are texts that say never to do it, or that are about a file of keys: it has nothing that a member acknowledged.
var safeAdvice = regexp.MustCompile(`(?i)\bnever put\b|\bput the key file\b`)

// TestAdvice looks at every text of the program: each command that it names exists, and none tells people to put old data
// back. The documents may name commands that exist, only.
func TestAdvice(t *testing.T) { check(t, checkAdvice) }

func checkAdvice(r *tree) []string {
	var p report
	for i := range r.files {
		f := &r.files[i]
		if f.made || f.test {
			continue
		}
		for _, text := range textsOf(f.syntax) {
			p.checkCommands(f.path, text)
			if unsafeAdvice.MatchString(text) && !safeAdvice.MatchString(text) {
				p.addf("%s: advice that rolls a member back: %q; say how to replace the member", f.path, text)
			}
		}
	}
	for _, doc := range r.texts {
		p.checkCommands(doc.path, doc.content)
	}
	return p
}

func (p *report) checkCommands(where, text string) {
	for _, match := range advisedCommand.FindAllStringSubmatch(text, -1) {
		first := match[1]
		if first == "recover" || first == "set-address" || first == "help" || first == "completion" {
			continue // the program's own, without a tree of commands
		}
		if words := append([]string{first}, strings.Fields(match[2])...); !ctl.Exists(words) {
			p.addf("%s names `quorate %s`, and there is no such command", where, strings.Join(words, " "))
		}
	}
}

// textsOf returns the string constants of a file, put together where they are written in parts.
func textsOf(f *ast.File) []string {
	var out []string
	ast.Inspect(f, func(n ast.Node) bool {
		switch e := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.BinaryExpr, *ast.BasicLit:
			text, parts := joined(e.(ast.Expr))
			if parts > 0 {
				out = append(out, text)
			}
			return parts == 0
		}
		return true
	})
	return out
}

// joined returns the text of a sum of string constants, with something for each other summand, and how many constants.
func joined(e ast.Expr) (text string, parts int) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return "", 0
		}
		text, err := strconv.Unquote(e.Value)
		if err != nil {
			return "", 0
		}
		return text, 1
	case *ast.BinaryExpr:
		if e.Op != token.ADD {
			return "", 0
		}
		left, n := joined(e.X)
		right, m := joined(e.Y)
		return left + right, n + m
	}
	return "X", 0
}
