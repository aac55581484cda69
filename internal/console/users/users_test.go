package users_test

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/auth"
)

func wantAll(t *testing.T, page string, all ...string) {
	t.Helper()
	for _, want := range all {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q: %.3000s", want, page)
		}
	}
}

func wantNone(t *testing.T, page string, all ...string) {
	t.Helper()
	for _, other := range all {
		if strings.Contains(page, other) {
			t.Errorf("the page has %q", other)
		}
	}
}

// Ensure that root sees users, roles and permissions in words, and no form unless the console administers.
func TestPage(t *testing.T) {
	m := newMember(t)
	page := open(t, m, false).get("/users")
	wantAll(t, page, "alice", "bob", "none: it may do nothing", "root, may do everything", "keys that begin with /registry/pods/",
		"read and write", `<span class="tag good">on</span>`, "quorate user list --endpoints", "quorate role list")
	wantNone(t, page, `method="post"`, "/users/change")
	wantAll(t, open(t, m, true).get("/users"), `method="post" action="/users/add-user"`, "/users/change?do=delete-user&amp;user=alice",
		"/users/change?do=revoke-permission&amp;role=pods&amp;key="+base64.RawURLEncoding.EncodeToString([]byte("/registry/pods/")))
}

// Ensure that a user who is not root sees itself and its roles.
func TestPage_alone(t *testing.T) {
	m := newMember(t)
	m.by = "alice"
	b := open(t, m, true)
	wantAll(t, b.get("/users"), "Not permitted") // nobody has logged in
	b.post("/login", url.Values{"name": {"alice"}, "password": {"pw"}})
	page := b.get("/users")
	wantAll(t, page, "You see yourself only", "You see your own roles only", "/registry/pods/", `alice <span class="tag">you</span>`)
	wantNone(t, page, "bob", "/registry/events/", "/users/change", "/users/add-user")
}

// Ensure that a cluster without users says so, and how to add them.
func TestPage_empty(t *testing.T) {
	m := &member{state: auth.New()}
	page := open(t, m, false).get("/users")
	wantAll(t, page, `<span class="tag warn">off</span>`, "There are no users yet", "quorate user add root", "quorate auth enable", "no roles yet")
}

// Ensure that without a majority the page says why, and does not wait.
func TestPage_unavailable(t *testing.T) {
	m := newMember(t)
	m.fault = status.Error(codes.Unavailable, "etcdserver: no leader")
	wantAll(t, open(t, m, false).get("/users"), "No answer in time", "no leader")
}

// Ensure that many users are asked for in parts, and found by a part of their name.
func TestPage_many(t *testing.T) {
	m := newMember(t)
	for i := range 500 {
		m.change(t, auth.Change{Kind: auth.UserAdd, User: fmt.Sprintf("user-%03d", i)})
	}
	b := open(t, m, false)
	page := b.get("/users")
	if n := strings.Count(page, "none: it may do nothing"); n != 48 || m.calls.Load() > 120 {
		t.Errorf("%d users without a role, %d calls", n, m.calls.Load())
	}
	wantAll(t, page, "453 more users", "after=user-046")
	wantAll(t, b.get("/users?after=user-046"), "user-047", "403 more users")
	page = b.get("/users?find=-12")
	wantAll(t, page, "user-120", "user-129")
	wantNone(t, page, "user-130", "more user")
	wantAll(t, b.get("/users?find=zzz"), "No user has zzz")
}

