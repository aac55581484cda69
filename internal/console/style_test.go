package console_test

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

var (
	comments   = regexp.MustCompile(`(?s)/\*.*?\*/`)
	classes    = regexp.MustCompile(`\.([a-z][a-z0-9-]*)`)
	attributes = regexp.MustCompile(`class="([^"]*)"`)
	actions    = regexp.MustCompile(`{{.*?}}`)
	quoted     = regexp.MustCompile("(?:[\"`]|}})([a-z0-9 -]*)(?:%s)?(?:[\"`]|{{)")
)

// Ensure that the style sheet is well formed, which no browser reports, and that it and the pages know the same classes.
func TestStyle(t *testing.T) {
	sheet, err := os.ReadFile("assets/console.css")
	if err != nil {
		t.Fatal(err)
	}
	rules := comments.ReplaceAllString(string(sheet), "")
	defined := definedBy(t, rules)
	used, said := usedBy(t)
	for class := range defined {
		made := len(class) == 2 && strings.ContainsAny(class[:1], "sf") && class[1] >= '1' && class[1] <= '7' || class == "level3"
		if !used[class] && !said[class] && !made {
			t.Errorf("no page uses the class %s of console.css", class)
		}
	}
	script := map[string]bool{"copy": true, "lease": true} // classes that console.js and tests look for
	for class := range used {
		if !defined[class] && !script[class] {
			t.Errorf("console.css has no class %s, which a page uses", class)
		}
	}
}

// definedBy returns the classes of selectors, each of which stands outside of other rules but for @media.
func definedBy(t *testing.T, rules string) map[string]bool {
	t.Helper()
	defined, depth, media := map[string]bool{}, 0, false
	for i, line := range strings.Split(rules, "\n") {
		for selector, rest, opens := strings.Cut(line, "{"); opens; selector, rest, opens = strings.Cut(rest, "{") {
			if at := strings.LastIndex(selector, "}"); at >= 0 {
				depth, selector = depth-strings.Count(selector, "}"), selector[at+1:]
			}
			if depth > 1 || depth == 1 && (!media || strings.Contains(selector, "@")) {
				t.Errorf("line %d of console.css, without comments, is within another rule: %s", i+1, line)
			}
			media = media && depth == 1 || strings.HasPrefix(strings.TrimSpace(selector), "@media")
			depth++
			for _, m := range classes.FindAllStringSubmatch(selector, -1) {
				defined[m[1]] = true
			}
			line = rest
		}
		depth -= strings.Count(line, "}")
	}
	if depth != 0 {
		t.Errorf("%d braces of console.css do not end", depth)
	}
	return defined
}

// usedBy returns the classes of templates, and the words of Go and of the script that may name one.
func usedBy(t *testing.T) (used, said map[string]bool) {
	t.Helper()
	used, said = map[string]bool{}, map[string]bool{}
	err := fs.WalkDir(os.DirFS("."), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.Contains(path, "testdata/") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		switch {
		case strings.HasSuffix(path, ".html"):
			for _, m := range attributes.FindAllStringSubmatch(actions.ReplaceAllString(string(text), "$"), -1) {
				for _, class := range strings.Fields(m[1]) {
					if !strings.Contains(class, "$") { // made by the page
						used[class] = true
					}
				}
			}
			fallthrough
		case strings.HasSuffix(path, ".go"), strings.HasSuffix(path, ".js"):
			for _, m := range quoted.FindAllStringSubmatch(string(text), -1) {
				for _, word := range strings.Fields(m[1]) {
					said[word] = true
				}
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return used, said
}
