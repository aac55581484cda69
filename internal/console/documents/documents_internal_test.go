package documents

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/quorate/quorate/docs"
	"github.com/quorate/quorate/internal/console"
	"github.com/quorate/quorate/internal/console/page"
)

func open(t *testing.T) http.Handler {
	t.Helper()
	c, err := console.New(console.Options{Conn: (*grpc.ClientConn)(nil), Pages: []page.Page{Page()}, Member: "m1", MemoryBytes: 8 << 20,
		Logger: slog.New(slog.DiscardHandler),
		Enter:  func(r *http.Request) (context.Context, func()) { return r.Context(), func() {} },
		Lend:   func(*http.Request, int) (func(), error) { return func() {}, nil }})
	if err != nil {
		t.Fatal(err)
	}
	return c.Handler()
}

func get(t *testing.T, h http.Handler, target string) (code int, body string, header http.Header) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+target, nil))
	return w.Code, w.Body.String(), w.Result().Header
}

var (
	hrefs = regexp.MustCompile(`href="([^"]*)"`)
	ids   = regexp.MustCompile(` id="([^"]*)"`)
)

// Ensure that every document is shown, and that every link of it within the console leads to a document, a heading or a
// picture that there is.
func TestPage_links(t *testing.T) {
	h, pages := open(t), map[string]string{}
	for _, name := range all() {
		code, body, _ := get(t, h, "/docs/"+name)
		if code != http.StatusOK || !strings.Contains(body, `<article class="document">`) || len(body) > 1<<20 {
			t.Errorf("%s: %d, %d bytes", name, code, len(body))
		}
		if strings.Contains(body, "raw HTML omitted") || strings.Contains(body, " style=") || strings.Count(body, "<h1>") != 1 {
			t.Errorf("%s: raw HTML, a style, or not one title", name)
		}
		pages["/docs/"+name] = body
	}
	if len(pages) < 80 {
		t.Fatalf("only %d documents", len(pages))
	}
	anchors := map[string][]string{}
	for name, body := range pages {
		for _, id := range ids.FindAllStringSubmatch(body, -1) {
			anchors[name] = append(anchors[name], id[1])
		}
	}
	followed := 0
	for name, body := range pages {
		_, text, _ := strings.Cut(body, "<main")
		for _, href := range hrefs.FindAllStringSubmatch(text, -1) {
			u, err := url.Parse(href[1])
			if err != nil {
				t.Errorf("%s: %q: %v", name, href[1], err)
				continue
			}
			if u.Scheme != "" || u.Path == "/docs/" {
				continue
			}
			to := name
			if u.Path != "" {
				to = u.Path
			}
			if path.Ext(to) == ".svg" {
				if code, _, _ := get(t, h, to); code != http.StatusOK {
					t.Errorf("%s: the picture %s: %d", name, to, code)
				}
				continue
			}
			followed++
			if pages[to] == "" {
				t.Errorf("%s: a link to %s", name, to)
			} else if u.Fragment != "" && !slices.Contains(anchors[to], u.Fragment) {
				t.Errorf("%s: a link to #%s of %s", name, u.Fragment, to)
			}
		}
	}
	if followed < 1000 {
		t.Errorf("followed %d links only", followed)
	}
}

