package keys_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
)

var rowNames = regexp.MustCompile(`<th scope="row" class="key">.*?<bdi>([^<]*)</bdi>`)

func rowsOf(page string) (names []string) {
	for _, m := range rowNames.FindAllStringSubmatch(page, -1) {
		names = append(names, m[1])
	}
	return names
}

// Ensure that a level has its children, each once and in order, over as many pages as it takes, whatever lies below them.
func TestKeys_tree(t *testing.T) {
	w := start(t)
	w.fill(many(3000, "/deep/a/%04d"), "v")
	w.fill(many(3, "/deep/b/c/%d"), "v")
	w.fill(many(250, "/wide/%04d/x/y"), "v")
	w.fill([]string{"/deep", "/deep/", "/deep/z", "plain"}, "v")
	page := w.look("/keys")
	if got := strings.Join(rowsOf(page), " "); got != "/ plain" {
		t.Errorf("the root has %q", got)
	}
	wants(t, "the root", page, "3257 keys in all", "quorate get --prefix --keys-only --serializable '' --endpoints")
	page = w.look(at("/keys", "prefix", "/"))
	if got := strings.Join(rowsOf(page), " "); got != "deep deep/ wide/" {
		t.Errorf("below / there are %q", got)
	}
	page = w.look(at("/keys", "prefix", "/deep/"))
	if got := strings.Join(rowsOf(page), " "); got != "/deep/ a/ b/ z" {
		t.Errorf("below /deep/ there are %q", got)
	}
	wants(t, "a level", page, "3005 keys", "begin with /deep/")
	page = w.look(at("/keys", "prefix", "/de"))
	if got := strings.Join(rowsOf(page), " "); got != "deep deep/" {
		t.Errorf("what begins with /de is %q", got)
	}
	var all []string
	next := at("/keys", "prefix", "/wide/")
	pages := 0
	for ; next != ""; pages++ {
		page = w.look(next)
		all = append(all, rowsOf(page)...)
		next = linkOf(page, "More")
	}
	if want := many(250, "%04d/"); strings.Join(all, " ") != strings.Join(want, " ") || pages != 3 {
		t.Errorf("%d pages have %d children: %q", pages, len(all), all)
	}
	wants(t, "the last page", page, "This page begins at", "begin at the first key")
}

// Ensure that a level of ten thousand keys is shown page by page, with sizes, versions and leases.
func TestKeys_tenThousand(t *testing.T) {
	w := start(t)
	w.fill(many(10_000, "k%05d"), "12345")
	lease, err := w.client.Grant(w.ctx, 600)
	if err != nil {
		t.Fatal(err)
	}
	w.put("k00001", strings.Repeat("v", 2048), clientv3.WithLease(lease.ID))
	page := w.look("/keys")
	if rows := rowsOf(page); len(rows) != 100 || rows[99] != "k00099" {
		t.Errorf("the page has %d rows: %q", len(rows), rows)
	}
	wants(t, "the first page", page, "10000 keys in all", "5 B", "2.00 KiB", fmt.Sprintf("%x", lease.ID), `href="/keys/lease?id=`)
	page = w.look(linkOf(page, "More"))
	if rows := rowsOf(page); len(rows) != 100 || rows[0] != "k00100" {
		t.Errorf("the next page has %d rows: %q", len(rows), rows)
	}
}

// hostile are keys and values that would be something else than text, or a lot of it.
var hostile = []struct{ name, key, value string }{
	{"markup", `<script>alert(1)</script>`, `</pre><script>alert(2)</script>`},
	{"attribute", `"onmouseover="alert(1)`, `" onload="alert(2)`},
	{"binary", "\x00\xff\xfe\x01", "\x00\x01\x02\xff"},
	{"right to left", "safe\u202egpj.exe", "one\u202etwo\u200bthree"},
	{"line feed", "two\nlines", "a\r\nb\r\n"},
	{"spaces", " around ", "   "},
	{"slashes", "///", "slashes"},
	{"quotes", `"quoted"`, `"`},
	{"empty value", "empty", ""},
	{"one MiB", "large", strings.Repeat("<&>\"'\x01", 170_000)},
	{"deep JSON", "json", strings.Repeat("[", 5000) + strings.Repeat("]", 5000)},
	{"percent", "100%/%2f?&=#+", "p"},
	{"hebrew", "שלום/עולם", "שלום"},
	{"terminal", "\x1b[2J", "\x1b[31mred"},
}