// Ensure that names and keys are never markup, and are told apart.
func TestPage_hostile(t *testing.T) {
	m := newMember(t)
	for _, name := range []string{`<script>alert(1)</script>`, "a\u202eb", "a b", `"`, strings.Repeat("x", 1024), "-rf"} {
		m.change(t, auth.Change{Kind: auth.UserAdd, User: name})
		m.change(t, auth.Change{Kind: auth.RoleAdd, Role: name})
		m.change(t, auth.Change{Kind: auth.UserGrantRole, User: name, Role: name})
		m.change(t, auth.Change{Kind: auth.GrantPermission, Role: name, Permission: auth.Permission{Key: []byte("\x00\xff<b>" + strings.Repeat("k", 1<<16))}})
	}
	for _, admin := range []bool{false, true} {
		page := open(t, m, admin).get("/users?of=" + url.QueryEscape(`<script>alert(1)</script>`) + "&key=" + url.QueryEscape(`"\x00\xff<b>"`))
		wantNone(t, page, "<script>alert", "\u202e", "<b>"+"k")
		wantAll(t, page, `&#34;a\u202eb&#34;`, "&#34;\\x00\\xff&lt;b&gt;kkk", "65541 bytes", "1024 bytes")
		if len(page) > 1<<20 {
			t.Errorf("%d bytes", len(page))
		}
	}
}

// Ensure that the verdict is package auth's, and that the reason names the permission.
func TestCheck(t *testing.T) {
	m := newMember(t)
	m.change(t, auth.Change{Kind: auth.UserGrantRole, User: "bob", Role: "events"})
	m.change(t, auth.Change{Kind: auth.RoleAdd, Role: "halves"})
	m.change(t, auth.Change{Kind: auth.GrantPermission, Role: "halves", Permission: auth.Permission{Key: []byte("/a/"), End: []byte("/a/m")}})
	m.change(t, auth.Change{Kind: auth.GrantPermission, Role: "halves", Permission: auth.Permission{Key: []byte("/a/m"), End: []byte("/a0")}})
	m.change(t, auth.Change{Kind: auth.UserGrantRole, User: "bob", Role: "halves"})
	b := open(t, m, false)
	for _, row := range []struct {
		query       string
		read, write bool
		want        string
	}{
		{"of=alice&kind=key&key=/registry/pods/a", true, true, "role pods: read and write keys that begin with /registry/pods/"},
		{"of=alice&kind=key&key=/registry/secrets/a", false, false, "no permission of its roles covers it"},
		{"of=alice&kind=prefix&key=/registry/", false, false, "permissions cover only a part of it"},
		{"of=bob&kind=key&key=/registry/events/1", true, false, "role events: read keys that begin"},
		{"of=bob&kind=prefix&key=/a/", true, false, "several permissions cover it together"},
		{"of=root&kind=prefix&key=", true, true, "it has the role root"},
		{"of=alice&kind=key&key=%22%5Cx00%22", false, false, "the key &#34;\\x00&#34;"},
	} {
		page := b.get("/users?" + row.query)
		verdicts := regexp.MustCompile(`<th scope="row">(read|write)</th><td><span class="tag \w+">(\w+)`).FindAllStringSubmatch(page, -1)
		if len(verdicts) != 2 || (verdicts[0][2] == "permitted") != row.read || (verdicts[1][2] == "permitted") != row.write {
			t.Errorf("%s: %v", row.query, verdicts)
		}
		wantAll(t, page, row.want)
	}
	wantAll(t, b.get("/users?of=nobody&key=x"), "There is no user nobody")
	wantAll(t, b.get("/users?of=alice&key="), "No key is empty")
	wantAll(t, b.get("/users?of=alice&key=%22%5Cq%22"), "escapes such as")
	m.change(t, auth.Change{Kind: auth.Disable})
	wantAll(t, b.get("/users?of=alice&kind=key&key=x"), "authentication is off", "denied")
}

