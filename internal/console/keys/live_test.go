package keys_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Ensure that changes since a revision are listed, the last ones first, and others are not.
func TestKeys_watch(t *testing.T) {
	w := start(t)
	w.put("/a/before", "v")
	from := w.put("/a/created", "<i>new</i>")
	w.put("/a/created", "changed")
	w.put("/b", "other")
	last := w.del("/a/created")
	page := w.lookFor(at("/keys/watch", "prefix", "/a/", "from", fmt.Sprint(from)), "were looked at")
	wants(t, "the changes", page, fmt.Sprintf("Revisions %d to %d were looked at", from, last), ">created<", ">changed<", ">deleted<",
		"<i>new</i>", "!/a/before", "!>/b<", "quorate watch --prefix --rev")
	if deleted, created := strings.Index(page, ">deleted<"), strings.Index(page, ">created<"); deleted > created {
		t.Error("the first change comes first")
	}
	page = w.lookFor(at("/keys/watch", "prefix", "/none/", "from", fmt.Sprint(from)), "were looked at")
	wants(t, "no changes", page, "was written or deleted in these revisions")
	page = w.lookFor(at("/keys/watch", "prefix", "/a/", "from", fmt.Sprint(last+1)), "nothing was written from")
	wants(t, "the present", page, "was written or deleted in these revisions", "!>deleted<")
	page = w.lookFor(at("/keys/watch", "prefix", "/a/", "from", fmt.Sprint(last+1_000_000)), "nothing was written from")
	wants(t, "the future", page, "!>deleted<")
	if _, err := w.client.Compact(w.ctx, last); err != nil {
		t.Fatal(err)
	}
	page = w.lookFor(at("/keys/watch", "prefix", "/a/", "from", "1"), "were looked at")
	wants(t, "a compacted revision", page, fmt.Sprintf("Revisions before %d are compacted", last), ">deleted<", "!>changed<")
}

var looked = regexp.MustCompile(`Revisions ([0-9\x{2009}]+) to ([0-9\x{2009}]+) were looked at`)

// Ensure that a look at very many changes shows the last ones, and says which it has not looked at.
func TestKeys_watch_many(t *testing.T) {
	w := start(t)
	w.put("/a/first", "v")
	for range 60 {
		w.fill(many(100, "/a/%d"), "v")
	}
	last := w.put("/a/last", "v")
	page := w.lookFor(at("/keys/watch", "prefix", "/a/", "from", "2"), ">/a/last<")
	wants(t, "many changes", page, ">/a/last<", "were not looked at", fmt.Sprintf("to %d were looked at", last))
	if rows := strings.Count(page, `<th scope="row"`); rows < 100 || rows > 400 {
		t.Errorf("the page has %d changes", rows)
	}
	large := strings.Repeat("v", 1<<20)
	for range 6 {
		last = w.put("/large", large)
	}
	page = w.lookFor(at("/keys/watch", "from", fmt.Sprint(last-5)), fmt.Sprintf("Revisions %d to %d were", last, last))
	wants(t, "large changes", page, fmt.Sprintf("Revisions %d to %d were looked at", last, last), "were not looked at", "1.00 MiB")
	page = w.lookFor(at("/keys/watch", "prefix", "/a/first", "from", "2"), "Revisions 2 to")
	wants(t, "few among many", page, "Revisions 2 to", ">created<", "!were not looked at")
}

