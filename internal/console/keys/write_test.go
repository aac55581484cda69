package keys_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Ensure that a form writes all bytes of a text but those that were edited, with its line ends and its lease.
func TestKeys_edit(t *testing.T) {
	w := start(t)
	lease, err := w.client.Grant(w.ctx, 600)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"one line": "a", "last line feed": "a\n", "lines": "a\nb\n\n", "leading line feeds": "\n\na\n", "carriage returns": "a\r\nb\r\n",
		"markup": "</textarea><script>a", "characters": "größer \u202e שלום\ta&amp;b", "empty": "", "spaces": "  a  ",
	} {
		w.put(name, value, clientv3.WithLease(lease.ID))
		page := w.look(at("/keys/edit", "key", name))
		form := append(fieldsOf(page), "value", textOf(t, page))
		page, _ = w.send("/keys/edit", form...)
		wants(t, name, page, "nothing was written")
		page, _ = w.send("/keys/edit", append(fieldsOf(w.look(at("/keys/edit", "key", name))), "value", form[len(form)-1]+"more")...)
		wants(t, name, page, "Written at revision")
		if got, _ := w.value(name); got != value+"more" {
			t.Errorf("%s: got %q, want %q", name, got, value+"more")
		}
		answer, err := w.client.Get(w.ctx, name)
		if err != nil || answer.Kvs[0].Lease != int64(lease.ID) || answer.Kvs[0].Version != 2 {
			t.Errorf("%s: %v: got %v", name, err, answer.Kvs)
		}
	}
}

// Ensure that values which a browser does not keep are not edited.
func TestKeys_edit_refuses(t *testing.T) {
	w := start(t)
	for name, value := range map[string]string{
		"no text": "\xff", "zero": "a\x00b", "mixed": "a\r\nb\nc", "return": "a\rb", "large": strings.Repeat("a", 200<<10),
		"escape": "\x1b[1m", "noncharacter": "a\uffffb",
	} {
		revision := w.put(name, value)
		wants(t, name, w.look(at("/keys/edit", "key", name)), "cannot be edited here", "!<textarea")
		wants(t, name, w.look(at("/keys/key", "key", name)), "cannot be edited here", "!>Edit<")
		page, answer := w.send("/keys/edit", "key", name, "mod", fmt.Sprint(revision), "value", "new")
		wants(t, name, page, "Nothing was changed")
		if got, _ := w.value(name); got != value || answer.StatusCode != http.StatusConflict {
			t.Errorf("%s: %s, and the value is %q", name, answer.Status, got)
		}
	}
	revision := w.put("text", "a")
	for about, value := range map[string]string{"a byte of none": "a\x00", "a large one": strings.Repeat("a", 200<<10)} {
		page, _ := w.send("/keys/edit", "key", "text", "mod", fmt.Sprint(revision), "value", value)
		wants(t, about, page, "cannot be written from a form", "Nothing was changed")
	}
	page, _ := w.send("/keys/edit", "key", "text", "value", "b")
	wants(t, "no revision", page, "Nothing was changed")
	if got, _ := w.value("text"); got != "a" {
		t.Errorf("the value is %q", got)
	}
}

// Ensure that a key that others wrote meanwhile is not written, that both values are shown, and that a reader can go on.
func TestKeys_edit_conflict(t *testing.T) {
	w := start(t)
	w.put("k", "one\ntwo\nthree\n")
	form := fieldsOf(w.look(at("/keys/edit", "key", "k")))
	w.put("k", "one\n<b>2</b>\nthree\n")
	page, answer := w.send("/keys/edit", append(form, "value", "one\r\ntwo\r\nthree\r\nfour\r\n")...)
	if answer.StatusCode != http.StatusConflict {
		t.Errorf("got %s", answer.Status)
	}
	wants(t, "a conflict", page, "Nothing was written", "&lt;b&gt;2&lt;/b&gt;", "1 line removed, 2 lines added", "Start over")
	if got, _ := w.value("k"); got != "one\n<b>2</b>\nthree\n" {
		t.Errorf("the value is %q", got)
	}
	page, _ = w.send("/keys/edit", append(fieldsOf(page), "value", textOf(t, page))...)
	wants(t, "going on", page, "Written at revision")
	if got, _ := w.value("k"); got != "one\ntwo\nthree\nfour\n" {
		t.Errorf("the value is %q", got)
	}
	form = fieldsOf(w.look(at("/keys/edit", "key", "k")))
	w.del("k")
	page, _ = w.send("/keys/edit", append(form, "value", "new")...)
	wants(t, "a key that was deleted", page, "was deleted since you opened it", "Start over with a new key", "new")
	if _, ok := w.value("k"); ok {
		t.Error("the key exists again")
	}
}