// Ensure that Markdown becomes what the page needs: anchors, scrolling tables, links that lead somewhere, and no HTML of its
// own.
func TestRender(t *testing.T) {
	source := "# Title `code`\n\nIntro [other](other.md#a-b), [up](../ARCHITECTURE.md), [alerts](../contrib/alerts.yaml#x), [here](#two), " +
		"[decision](adr/0001-x.md), [decisions](adr), [etcd](https://etcd.io/), [bad](javascript:alert(1)), [host](//evil/x), [gone](gone.md)\n\n" +
		"## Two\n\n## Two\n\n### `a.b` and [c](other.md): *d*\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n<script>alert(1)</script>\n\n<b>x</b>\n\n" +
		"![picture](pictures/p.svg)\n\n![unserved](pictures/p.png)\n\n```\n<code>\n```\n"
	files := []string{"other.md", "adr/0001-x.md", "adr/README.md", "pictures/p.svg", "sub/doc.md"}
	body, err := render("doc.md", []byte(source), func(name string) bool { return slices.Contains(files, name) })
	if err != nil {
		t.Fatal(err)
	}
	got := string(body)
	for _, want := range []string{
		`<a href="/docs/other.md#a-b">other</a>`, "up (ARCHITECTURE.md in the source)", "alerts (contrib/alerts.yaml in the source)",
		`<a href="#two">here</a>`, `<a href="/docs/adr/0001-x.md">decision</a>`, `<a href="/docs/adr/README.md">decisions</a>`,
		`<a href="https://etcd.io/">etcd</a>`, "gone (docs/gone.md in the source)",
		`<h2 id="two">Two</h2>`, `<h2 id="two-1">Two</h2>`, `<h3 id="ab-and-c-d">`, `<div class="scroll"><table>`, `<th scope="col">a</th>`,
		`align="right"`, `<img src="/docs/pictures/p.svg" alt="picture">`, "&lt;code&gt;",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	for _, other := range []string{"<script", "<b>", "javascript", "evil", "<h1", "Title", "unserved", "<p></p>"} {
		if strings.Contains(got, other) {
			t.Errorf("%s in\n%s", other, got)
		}
	}
}

// Ensure that the contents beside a document have the anchors of its text.
func TestParts(t *testing.T) {
	for _, name := range all() {
		body, err := render(name, read(name), exists)
		if err != nil {
			t.Fatal(err)
		}
		rendered := map[string]bool{}
		for _, id := range ids.FindAllStringSubmatch(string(body), -1) {
			rendered[id[1]] = true
		}
		for _, p := range parts(read(name)) {
			if p.level > 1 && !rendered[p.anchor] {
				t.Errorf("%s: no heading has the anchor %s of %q", name, p.anchor, p.heading)
			}
		}
	}
}

// Ensure that a search finds headings first, is bounded, and shows no markup of the query.
func TestSearch(t *testing.T) {
	found, more := search(all(), read, "The Fast path")
	if len(found) != mostFound || more == 0 || found[0].Document != "fast-path.md" && !strings.Contains(strings.ToLower(found[0].Heading), "fast path") {
		t.Errorf("%d places, %d more, the first: %+v", len(found), more, found[0])
	}
	if found, more := search(all(), read, "nothing has thiswordinit"); len(found)+more > 0 {
		t.Errorf("found %+v", found)
	}
	if found, _ := search(all(), read, " "); found != nil {
		t.Errorf("found %d places of nothing", len(found))
	}
	h := open(t)
	code, body, _ := get(t, h, "/docs/?q="+url.QueryEscape("<script>alert(1)</script>"+strings.Repeat("x", 1<<12)))
	if code != http.StatusOK || strings.Contains(body, "<script>alert") || !strings.Contains(body, "No place has") {
		t.Errorf("%d: %.2000s", code, body)
	}
	if _, body, _ := get(t, h, "/docs/?q=superquorum"); !strings.Contains(body, `href="/docs/fast-path.md#the-rules"`) {
		t.Errorf("got %.3000s", body)
	}
}

// Ensure that nothing but documents is served, and that a page says which one is missing.
func TestPage_missing(t *testing.T) {
	h := open(t)
	for _, target := range []string{"/docs/none.md", "/docs/doc.go", "/docs/adr/none.md", "/docs/..%2f..%2fgo.mod", "/docs/%00", "/docs/adr/",
		"/docs/" + strings.Repeat("x/", 2000) + "<b>"} {
		code, body, _ := get(t, h, target)
		missing := strings.Contains(body, "This build has no document")
		if code != http.StatusOK || missing != (target != "/docs/adr/") || strings.Contains(body, "<b>") && len(body) > 1<<18 {
			t.Errorf("%.60s: %d, missing: %v", target, code, missing)
		}
	}
	for target, want := range map[string]int{"/docs/pictures/cpu.svg": 200, "/docs/pictures/none.svg": 404, "/docs/pictures/bench.json": 404,
		"/docs/pictures/..%2fREADME.md": 404} {
		code, _, header := get(t, h, target)
		if code != want || code == 200 && (header.Get("Content-Type") != "image/svg+xml" ||
			!strings.Contains(header.Get("Content-Security-Policy"), "sandbox")) {
			t.Errorf("%s: %d, %v", target, code, header)
		}
	}
	if _, err := docs.Files.Open("pictures/bench.json"); err == nil {
		t.Error("the build has data of pictures")
	}
}

// Ensure that the title of a page is that of the document.
func TestPage_title(t *testing.T) {
	h := open(t)
	for target, want := range map[string]string{"/docs/": "<h1>Documents</h1>", "/docs/fast-path.md": "<h1>Writes and reads in one round trip</h1>",
		"/docs/none.md": "<h1>Documents</h1>", "/docs/?q=x": "<h1>Documents</h1>"} {
		if _, body, _ := get(t, h, target); !strings.Contains(body, want) {
			t.Errorf("%s: no %s", target, want)
		}
	}
}