// Ensure that leases are listed with the time that they have left, and revoked once their id is typed.
func TestKeys_leases(t *testing.T) {
	w := start(t)
	wants(t, "none", w.look("/keys/leases"), "There are no leases")
	var ids []clientv3.LeaseID
	for i := range 35 {
		lease, err := w.client.Grant(w.ctx, int64(1000+60*i))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, lease.ID)
	}
	first := fmt.Sprintf("%x", ids[0])
	for _, key := range []string{"/a", "<b>b</b>"} {
		w.put(key, "v", clientv3.WithLease(ids[0]))
	}
	page := w.look("/keys/leases")
	wants(t, "the list", page, "35 leases, 1 to 30", ">"+first+"<", "16 min", "<progress", "quorate lease list")
	if strings.Count(page, "<progress") != 30 {
		t.Errorf("the page has %d leases", strings.Count(page, "<progress"))
	}
	page = w.look(linkOf(page, "More"))
	wants(t, "the next page", page, "31 to 35", fmt.Sprintf(">%x<", ids[34]))
	wants(t, "the key", w.look(at("/keys/key", "key", "/a")), first, "<progress")
	page = w.look(at("/keys/lease", "id", first))
	wants(t, "the lease", page, "2 keys end with this lease", ">/a<", "&lt;b&gt;b&lt;/b&gt;", "<progress", "quorate lease show "+first)
	form := fieldsOf(page)
	for _, wrong := range []string{"", "1", fmt.Sprintf("%x", ids[1])} {
		said, _ := w.send("/keys/lease", append(form, "typed", wrong)...)
		wants(t, "typed "+wrong, said, "!was revoked")
	}
	said, _ := w.send("/keys/lease", append(form, "typed", first)...)
	wants(t, "the outcome", said, "was revoked", "34 leases")
	if _, ok := w.value("/a"); ok {
		t.Error("a key of the lease is left")
	}
	said, _ = w.send("/keys/lease", append(form, "typed", first)...)
	wants(t, "again", said, "!was revoked")
	wants(t, "a lease that is gone", w.look(at("/keys/lease", "id", first)), "There is no lease", "No key has this lease")
}

// Ensure that a user sees what the roles permit, and is told which ranges these are.
func TestKeys_rights(t *testing.T) {
	w := start(t)
	w.put("/team/a", "seen")
	secret := w.put("/secret/key", "classified")
	w.put("/secret/gone", "classified")
	w.del("/secret/gone")
	for _, step := range []func() error{
		func() error { _, err := w.client.RoleAdd(w.ctx, "root"); return err },
		func() error { _, err := w.client.UserAdd(w.ctx, "root", "p"); return err },
		func() error { _, err := w.client.UserGrantRole(w.ctx, "root", "root"); return err },
		func() error { _, err := w.client.RoleAdd(w.ctx, "team"); return err },
		func() error {
			_, err := w.client.RoleGrantPermission(w.ctx, "team", "/team/", "/team0", clientv3.PermissionType(clientv3.PermReadWrite))
			return err
		},
		func() error {
			_, err := w.client.RoleGrantPermission(w.ctx, "team", "one", "", clientv3.PermissionType(clientv3.PermRead))
			return err
		},
		func() error { _, err := w.client.UserAdd(w.ctx, "ann", "p"); return err },
		func() error { _, err := w.client.UserGrantRole(w.ctx, "ann", "team"); return err },
		func() error { _, err := w.client.AuthEnable(w.ctx); return err },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	w.send("/login", "name", "ann", "password", "p", "next", "/keys")
	for _, target := range []string{"/keys", at("/keys", "prefix", "/secret/"), at("/keys/watch", "prefix", "/secret/", "from", "2"),
		at("/keys/deleted", "prefix", "/secret/")} {
		wants(t, target, w.look(target), "Not permitted", "the keys that begin with /team/", "also to write", "the key one", "!classified", "!>/secret/gone")
	}
	for _, target := range []string{at("/keys/key", "key", "/secret/key"), at("/keys/versions", "key", "/secret/key"),
		at("/keys/value", "key", "/secret/key"), at("/keys/key", "key", "/secret/gone"), at("/keys/undelete", "prefix", "/secret/"),
		at("/keys/edit", "key", "/secret/key"), at("/keys/versions", "key", "/secret/key", "a", "2", "b", fmt.Sprint(secret))} {
		wants(t, target, w.look(target), "Not permitted", "!classified", "!deleted at")
	}
	page, _ := w.send("/keys/edit", "key", "/secret/key", "mod", fmt.Sprint(secret), "value", "mine")
	wants(t, "a write", page, "Not permitted", "!classified")
	wants(t, "what is permitted", w.look(at("/keys", "prefix", "/team/")), "1 key", "/team/")
	wants(t, "what is permitted", w.look(at("/keys/key", "key", "/team/a")), "seen")
}
