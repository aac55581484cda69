package changes

import (
	"embed"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/console/page"
)

//go:embed *.html
var templates embed.FS

// Paths of the pages and of their actions.
const (
	listPath    = "/changes"
	jobPath     = "/changes/job"
	cancelPath  = "/changes/cancel"
	planPath    = "/changes/plan"
	replacePath = "/changes/replace"
	followPath  = "/changes/replace/job"
	startPath   = "/changes/plan/start"
	beginPath   = "/changes/replace/start"
	stopPath    = "/changes/cancel/now"
)

// changes are the pages, and what they remember of the jobs that somebody looks at.
type changes struct{ tracks tracks }

// mostWords bounds how many values of one name a query may have.
const mostWords = 100

// words are the values of a name of a query, without what a reader must not be shown.
func words(values []string) (out []string) {
	for _, value := range values[:min(len(values), mostWords)] {
		if text := page.Text(value); text != "" && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}

// lines joins what an answer says in several.
func lines(text string) string { return strings.Join(strings.Split(text, "\n"), "; ") }
