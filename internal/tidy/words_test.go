package tidy_test

import (
	"go/ast"
	"regexp"
	"strings"
	"testing"
)

// bannedWords are words that this project once used instead of the usual term, and what to say instead. They are looked
// for in names, comments, texts and documents.
var bannedWords = []struct{ word, say string }{
	{"vouch", "confirm"},
	{"crowd", "connections"},
	{"lobby", "handshakes, or admission"},
	{"vigil", "deadline"},
	{"mends", "fixes, or rules"},
	{"mended", "fixed"},
	{"hail", "greeting, or survey"},
	{"lets go of", "drops, or releases"},
	{"let go of", "dropped, or released"},
	{"forsaken", "abandoned"},
	{"shut out", "refused"},
	{"shuts out", "refuses"},
	{"misdeed", "violation"},
	{"outdone", "behind another candidate"},
	{"footing", "term and configuration"},
	{"stranger", "non-member, or unknown peer"},
	{"realm", "group"},
	{"waiting room", "budget, or queue"},
}

// allowedWords are places that must name a banned word.
var allowedWords = []string{"internal/tidy/", "CHANGELOG.md", "docs/track-record.md"}

// TestWords refuses the banned words.
func TestWords(t *testing.T) { check(t, checkWords) }

func checkWords(r *tree) []string {
	var p report
	var patterns []*regexp.Regexp
	for _, b := range bannedWords {
		patterns = append(patterns, regexp.MustCompile(`(?i)(^|[^a-z])`+strings.ReplaceAll(b.word, " ", `\s+`)+`([^a-z]|$)`))
	}
	say := func(where, text string) {
		for i, pattern := range patterns {
			if pattern.MatchString(text) {
				p.addf("%s: %q: say %s", where, bannedWords[i].word, bannedWords[i].say)
			}
		}
	}
	for i := range r.files {
		f := &r.files[i]
		if f.made || allowed(f.path) {
			continue
		}
		for _, group := range f.syntax.Comments {
			say(r.at(group).String(), group.Text())
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				say(r.at(n).String(), spaced(n.Name))
			case *ast.BasicLit:
				say(r.at(n).String(), n.Value)
			}
			return true
		})
	}
	for _, doc := range r.texts {
		if allowed(doc.path) {
			continue
		}
		say(doc.path, doc.content)
	}
	return p
}

func allowed(name string) bool {
	for _, prefix := range allowedWords {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

var hump = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// spaced puts a space before each part of a name.
func spaced(name string) string { return hump.ReplaceAllString(name, "$1 $2") }
