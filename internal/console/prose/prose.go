// Package prose parts sentences of the doctor and of the command line for pages of the console: commands in backquotes are
// shown as code.
//
// Its functions are pure, and may be called concurrently.
package prose

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Piece is a part of a sentence.
type Piece struct {
	Text string
	Code bool // it is a command, or another text to be typed as it is
}

// Of parts a sentence into words and commands, which are in backquotes. A backquote without a partner begins a command that
// goes on to the end.
func Of(sentence string) (all []Piece) {
	for i, text := range strings.Split(sentence, "`") {
		if text != "" {
			all = append(all, Piece{text, i%2 == 1})
		}
	}
	return all
}

// All parts each of some sentences.
func All(sentences []string) (all [][]Piece) {
	for _, sentence := range sentences {
		all = append(all, Of(sentence))
	}
	return all
}

// Clauses parts a sentence of the doctor: its subject and cause, before the first colon or semicolon, then evidence and what to
// do, one clause for each semicolon. A command in backquotes stays whole. Nothing is lost but the signs between clauses.
func Clauses(sentence string) (head string, rest []string) {
	all := split(sentence, true)
	return all[0], all[1:]
}

// List parts a sentence at its semicolons, for a list, and each part into words and commands. A part may begin with a name, so
// that none gets a capital letter.
func List(sentence string) (all [][]Piece) {
	if sentence == "" {
		return nil
	}
	return All(split(sentence, false))
}

// split parts a sentence at its semicolons, and, if colons is set, at the first colon before them.
func split(sentence string, colons bool) (all []string) {
	from, quoted := 0, false
	for i := 0; i < len(sentence); i++ {
		switch c := sentence[i]; {
		case c == '`':
			quoted = !quoted
		case quoted || i+1 >= len(sentence) || sentence[i+1] != ' ' || i == from:
		case c == ';', c == ':' && colons && len(all) == 0:
			all = append(all, sentence[from:i])
			i++
			from = i + 1
		}
	}
	return append(all, sentence[from:])
}

// Capital begins a sentence with a capital letter.
func Capital(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 || first == utf8.RuneError {
		return text
	}
	return string(unicode.ToUpper(first)) + text[size:]
}
