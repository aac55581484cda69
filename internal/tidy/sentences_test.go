package tidy_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// oldDocuments keep the words in which they were written.
var oldDocuments = []string{"CHANGELOG.md", "docs/track-record.md", "docs/history/", "docs/adr/"}

// TestWords_sentences refuses sentences of comments and documents that begin with a bare "Who" or "What" as their subject, and
// clauses that hang a bare "who" on for, to, of or by: a sentence names its subject, as the client, the caller, the member,
// the goroutine or the entry. Questions may begin so.
func TestWords_sentences(t *testing.T) { check(t, checkSentences) }

func checkSentences(r *tree) []string {
	var p report
	say := func(where, text string) {
		for _, sentence := range withoutSubject(text) {
			p.addf("%s: %q: name the subject: the client, the caller, the member, the entry", where, sentence)
		}
	}
	for i := range r.files {
		f := &r.files[i]
		if f.made {
			continue
		}
		for _, group := range f.syntax.Comments {
			for _, paragraph := range paragraphs(group.Text()) {
				say(r.at(group).String(), paragraph)
			}
		}
	}
	for _, doc := range r.texts {
		if slices.ContainsFunc(oldDocuments, func(prefix string) bool { return strings.HasPrefix(doc.path, prefix) }) {
			continue
		}
		for _, paragraph := range documentParagraphs(doc.content) {
			say(doc.path, paragraph)
		}
	}
	return p
}

var (
	bareSubject = regexp.MustCompile(`(?:^|[.?!:]["')*` + "`" + `]*\s+)["'(*]*((?:Who|Whoever|What)\b)`)
	sentenceEnd = regexp.MustCompile(`[.?!]["')*` + "`" + `]*(?:\s|$)`)
	bareClause  = regexp.MustCompile(`\b(?:[Ff]or|[Tt]o|[Oo]f|[Bb]y) who(?:ever)?\b`)
	listItem    = regexp.MustCompile(`^\s*(?:[-*]|\d+\.)\s+`)
)

// withoutSubject returns the sentences of a paragraph that begin with a bare Who or What and are no questions, and the clauses
// that hang on a preposition.
func withoutSubject(paragraph string) []string {
	var found []string
	for _, at := range bareSubject.FindAllStringSubmatchIndex(paragraph, -1) {
		sentence := paragraph[at[2]:]
		if end := sentenceEnd.FindStringIndex(sentence); end != nil {
			sentence = sentence[:end[0]+1]
		}
		if !strings.HasSuffix(sentence, "?") {
			found = append(found, sentence)
		}
	}
	return append(found, bareClause.FindAllString(paragraph, -1)...)
}

// paragraphs returns the paragraphs and the items of lists of a text, each in one line.
func paragraphs(text string) []string {
	var all []string
	open := false // whether the next line goes on with the last paragraph
	for line := range strings.Lines(text) {
		item := listItem.FindString(line)
		line = strings.TrimSpace(line[len(item):])
		switch {
		case line == "":
			open = false
		case open && item == "":
			all[len(all)-1] += " " + line
		default:
			all, open = append(all, line), true
		}
	}
	return all
}

// documentParagraphs returns the paragraphs, the items of lists and the cells of tables of a document, without its headings,
// the heads of its tables, and its blocks of code.
func documentParagraphs(content string) []string {
	var text strings.Builder
	code := false
	lines := strings.Split(content, "\n")
	for i, line := range lines {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			code = !code
			line = ""
		}
		head := i+1 < len(lines) && strings.HasPrefix(lines[i+1], "|--")
		switch {
		case code || head || strings.HasPrefix(line, "#"):
			line = ""
		case strings.HasPrefix(line, "|"):
			line = strings.ReplaceAll(line, "|", "\n\n")
		}
		text.WriteString(line + "\n")
	}
	return paragraphs(text.String())
}