// Ensure that pages of hostile keys and values show them as text, and that each link leads to its key.
func TestKeys_hostile(t *testing.T) {
	w := start(t)
	for _, h := range hostile {
		w.put(h.key, h.value)
	}
	w.put("long"+strings.Repeat("k", 1<<20), "v")
	w.put("link"+strings.Repeat("\x02", 1500), "v")
	raw := regexp.MustCompile(`<script>alert|<b onload|\x{202e}|\x{200b}|\x1b|\x00|\x01`)
	check := func(about, page string) {
		t.Helper()
		if strings.HasSuffix(about, "/keys/edit") { // a form has the text as it is
			page = strings.NewReplacer("\u202e", "", "\u200b", "").Replace(page)
		}
		if found := raw.FindString(page); found != "" {
			t.Errorf("%s: the page has %q as it is", about, found)
		}
		if len(page) > 2<<20 {
			t.Errorf("%s: the page has %d bytes", about, len(page))
		}
	}
	root := w.look("/keys")
	check("the tree", root)
	wants(t, "the tree", root, "too long for a page", "1.00 MiB")
	for _, h := range hostile {
		name := h.key
		if strings.ContainsAny(name, "\x00\xff\u202e\n\x1b\"") || strings.TrimSpace(name) != name {
			name = fmt.Sprintf("%q", name)
		}
		for _, path := range []string{"/keys/key", "/keys/versions", "/keys/edit", "/keys/delete", "/keys/new"} {
			page, answer := w.open(at(path, "key", name))
			if answer.StatusCode != http.StatusOK {
				t.Errorf("%s: %s is %s", h.name, path, answer.Status)
			}
			check(h.name+" "+path, page)
			if path == "/keys/key" {
				wants(t, h.name, page, "version 1", "!There is no such key", "!did not have this within")
			}
		}
		for _, path := range []string{"/keys", "/keys/deleted", "/keys/changes", "/keys/undelete", "/keys/watch"} {
			check(h.name+" "+path, w.look(at(path, "prefix", name, "from", "1")))
		}
		body, answer := w.open(at("/keys/value", "key", name))
		if body != h.value {
			t.Errorf("%s: the file has %d bytes, want %d", h.name, len(body), len(h.value))
		}
		for header, want := range map[string]string{"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff"} {
			if got := answer.Header.Get(header); got != want {
				t.Errorf("%s: %s is %q", h.name, header, got)
			}
		}
		if got := answer.Header.Get("Content-Disposition"); !regexp.MustCompile(`^attachment; filename="[A-Za-z0-9._@-]+"$`).MatchString(got) {
			t.Errorf("%s: the file is %q", h.name, got)
		}
	}
	wants(t, "binary", w.look(at("/keys/key", "key", `"\x00\xff\xfe\x01"`)), "00 01 02 ff", "binary")
	wants(t, "right to left", w.look(at("/keys/key", "key", `"safe\u202egpj.exe"`)), `one<b class="ctl">\u202e</b>two<b class="ctl">\u200b</b>`)
	wants(t, "line ends", w.look(at("/keys/key", "key", `"two\nlines"`)), "Its lines end with carriage return and line feed")
	page := w.look(at("/keys", "prefix", "//"))
	if got := rowsOf(page); len(got) != 1 || got[0] != "/" || linkOf(page, "/") == "" {
		t.Errorf("below // there are %q", got)
	}
	page = w.look(at("/keys", "prefix", "///"))
	if got := rowsOf(page); len(got) != 1 || got[0] != "///" {
		t.Errorf("below /// there are %q", got)
	}
}