// Ensure that a new key does not replace one, and may have any bytes.
func TestKeys_create(t *testing.T) {
	w := start(t)
	for typed, key := range map[string]string{"/a/b": "/a/b", `"\x00\xff"`: "\x00\xff", `" spaces "`: " spaces ", "größer": "größer"} {
		page, _ := w.send("/keys/new", "key", typed, "value", "a\r\nb")
		wants(t, typed, page, "Created at revision")
		if got, _ := w.value(key); got != "a\nb" {
			t.Errorf("%s: the value is %q", typed, got)
		}
		page, _ = w.send("/keys/new", "key", typed, "value", "other")
		wants(t, typed+" again", page, "Nothing was written", "exists")
		if got, _ := w.value(key); got != "a\nb" {
			t.Errorf("%s: the value is %q", typed, got)
		}
	}
	for _, typed := range []string{"", " a", "a ", `"`, `""`, `"a"b`} {
		page, _ := w.send("/keys/new", "key", typed, "value", "v")
		wants(t, "key "+typed, page, "!Created")
	}
	if answer, err := w.client.Get(w.ctx, "", clientv3.WithPrefix(), clientv3.WithCountOnly()); err != nil || answer.Count != 4 {
		t.Errorf("%v: there are %d keys", err, answer.Count)
	}
}

// Ensure that a key is deleted only if it was typed, and is as the form says.
func TestKeys_delete(t *testing.T) {
	w := start(t)
	for _, key := range []string{"/a/b", "\x00\xff", "two\nlines"} {
		typed := key
		if key != "/a/b" {
			typed = fmt.Sprintf("%q", key)
		}
		w.put(key, "v")
		form := fieldsOf(w.look(at("/keys/delete", "key", typed)))
		for _, wrong := range []string{"", "/a", typed + "x", `"`} {
			page, _ := w.send("/keys/delete", append(form, "typed", wrong)...)
			wants(t, "typed "+wrong, page, "!Deleted at")
		}
		w.put(key, "other")
		page, _ := w.send("/keys/delete", append(form, "typed", typed)...)
		wants(t, "a key that was written", page, "written or deleted meanwhile", "Nothing was changed")
		if _, ok := w.value(key); !ok {
			t.Errorf("%q is gone", key)
		}
		page, _ = w.send("/keys/delete", append(fieldsOf(w.look(at("/keys/delete", "key", typed))), "typed", typed)...)
		wants(t, "a key that is deleted", page, "Deleted at revision", "There is no such key", "can still be read", "Undelete")
		if _, ok := w.value(key); ok {
			t.Errorf("%q exists", key)
		}
	}
}

// Ensure that a console that only reads has no form, and changes nothing.
func TestKeys_readOnly(t *testing.T) {
	w := start(t, "--console=read-only")
	revision := w.put("k", "v")
	w.put("gone", "v")
	w.del("gone")
	lease, err := w.client.Grant(w.ctx, 600)
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{at("/keys"), at("/keys/key", "key", "k"), at("/keys/edit", "key", "k"), at("/keys/delete", "key", "k"),
		at("/keys/new"), at("/keys/deleted"), at("/keys/undelete"), at("/keys/key", "key", "gone"),
		at("/keys/lease", "id", fmt.Sprintf("%x", lease.ID))} {
		wants(t, target, w.look(target), `!method="post" action="/keys`, "!/keys/edit?", "!/keys/new", "!/keys/delete?")
	}
	for path, form := range map[string][]string{
		"/keys/edit":     {"key", "k", "mod", fmt.Sprint(revision), "value", "other"},
		"/keys/new":      {"key", "new", "value", "other"},
		"/keys/delete":   {"key", "k", "mod", fmt.Sprint(revision), "typed", "k"},
		"/keys/undelete": {"prefix", "", "typed", `""`},
		"/keys/lease":    {"id", fmt.Sprintf("%x", lease.ID), "typed", fmt.Sprintf("%x", lease.ID)},
	} {
		if _, answer := w.send(path, form...); answer.StatusCode != http.StatusForbidden {
			t.Errorf("%s: got %s", path, answer.Status)
		}
	}
	if answer, err := w.client.Get(w.ctx, "", clientv3.WithPrefix()); err != nil || answer.Count != 1 || string(answer.Kvs[0].Value) != "v" {
		t.Errorf("%v: got %v", err, answer.Kvs)
	}
	if left, err := w.client.TimeToLive(w.ctx, lease.ID); err != nil || left.TTL <= 0 {
		t.Errorf("the lease: %v, %v", left, err)
	}
}
