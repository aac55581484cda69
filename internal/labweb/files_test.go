package labweb_test

import (
	"errors"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/labweb"
)

// sources returns the files of the page that a maintainer writes, by their names.
func sources(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	entries, err := fs.ReadDir(labweb.Static(), ".")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.Name() == labweb.Program || entry.Name() == labweb.Runtime {
			continue
		}
		content, err := fs.ReadFile(labweb.Static(), entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		all[entry.Name()] = string(content)
	}
	return all
}

// Ensure that a build without the program says so, and one with it has all files.
func TestFiles(t *testing.T) {
	files, err := labweb.Files()
	switch {
	case errors.Is(err, labweb.ErrNotBuilt):
		if files != nil || !strings.Contains(err.Error(), "make lab") {
			t.Errorf("got files, or %v", err)
		}
	case err != nil:
		t.Error(err)
	default:
		for _, name := range []string{"index.html", "lab.js", "worker.js", "lab.css", labweb.Program, labweb.Runtime} {
			if _, err := fs.Stat(files, name); err != nil {
				t.Error(err)
			}
		}
	}
}

// forbidden is what would run a text as code, or read it as markup.
var forbidden = regexp.MustCompile(`\beval\s*\(|\bFunction\s*\(|innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|` +
	`createContextualFragment|srcdoc|javascript:|set(Timeout|Interval)\(\s*["'` + "`" + `]|importScripts`)

// Ensure that no module runs a text as code or reads one as markup, that modules import only files beside them, and that each can be
// read in one sitting.
func TestModules(t *testing.T) {
	files := sources(t)
	imported := regexp.MustCompile(`(?m)^import [^"]*"([^"]+)"|import\(`)
	modules := 0
	for name, text := range files {
		if path.Ext(name) != ".js" {
			continue
		}
		modules++
		if found := forbidden.FindString(text); found != "" {
			t.Errorf("%s has %q", name, found)
		}
		if lines := strings.Count(text, "\n"); lines > 400 {
			t.Errorf("%s has %d lines: split it by duty", name, lines)
		}
		for _, match := range imported.FindAllStringSubmatch(text, -1) {
			target := strings.TrimPrefix(match[1], "./")
			if _, ours := files[target]; !ours && target != labweb.Runtime {
				t.Errorf("%s imports %q, which is not beside it", name, match[1])
			}
		}
	}
	if modules < 5 {
		t.Errorf("only %d modules: the files were not found", modules)
	}
}

// Ensure that the page has no code and no style in its markup, refers only to files beside it, and has the policy of the header.
func TestPage(t *testing.T) {
	files := sources(t)
	page := files["index.html"]
	for _, bad := range []string{`\son[a-z]+\s*=`, `\sstyle\s*=`, `<style`, `<script(?:\s+type="module")?>`, `https?://`} {
		if found := regexp.MustCompile(bad).FindString(page); found != "" {
			t.Errorf("index.html has %q", found)
		}
	}
	for _, match := range regexp.MustCompile(`(?:src|href)="([^"#:]+)"`).FindAllStringSubmatch(page, -1) {
		if _, ours := files[match[1]]; !ours {
			t.Errorf("index.html refers to %q, which is not beside it", match[1])
		}
	}
	own := regexp.MustCompile(`http-equiv="Content-Security-Policy" content="([^"]+)"`).FindStringSubmatch(page)
	want := strings.Replace(labweb.Policy, "frame-ancestors 'none'; ", "", 1)
	if own == nil || own[1] != want {
		t.Errorf("the page's policy is %v, the header's without frame-ancestors %q", own, want)
	}
	for _, part := range strings.Split(labweb.Policy, "; ") {
		if strings.Contains(part, "unsafe") && part != "script-src 'self' 'wasm-unsafe-eval'" {
			t.Errorf("the policy allows %q", part)
		}
	}
	if strings.Contains(files["lab.css"], "@import") || strings.Contains(files["lab.css"], "url(") {
		t.Error("lab.css loads something")
	}
}

// Ensure that every id is there once, that the modules name only ids of the page, and that each control has a name.
func TestPage_names(t *testing.T) {
	files := sources(t)
	page := files["index.html"]
	var ids []string
	for _, match := range regexp.MustCompile(`\sid="([^"]+)"`).FindAllStringSubmatch(page, -1) {
		if slices.Contains(ids, match[1]) {
			t.Errorf("the id %s is there twice", match[1])
		}
		ids = append(ids, match[1])
	}
	for name, text := range files {
		for _, match := range regexp.MustCompile(`\bat\("([^"]+)"\)`).FindAllStringSubmatch(text, -1) {
			if !slices.Contains(ids, match[1]) {
				t.Errorf("%s asks for the id %s, which the page does not have", name, match[1])
			}
		}
	}
	for _, match := range regexp.MustCompile(`\s(?:for|aria-labelledby|aria-controls|aria-describedby)="([^"]+)"`).FindAllStringSubmatch(page, -1) {
		for id := range strings.FieldsSeq(match[1]) {
			if !slices.Contains(ids, id) {
				t.Errorf("something is named by %s, which is not there", id)
			}
		}
	}
	controls := regexp.MustCompile(`(?s)<(?:input|select)\b[^>]*>`).FindAllString(page, -1)
	for _, control := range controls {
		id := regexp.MustCompile(`\sid="([^"]+)"`).FindStringSubmatch(control)
		inside := strings.Contains(page, `<label class="check">`+control) || strings.Contains(page, `<label class="switch">`+control)
		if !inside && !strings.Contains(control, "aria-label") && (id == nil || !strings.Contains(page, `for="`+id[1]+`"`)) {
			t.Errorf("a control without a name: %s", control)
		}
	}
	for _, match := range regexp.MustCompile(`(?s)<button\b([^>]*)>(.*?)</button>`).FindAllStringSubmatch(page, -1) {
		if !strings.Contains(match[1], "aria-label") && !regexp.MustCompile(`[A-Za-z]{2}`).MatchString(match[2]) {
			t.Errorf("a button without a name: %s", match[0])
		}
	}
	if len(controls) < 15 {
		t.Errorf("only %d controls", len(controls))
	}
}

// Ensure that colours are variables, each light and dark, and that the console's names are among them.
func TestStyle(t *testing.T) {
	style := sources(t)["lab.css"]
	root, rest, _ := strings.Cut(style, "\n}\n")
	for _, name := range []string{"--bg", "--fg", "--muted", "--line", "--accent", "--good", "--warn", "--bad"} {
		if !regexp.MustCompile(`(?m)^  ` + name + `: light-dark\(#[0-9a-f]{6}, #[0-9a-f]{6}\);$`).MatchString(root) {
			t.Errorf("lab.css has no %s, light and dark", name)
		}
	}
	if found := regexp.MustCompile(`#[0-9a-fA-F]{3,8}\b|\brgba?\(`).FindString(regexp.MustCompile(`(?m)^.*\{`).ReplaceAllString(rest, "")); found != "" {
		t.Errorf("lab.css has the colour %s outside of the variables", found)
	}
	for _, want := range []string{"prefers-reduced-motion", "color-scheme: light dark", ":focus-visible"} {
		if !strings.Contains(style, want) {
			t.Errorf("lab.css has no %s", want)
		}
	}
	checkContrast(t, root)
}