// Ensure that each action does what it says, and that none that takes something away does it unless the name was typed.
func TestActions(t *testing.T) {
	m := newMember(t)
	b := open(t, m, true)
	key, end := base64.RawURLEncoding.EncodeToString([]byte("/registry/pods/")), base64.RawURLEncoding.EncodeToString([]byte("/registry/pods0"))
	has := func(user, role string) func() bool { return func() bool { return m.state.HasRole(user, role) } }
	user := func(name string) func() bool { return func() bool { _, ok := m.state.User(name); return ok } }
	permits := func(role, key, end string) func() bool {
		return func() bool {
			r, ok := m.state.Role(role)
			for i := range r.Permissions {
				if p := &r.Permissions[i]; ok && string(p.Key) == key && string(p.End) == end {
					return true
				}
			}
			return false
		}
	}
	for _, row := range []struct {
		action, form string
		fact         func() bool
		is           bool
	}{
		{"add-user", "user=carol&password=pw&again=pw", user("carol"), true},
		{"add-user", "user=dave&without=yes", user("dave"), true},
		{"grant-role", "user=carol&role=pods", has("carol", "pods"), true},
		{"revoke-role", "user=carol&role=pods&typed=carol", has("carol", "pods"), false},
		{"add-role", "role=all", func() bool { _, ok := m.state.Role("all"); return ok }, true},
		{"grant-permission", "role=all&access=readwrite&kind=all", permits("all", "\x00", "\x00"), true},
		{"grant-permission", "role=all&access=read&kind=prefix&key=/a/", permits("all", "/a/", "/a0"), true},
		{"grant-permission", "role=all&access=write&kind=key&key=%22%5Cxff%22", permits("all", "\xff", ""), true},
		{"grant-permission", "role=all&access=write&kind=from&key=/z", permits("all", "/z", "\x00"), true},
		{"grant-permission", "role=all&access=write&kind=range&key=/b&end=/c", permits("all", "/b", "/c"), true},
		{"revoke-permission", "role=pods&key=" + key + "&end=" + end + "&typed=pods", permits("pods", "/registry/pods/", "/registry/pods0"), false},
		{"delete-role", "role=pods&typed=pods", has("alice", "pods"), false},
		{"delete-user", "user=carol&typed=carol", user("carol"), false},
	} {
		form, _ := url.ParseQuery(row.form)
		if form.Has("typed") {
			right := form.Get("typed")
			for _, wrong := range []string{"", "other"} {
				form.Set("typed", wrong)
				if code, _, page := b.post("/users/"+row.action, form); code != 409 || row.fact() == row.is {
					t.Errorf("%s with %q typed: %d, %.500s", row.action, wrong, code, page)
				}
			}
			form.Set("typed", right)
		}
		if code, to, page := b.post("/users/"+row.action, form); code != 303 || to != "/users" || row.fact() != row.is {
			t.Errorf("%s %s: %d to %s, %.1500s", row.action, row.form, code, to, page)
		}
	}
}

// Ensure that bad forms say what is wrong, and change nothing.
func TestActions_bad(t *testing.T) {
	m := newMember(t)
	b := open(t, m, true)
	for _, row := range []struct{ action, form, want string }{
		{"add-user", "password=pw&again=pw", "The name of the user is missing"},
		{"add-user", "user=carol&password=secret1&again=secret2", "The two passwords differ"},
		{"add-user", "user=carol", "No password was typed"},
		{"add-user", "user=alice&password=pw&again=pw", "the user exists"},
		{"set-password", "user=alice&typed=alice&password=&again=", "No password was typed"},
		{"add-role", "", "The name of the role is missing"},
		{"add-role", "role=pods", "the role exists"},
		{"grant-role", "user=alice", "The name of the role is missing"},
		{"grant-role", "user=alice&role=nothing", "role name not found"},
		{"grant-permission", "role=pods&access=all&kind=all", "Choose read, write, or both"},
		{"grant-permission", "role=pods&access=read&kind=key", "No key is empty"},
		{"grant-permission", "role=pods&access=read&kind=range&key=b&end=a", "The range has no key"},
		{"grant-permission", "role=nothing&access=read&kind=all", "role name not found"},
		{"revoke-permission", "role=pods&typed=pods&key=%21", "does not say which permission"},
		{"delete-user", "user=root&typed=root", "root may not lose"},
		{"delete-user", "user=&typed=", "user name not found"},
	} {
		form, _ := url.ParseQuery(row.form)
		before := m.state
		code, _, page := b.post("/users/"+row.action, form)
		if code != 409 || m.state != before {
			t.Errorf("%s %s: %d, changed %v", row.action, row.form, code, m.state != before)
		}
		wantAll(t, page, row.want)
		wantNone(t, page, "secret1", "secret2")
	}
	m.by = "alice"
	if code, _, page := b.post("/users/delete-user", url.Values{"user": {"bob"}, "typed": {"bob"}}); code != 409 ||
		!strings.Contains(page, "Not permitted") {
		t.Errorf("a user who is not root: %d", code)
	}
}

