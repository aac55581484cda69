package changes

import "strings"

// prose is a sentence of a member, whose commands stand between backticks.
type prose []span

type span struct {
	Text string
	Code bool
}

// proseOf reads a sentence. A backtick without another one is itself.
func proseOf(text string) (out prose) {
	parts := strings.Split(text, "`")
	if len(parts)%2 == 0 {
		return prose{{Text: text}}
	}
	for i, part := range parts {
		if part != "" {
			out = append(out, span{Text: part, Code: i%2 == 1})
		}
	}
	return out
}

func prosesOf(texts []string) (out []prose) {
	for _, text := range texts {
		out = append(out, proseOf(text))
	}
	return out
}
