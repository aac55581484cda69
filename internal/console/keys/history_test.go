package keys_test

import (
	"fmt"
	"html"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Ensure that versions are listed with the differences between them, and that the page says since when the history is kept.
func TestKeys_versions(t *testing.T) {
	w := start(t)
	first := w.put("k", "one\ntwo\nthree\n")
	second := w.put("k", "one\n2\nthree\nfour\n")
	gone := w.del("k")
	third := w.put("k", `{"a":1}`)
	fourth := w.put("k", `{"a":2}`)
	page := w.look(at("/keys/versions", "key", "k"))
	wants(t, "the list", page, "history is kept since revision 1.", ">deleted<", ">created<", fmt.Sprintf(`name="a" value="%d"`, first))
	page = w.look(at("/keys/versions", "key", "k", "a", fmt.Sprint(first), "b", fmt.Sprint(second)))
	wants(t, "a difference of lines", page, "1 line removed, 2 lines added", ">two<", ">2<", ">four<")
	page = w.look(at("/keys/versions", "key", "k", "a", fmt.Sprint(third), "b", fmt.Sprint(fourth)))
	wants(t, "a difference of JSON", page, "1 line removed, 1 line added", "broken into lines first")
	page = w.look(at("/keys/versions", "key", "k", "a", fmt.Sprint(gone), "b", fmt.Sprint(fourth)))
	wants(t, "a deletion", page, "did not exist at revision")
	w.put("k", "\x00one")
	last := w.put("k", "\x00two")
	page = w.look(at("/keys/versions", "key", "k", "a", fmt.Sprint(last-1), "b", fmt.Sprint(last)))
	wants(t, "bytes", page, "no text", "differ from byte 1 on")
	wants(t, "an old version", w.look(at("/keys/key", "key", "k", "rev", fmt.Sprint(first))), "as it was at revision", "two")
	wants(t, "a deleted version", w.look(at("/keys/key", "key", "k", "rev", fmt.Sprint(gone))), "no such key at revision")
	if _, err := w.client.Compact(w.ctx, third); err != nil {
		t.Fatal(err)
	}
	page = w.look(at("/keys/versions", "key", "k"))
	wants(t, "after a compaction", page, fmt.Sprintf("kept since revision %d;", third), fmt.Sprintf(`value="%d"`, third),
		fmt.Sprintf(`!value="%d"`, second))
	for _, target := range []string{at("/keys/versions", "key", "k", "a", fmt.Sprint(first), "b", fmt.Sprint(fourth)),
		at("/keys/key", "key", "k", "rev", fmt.Sprint(first))} {
		wants(t, target, w.look(target), "is compacted", fmt.Sprintf("kept since revision %d", third))
	}
}

// Ensure that versions have pages.
func TestKeys_versions_many(t *testing.T) {
	w := start(t)
	for i := range 120 {
		w.put("k", strings.Repeat("v", i))
	}
	seen := 0
	for next := at("/keys/versions", "key", "k"); next != ""; {
		page := w.look(next)
		seen += strings.Count(page, `name="a"`)
		next = linkOf(page, "Older versions")
	}
	if seen != 120 {
		t.Errorf("the pages have %d versions", seen)
	}
	wants(t, "the key", w.look(at("/keys/key", "key", "k")), "All versions")
}

// Ensure that deleted keys are listed, and restored as a preview has shown them, once its prefix is typed.
func TestKeys_undelete(t *testing.T) {
	w := start(t)
	lease, err := w.client.Grant(w.ctx, 600)
	if err != nil {
		t.Fatal(err)
	}
	w.put("/app/a", "first")
	w.put("/app/a", "last")
	w.put("/app/b<b>", "b")
	w.put("/app/lock", "l", clientv3.WithLease(lease.ID))
	w.put("/app/c", "old")
	w.put("/app/stays", "s")
	w.put("/other", "o")
	for _, key := range []string{"/app/a", "/app/b<b>", "/app/lock", "/app/c", "/other"} {
		w.del(key)
	}
	w.put("/app/c", "new")
	page := w.look(at("/keys/deleted", "prefix", "/app/"))
	wants(t, "the list", page, "/app/a", "/app/b&lt;b&gt;", "!/app/c<", "!/app/stays", "!>/other<", "quorate undelete --dry-run")
	page = w.look(linkOf(page, "Preview an undelete"))
	wants(t, "the preview", page, "2</b><span>keys would be written", "1 key had a lease", "!/app/lock<", "it exists, with another value", "Left alone")
	form := fieldsOf(page)
	for _, wrong := range []string{"", "/app", "/"} {
		said, _ := w.send("/keys/undelete", append(form, "typed", wrong)...)
		wants(t, "typed "+wrong, said, "!restored")
	}
	w.put("/app/d", "d")
	w.del("/app/d")
	said, _ := w.send("/keys/undelete", append(form, "typed", "/app/")...)
	wants(t, "a preview that is old", said, "changed since the preview was made", "Nothing was written")
	if _, ok := w.value("/app/a"); ok {
		t.Error("an old preview was done")
	}
	said, _ = w.send("/keys/undelete", append(fieldsOf(w.look(at("/keys/undelete", "prefix", "/app/"))), "typed", "/app/")...)
	wants(t, "the outcome", said, "3 keys were restored")
	for key, want := range map[string]string{"/app/a": "last", "/app/b<b>": "b", "/app/c": "new", "/app/d": "d", "/app/stays": "s"} {
		if got, _ := w.value(key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if _, ok := w.value("/other"); ok {
		t.Error("a key of another prefix was restored")
	}
	page = w.look(at("/keys/undelete", "prefix", "/app/"))
	wants(t, "a preview of nothing", page, "Nothing is to be written", `!method="post" action="/keys/undelete"`)
	page = w.look(at("/keys/undelete", "prefix", ""))
	wants(t, "all keys", page, "Of all keys", "/other")
	said, _ = w.send("/keys/undelete", append(fieldsOf(page), "typed", `""`)...)
	wants(t, "all keys", said, "1 key was restored")
	w.del("/app/a")
	w.put("/app/ab", "other")
	w.del("/app/ab")
	page = w.look(linkOf(w.look(at("/keys/key", "key", "/app/a")), "Undelete"))
	wants(t, "one key", page, "1</b><span>key would be written", "!/app/ab", "quorate undelete --exact")
	said, _ = w.send("/keys/undelete", append(fieldsOf(page), "typed", "/app/a")...)
	wants(t, "one key", said, "1 key was restored", "last")
	if _, ok := w.value("/app/ab"); ok {
		t.Error("a key that begins alike was restored")
	}
}

// Ensure that a page of deleted keys is bounded, and goes on.
func TestKeys_deleted_many(t *testing.T) {
	w := start(t)
	w.fill(many(250, "/gone/%04d"), "v")
	if _, err := w.client.Delete(w.ctx, "/gone/", clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	var all []string
	for next := at("/keys/deleted", "prefix", "/gone/"); next != ""; {
		page := w.look(next)
		all = append(all, rowsOf(page)...)
		next = linkOf(page, "More")
	}
	if want := many(250, "/gone/%04d"); strings.Join(all, " ") != strings.Join(want, " ") {
		t.Errorf("the pages have %d keys", len(all))
	}
	wants(t, "the preview", w.look(at("/keys/undelete", "prefix", "/gone/")), "250</b>", "And 150 more keys")
}

// Ensure that pages say by whom and when versions were written, and a key deleted.
func TestKeys_authors(t *testing.T) {
	w := start(t)
	for { // the feature level rises, and the time is noted, at some moment after the start
		w.put("k", "v")
		page := w.look(at("/keys/versions", "key", "k"))
		if strings.Contains(page, ">through m<") && strings.Contains(page, ">after 20") {
			break
		}
		if w.ctx.Err() != nil {
			t.Fatal(page)
		}
	}
	wants(t, "the key", w.look(at("/keys/key", "key", "k")), "<dd>after 20", "<dd>through m</dd>")
	w.del("k") // its creation may be many pages back by now
	w.put("k", "v")
	w.del("k")
	wants(t, "a deletion", w.look(at("/keys/key", "key", "k")), "When: after 20", "By: through m.")
	wants(t, "the list of deleted keys", w.look(at("/keys/deleted", "prefix", "k")), ">after 20", ">through m<")
	page := w.look(at("/keys/changes", "prefix", "k"))
	wants(t, "the changes of a prefix", page, ">deleted<", ">created<", ">through m<", "quorate history --prefix k")
	for i := 0; strings.Contains(page, "Older changes"); i++ {
		_, link, _ := strings.Cut(page, `class="button plain" href="/keys/changes`)
		link, _, _ = strings.Cut(link, `"`)
		if page = w.look("/keys/changes" + html.UnescapeString(link)); i > 1000 {
			t.Fatal("the pages of changes do not end")
		}
	}
	wants(t, "changes of nothing", w.look(at("/keys/changes", "prefix", "none/")), "None of these keys was changed")
}
