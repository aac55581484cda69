package documents

import (
	"bytes"
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

const (
	// mostFound is how many places a search shows, and mostWords how many words it has.
	mostFound = 60
	mostWords = 8
	mostQuery = 200
	// mostExcerpt is how many bytes of a line are shown.
	mostExcerpt = 240
)

// place is a part of a document, from one heading to the next.
type place struct {
	Document, Title string // its path, and its title
	Heading, Anchor string
	Excerpt         string
	inHeading       int // how many words the heading has
}

// part is a place, and where its text is.
type part struct {
	level           int // 0: what is before the first heading
	heading, anchor string
	text            []byte
	lower           string // text, as it is searched
}

// parts cuts a document at its headings.
func parts(source []byte) (all []part) {
	anchors, fenced, from := anchors{}, false, 0
	now := part{}
	at := 0
	for line := range bytes.Lines(source) {
		trimmed := bytes.TrimSpace(line)
		if bytes.HasPrefix(trimmed, []byte("```")) {
			fenced = !fenced
		}
		if level := len(trimmed) - len(bytes.TrimLeft(trimmed, "#")); !fenced && line[0] == '#' && level <= 6 &&
			len(trimmed) > level && trimmed[level] == ' ' {
			now.text = source[from:at]
			all = append(all, now)
			words := unmarked(string(trimmed[level+1:]))
			now, from = part{level: level, heading: words, anchor: anchors.next(words)}, at+len(line)
		}
		at += len(line)
	}
	now.text = source[from:]
	return append(all, now)
}

// linked is a link in a line of Markdown.
var linked = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// unmarked is a line without most of its marks of Markdown, as far as an excerpt needs it.
func unmarked(line string) string {
	line = linked.ReplaceAllString(line, "$1")
	return strings.Join(strings.Fields(strings.NewReplacer("**", "", "`", "", "|", " ").Replace(line)), " ")
}

// cuts are all documents by name, cut once: a build does not change them, and anybody may search.
var cuts struct {
	once sync.Once
	of   map[string][]part
}

func cutOnce(all []string, read func(string) []byte) map[string][]part {
	cuts.once.Do(func() {
		cuts.of = make(map[string][]part, len(all))
		for _, name := range all {
			cut := parts(read(name))
			for i := range cut {
				cut[i].lower = strings.ToLower(string(cut[i].text))
			}
			cuts.of[name] = cut
		}
	})
	return cuts.of
}

// search returns the places that have all words of a query, those with the most words in their headings first. more is how many
// others there are.
func search(all []string, read func(string) []byte, query string) (found []place, more int) {
	words := strings.Fields(strings.ToLower(query[:min(len(query), mostQuery)]))
	words = words[:min(len(words), mostWords)]
	if len(words) == 0 {
		return nil, 0
	}
	for _, name := range all {
		title := ""
		for _, p := range cutOnce(all, read)[name] {
			if title == "" {
				title = p.heading
			}
			if p.level == 1 { // the page has it as its title
				p.anchor = ""
			}
			place, ok := p.match(words)
			if !ok {
				continue
			}
			place.Document, place.Title = name, title
			found = append(found, place)
		}
	}
	slices.SortStableFunc(found, func(a, b place) int { return cmp.Compare(b.inHeading, a.inHeading) })
	more = max(0, len(found)-mostFound)
	return found[:len(found)-more], more
}

// match says whether a part has all words, and where.
func (p *part) match(words []string) (place, bool) {
	at := place{Heading: p.heading, Anchor: p.anchor}
	heading := strings.ToLower(p.heading)
	for _, word := range words {
		if strings.Contains(heading, word) {
			at.inHeading++
		} else if !strings.Contains(p.lower, word) {
			return place{}, false
		}
	}
	for line := range bytes.Lines(p.text) {
		small := strings.ToLower(string(line))
		for _, word := range words {
			if strings.Contains(small, word) {
				at.Excerpt = cut(unmarked(string(line)), word)
				return at, true
			}
		}
	}
	return at, true
}

// cut is a part of a line around a word.
func cut(line, word string) string {
	if len(line) <= mostExcerpt {
		return line
	}
	from := max(0, strings.Index(strings.ToLower(line), word)-mostExcerpt/2)
	to := min(len(line), from+mostExcerpt)
	for from > 0 && !utf8.RuneStart(line[from]) {
		from--
	}
	for to < len(line) && !utf8.RuneStart(line[to]) {
		to++
	}
	before, after := "", ""
	if from > 0 {
		before = "…"
	}
	if to < len(line) {
		after = "…"
	}
	return before + line[from:to] + after
}