// Ensure that a password reaches the service, and no page, no address, no log and no command line.
func TestActions_passwords(t *testing.T) {
	m := newMember(t)
	b := open(t, m, true)
	const secret = "correct horse battery"
	pages := ""
	for _, action := range []string{"add-user", "set-password"} {
		m.password = ""
		code, to, page := b.post("/users/"+action, url.Values{"user": {"carol"}, "typed": {"carol"}, "password": {secret}, "again": {secret}})
		if code != 303 || m.password != secret {
			t.Errorf("%s: %d, %q", action, code, m.password)
		}
		pages += to + page + b.get("/users/change?do="+action+"&user=carol")
	}
	_, _, page := b.post("/users/add-user", url.Values{"user": {"carol"}, "password": {secret}, "again": {secret}}) // it exists
	pages += page + b.get("/users") + b.logged.String()
	wantNone(t, pages, secret, url.QueryEscape(secret))
	wantAll(t, pages, "quorate user passwd carol", "changed by the console")
}

// Ensure that nothing is served that changes, unless the console administers.
func TestActions_readOnly(t *testing.T) {
	m := newMember(t)
	b := open(t, m, false)
	before := m.state
	for _, action := range []string{"add-user", "add-role", "grant-role", "grant-permission", "set-password", "delete-user", "delete-role",
		"revoke-role", "revoke-permission"} {
		if code, _, _ := b.post("/users/"+action, url.Values{"user": {"alice"}, "role": {"pods"}, "typed": {"alice"}}); code != 403 {
			t.Errorf("%s: %d", action, code)
		}
	}
	if m.state != before {
		t.Error("something changed")
	}
	wantNone(t, b.get("/users/change?do=delete-user&user=alice"), `method="post"`)
}

// Ensure that the page before an action says what is lost, and how to do it by a command.
func TestConfirm(t *testing.T) {
	m := newMember(t)
	b := open(t, m, true)
	pack := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	for _, row := range []struct{ query, want, command string }{
		{"do=delete-user&user=alice", "It has the roles pods", "quorate user delete alice"},
		{"do=revoke-role&user=alice&role=pods", "It may not read and write keys that begin with /registry/pods/ any more", "quorate user revoke-role alice pods"},
		{"do=delete-role&role=pods", "These users lose it: alice.", "quorate role delete pods"},
		{"do=delete-role&role=events", "No user has it.", "quorate role delete events"},
		{"do=revoke-permission&role=pods&key=" + pack("/registry/pods/") + "&end=" + pack("/registry/pods0"), "Users with this role may not",
			"quorate role revoke-permission pods /registry/pods/ --prefix"},
		{"do=set-password&user=alice", "The former password stops working", "quorate user passwd alice"},
		{"do=delete-user&user=gone", "There is no user gone", ""},
		{"do=delete-role&role=gone", "There is no role gone", ""},
		{"do=revoke-role&user=bob&role=pods", "does not have the role pods", ""},
		{"do=revoke-permission&role=pods&key=!&end=", "does not have this permission", ""},
		{"do=revoke-permission&role=pods&key=" + pack("/x"), "does not have this permission", ""},
		{"do=unheard", "This page is reached from the page of users", ""},
		{"", "This page is reached from the page of users", ""},
	} {
		page := b.get("/users/change?" + row.query)
		wantAll(t, page, row.want, row.command)
		if offers := strings.Contains(page, `method="post" action="/users/`); offers != (row.command != "") {
			t.Errorf("%s: a form: %v", row.query, offers)
		}
	}
}