// Ensure that bad queries get a sentence.
func TestKeys_badQueries(t *testing.T) {
	w := start(t)
	for _, row := range []struct{ target, says string }{
		{at("/keys/key"), "names no key"},
		{at("/keys/key", "key", `"\x0`), "begins with a quote"},
		{at("/keys/key", "key", `""`), "at least one byte"},
		{at("/keys/key", "key", "gone"), "There is no such key"},
		{at("/keys/key", "key", "k", "rev", "yesterday"), "is no revision"},
		{at("/keys/key", "key", "k", "rev", "-1"), "is no revision"},
		{at("/keys", "prefix", `"`), "begins with a quote"},
		{at("/keys/versions", "key", "k", "a", "x", "b", "1"), "is no revision"},
		{at("/keys/deleted", "page", "!"), "not one that this console made"},
		{at("/keys/changes", "page", "!"), "not one that this console made"},
		{at("/keys/changes", "page", "AAAA"), "the page is none of this method"},
		{at("/keys/deleted", "page", "AAAA"), "the page belongs to another request"},
		{at("/keys/deleted", "at", "99999"), "cannot be read"},
		{at("/keys/undelete", "at", "99999"), "in the future"},
		{at("/keys/watch", "from", "x"), "is no revision"},
		{at("/keys/watch"), "Choose a revision"},
		{at("/keys/lease", "id", "x"), "is no lease"},
		{at("/keys/lease", "id", "77"), "There is no lease"},
		{at("/keys/leases", "skip", "x"), "not one that this console made"},
		{at("/keys/leases", "skip", "99"), "There are no leases"},
		{at("/keys/value", "key", "gone"), "There is no such key"},
	} {
		wants(t, row.target, w.look(row.target), row.says)
	}
}

// Ensure that formats are told apart and shown for the reader.
func TestKeys_formats(t *testing.T) {
	w := start(t)
	pod := "k8s\x00" + string(message(1, message(1, []byte("v1")), message(2, []byte("Pod")))) + string(message(2,
		message(1, message(1, []byte("web-0")), message(3, []byte("shop")), message(11, message(1, []byte("app")),
			message(2, []byte("<b>web</b>")))), message(2, []byte("spec"))))
	for _, row := range []struct {
		key, value string
		says       []string
	}{
		{"json", `{"b":[1,2],"a":{}}`, []string{">JSON<", "  \"b\": [\n    1,", "Spaces and line breaks are for the reader"}},
		{"yaml", "apiVersion: v1\nkind: Pod\nspec:\n  a: 1\n", []string{">YAML<", "kind: Pod\nspec:"}},
		{"text", "hello: world, this is\nno YAML", []string{">text<"}},
		{"pod", pod, []string{">Kubernetes protobuf<", "Pod", "web-0", "shop", "app=<b>web</b>", "6b 38 73 00"}},
		{"broken pod", pod[:20], []string{">Kubernetes protobuf<", "6b 38 73 00"}},
		{"number", "42", []string{">text<"}},
	} {
		w.put(row.key, row.value)
		wants(t, row.key, w.look(at("/keys/key", "key", row.key)), append(row.says, "!No answer")...)
	}
}

// message is a field of a protobuf message that holds others, or bytes.
func message(number byte, parts ...[]byte) []byte {
	var body []byte
	for _, part := range parts {
		body = append(body, part...)
	}
	return append([]byte{number<<3 | 2, byte(len(body))}, body...)
}

// Ensure that a value larger than a page reads is not read for it, and can be saved.
func TestKeys_large(t *testing.T) {
	w := start(t, "--max-request-bytes=8388608")
	value := strings.Repeat("a line of text\n", 400_000)
	w.put("large", value)
	w.put("large", value+"more")
	for _, target := range []string{at("/keys/key", "key", "large"), at("/keys/edit", "key", "large")} {
		page := w.look(target)
		wants(t, target, page, "!a line of text", "!No answer in time", "!<textarea")
	}
	wants(t, "the key", w.look(at("/keys/key", "key", "large")), "has more than this page reads", "5.72 MiB", "cannot be edited here")
	page := w.look(at("/keys/versions", "key", "large", "a", "2", "b", "3"))
	wants(t, "the difference", page, "too large to be compared")
	if body, _ := w.open(at("/keys/value", "key", "large", "rev", "2")); body != value {
		t.Errorf("the file has %d bytes, want %d", len(body), len(value))
	}
}
