package documents

import (
	"context"
	"embed"
	"html/template"
	"io/fs"
	"path"
	"strings"
	"sync"

	"github.com/quorate/quorate/docs"
	"github.com/quorate/quorate/internal/base/invariant"
	"github.com/quorate/quorate/internal/console/page"
)

//go:embed *.html
var templates embed.FS

// Page returns the page.
func Page() page.Page {
	pictures, err := fs.Sub(docs.Files, "pictures")
	invariant.True(err == nil, "the documents have no pictures: %v", err)
	return page.Page{
		Path: pagePath, Name: "Documents", About: "The documents of exactly this build.",
		Templates: templates, Title: title, Pictures: pictures,
		Sections: []page.Section{
			{ID: "docs-contents", Template: "docs-contents", Load: contents},
			{ID: "docs-found", Wide: true, Template: "docs-found", Load: found},
			{ID: "docs-text", Wide: true, Template: "docs-text", Load: body},
		},
	}
}

// listed is a document in a list.
type listed struct{ Name, Title string }

// all are the documents of the build, in the order of their paths: pages, decisions, then the rest.
var all = sync.OnceValue(func() (names []string) {
	for _, pattern := range []string{"*.md", "adr/*.md", "history/*.md"} {
		found, err := fs.Glob(docs.Files, pattern)
		invariant.True(err == nil, "a pattern of documents: %v", err)
		names = append(names, found...)
	}
	return names
})

// titles are the titles of all documents.
var titles = sync.OnceValue(func() map[string]string {
	of := map[string]string{}
	for _, name := range all() {
		of[name] = name
		for line := range strings.Lines(string(read(name))) {
			if words, ok := strings.CutPrefix(line, "# "); ok {
				of[name] = unmarked(words)
				break
			}
		}
	}
	return of
})

// read returns a document of the build; nil: there is none.
func read(name string) []byte {
	if path.Ext(name) != ".md" || !fs.ValidPath(name) {
		return nil
	}
	source, err := docs.Files.ReadFile(name)
	if err != nil {
		return nil
	}
	return source
}

func exists(name string) bool {
	file, err := fs.Stat(docs.Files, name)
	return err == nil && file.Mode().IsRegular()
}

// asked is the document that a request is for.
func asked(r *page.Request) string {
	switch r.Below {
	case "":
		return index
	case "adr", "adr/":
		return path.Join("adr", index)
	}
	return r.Below
}

func title(r *page.Request) string {
	if r.Query.Has("q") {
		return ""
	}
	return titles()[asked(r)]
}

// group is documents under one heading of the list.
type group struct {
	Name  string
	Items []listed
}

// heading is a heading of the document that is shown.
type heading struct {
	Level        int
	Text, Anchor string
}

type contentsView struct {
	Query    string
	Headings []heading
	Here     string
	Groups   []group
}

// contents lists the headings of the document that is shown, and all documents.
func contents(_ context.Context, r *page.Request) (any, error) {
	v := contentsView{Query: r.Query.Get("q"), Here: asked(r)}
	if source := read(v.Here); source != nil && v.Query == "" {
		for _, p := range parts(source) {
			if p.level == 2 || p.level == 3 {
				v.Headings = append(v.Headings, heading{p.level, p.heading, p.anchor})
			}
		}
	}
	names, of := []string{"Pages", "Decisions", "Measurements"}, map[string]int{".": 0, "adr": 1, "history": 2}
	v.Groups = make([]group, len(names))
	for i, name := range names {
		v.Groups[i].Name = name
	}
	for _, name := range all() {
		g := &v.Groups[of[path.Dir(name)]]
		g.Items = append(g.Items, listed{name, titles()[name]})
	}
	return v, nil
}

// body shows a document.
func body(_ context.Context, r *page.Request) (any, error) {
	if r.Query.Has("q") {
		return nil, page.ErrHidden
	}
	name := asked(r)
	source := read(name)
	if source == nil {
		return bodyView{Missing: name}, nil
	}
	d, err := render(name, source, exists)
	return bodyView{Body: d}, err
}

// bodyView is a document, or the name of one that the build does not have.
type bodyView struct {
	Missing string
	Body    template.HTML
}

type foundView struct {
	Query  string
	Places []place
	More   int
}

// found shows where the words of a query are.
func found(_ context.Context, r *page.Request) (any, error) {
	if !r.Query.Has("q") {
		return nil, page.ErrHidden
	}
	v := foundView{Query: r.Query.Get("q")}
	v.Places, v.More = search(all(), read, v.Query)
	return v, nil
}
