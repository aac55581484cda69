package browser

import (
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// paths are all pages: those of the navigation, and these, which other pages lead to.
func paths(b *tab, console string) (all []string) {
	b.t.Helper()
	b.visit(console + "/")
	all = eval[[]string](b, `[...document.querySelectorAll("nav a")].map((a) => a.getAttribute("href"))`)
	if len(all) == 0 {
		b.t.Fatal("the navigation leads nowhere")
	}
	return append(all, more...)
}

// more are pages that are not in the navigation.
var more = []string{
	"/members?member=m2", "/members?die=1", "/docs/membership.md", "/docs/performance.md", "/docs/?q=leader", "/users?of=root&key=x",
	"/users/change?do=delete-user&user=x",
	"/limits/set?name=tenant-a&keys=prefix&prefix=%2Fregistry%2F&quota-keys=9&writes=0", "/limits/delete?name=tenant-a",
	"/audit?call=put&key=x&by=ann&operation=put", "/audit/rule?do=add&level=request&op=put&users=ann&prefixes=%2Fx%2F",
	"/changes/plan", "/changes/plan?verb=change", "/changes/plan?verb=remove&member=m2", "/changes/plan?verb=cordon&member=m2",
	"/changes/plan?verb=add&name=m4&peer-urls=10.0.4.9", "/changes/replace", "/changes/replace?member=m2", "/changes/replace?member=m9",
	"/changes/replace?member=m2&name=m4&peer-urls=http://127.0.0.1:9", "/changes/job?id=9", "/changes/cancel?id=9",
	"/keys?prefix=%2Fregistry%2Fpods%2Fdefault%2F", "/keys?prefix=%2Fhostile%2F", podPage, "/keys/versions?key=" + pod, "/keys/deleted",
	"/keys/changes?prefix=%2Fgone%2F",
	"/keys/undelete?prefix=%2Fgone%2F", "/keys/watch?from=1", "/keys/leases", "/keys/new", "/keys/edit?key=" + pod, "/keys/delete?key=" + pod,
}

// pod is a key of fill.
const pod, podPage = "%2Fregistry%2Fpods%2Fdefault%2Fpod-00", "/keys/key?key=" + pod

// fill gives the cluster contents to look at.
func (c *cluster) fill() {
	c.t.Helper()
	for i := range 20 {
		c.quorate("", "put", fmt.Sprintf("/registry/pods/default/pod-%02d", i), fmt.Sprintf(`{"kind":"Pod","n":%d}`, i))
	}
	until(c.t, "the feature level is 2", func() bool { return strings.Contains(c.quorate("", "upgrade", "status"), "feature level 2 is active") })
	c.quorate(`{"rules": [{"level": "request", "prefixes": ["/registry/secrets/"], "keys": "hashed"},
		{"level": "none", "operations": ["range", "watch", "status"]}, {"level": "metadata"}]}`, "audit", "policy", "set", "-")
	c.quorate("", "limit", "set", "tenant-a", "--prefix", "/registry/", "--quota-keys", "24", "--quota-bytes", "64KiB")
	c.quorate("", "limit", "set", "batch", "--for-user", "batch", "--writes", "200", "--write-bytes", "4MiB")
	c.quorate("", "limit", "set", "orders", "--prefix", "/orders/", "--writes", "200")
	c.quorate("", "limit", "set", "small-values", "--prefix", "", "--value-bytes", "64KiB")
	c.quorate("", "put", "/gone/one", "v")
	c.quorate("", "del", "/gone/one")
	for _, hostile := range []string{
		`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, "\u202eevil", "javascript:alert(1)", "tab\tand\nline", "\x00\xff\xfe",
	} {
		c.quorate(hostile, "put", "--", "/hostile/"+strings.ReplaceAll(hostile, "\x00", "")+"/k")
	}
}

// Ensure that each page is whole: no error of its script, no report of its policy, nothing that reaches beyond a narrow screen,
// a name for each control, and nothing serious by axe-core.
func TestPages(t *testing.T) {
	browser, c := open(t), start(t)
	c.fill()
	console := "http://" + c.members[0].console
	all := paths(newTab(t, browser, looks[0]), console)
	for _, as := range looks {
		t.Run(as.name, func(t *testing.T) {
			b := newTab(t, browser, as)
			for _, path := range all {
				b.visit(console + path)
				b.whole(path)
				b.calm(path)
				b.audit(path)
			}
		})
	}
}

// whole checks what each page has.
func (b *tab) whole(path string) {
	b.t.Helper()
	fits := eval[struct {
		Title    string
		Headings int
		Wide     []string
		Faults   string
	}](b, `({
		Title: document.title,
		Headings: [...document.querySelectorAll("h1")].filter((e) => e.checkVisibility()).length,
		Wide: document.documentElement.scrollWidth > document.documentElement.clientWidth
			? [...document.querySelectorAll("main *")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1
				&& !e.closest(".scroll, pre, code, nav")).map((e) => e.tagName + "." + e.className + "#" + e.id).slice(0, 5).concat("page") : [],
		Faults: [...document.querySelectorAll(".fault")].map((e) => e.innerText).join("; "),
	})`)
	switch {
	case fits.Title == "" || fits.Headings != 1:
		b.t.Errorf("%s: the title is %q, and there are %d first headings", path, fits.Title, fits.Headings)
	case len(fits.Wide) > 0:
		b.t.Errorf("%s: wider than the screen: %v", path, fits.Wide)
	case fits.Faults != "":
		b.t.Errorf("%s: a section is missing: %s", path, fits.Faults)
	}
}

// audit runs axe-core, past the policy of the page, which forbids to bring a script.
func (b *tab) audit(path string) {
	b.t.Helper()
	axe := os.Getenv("QUORATE_AXE")
	if axe == "" {
		return
	}
	source, err := os.ReadFile(axe)
	if err != nil {
		b.t.Fatal(err)
	}
	type violation struct {
		ID, Impact, Help string
		Nodes            []string
	}
	call(b, page.SetBypassCSP, page.SetBypassCSPParams{Enabled: true})
	b.run(chromedp.Reload(), chromedp.WaitReady("main"))
	eval[int](b, string(source)+";0")
	found := eval[[]violation](b, `axe.run(document, {resultTypes: ["violations"]}).then((r) => r.violations
		.filter((v) => v.impact === "serious" || v.impact === "critical")
		.map((v) => ({ID: v.id, Impact: v.impact, Help: v.help, Nodes: v.nodes.slice(0, 3).map((n) => n.html.slice(0, 200))})))`)
	call(b, page.SetBypassCSP, page.SetBypassCSPParams{})
	for _, v := range found {
		b.t.Errorf("%s: axe-core: %s: %s (%s): %s", path, v.Impact, v.Help, v.ID, strings.Join(v.Nodes, " | "))
	}
	b.mu.Lock()
	b.faults = nil // those of the audit
	b.mu.Unlock()
}

// Ensure that the keyboard reaches every control, and that each has a name for those who do not see it.
func TestPages_keyboard(t *testing.T) {
	browser, c := open(t), start(t)
	c.fill()
	console := "http://" + c.members[0].console
	b := newTab(t, browser, looks[0])
	for _, path := range paths(b, console) {
		b.visit(console + path)
		b.named(path)
		b.walk(path)
	}
}

// named reads the tree that screen readers get.
func (b *tab) named(path string) {
	b.t.Helper()
	controls := map[string]bool{"button": true, "link": true, "textbox": true, "checkbox": true, "radio": true, "combobox": true,
		"searchbox": true, "listbox": true, "img": true, "image": true, "spinbutton": true}
	for _, n := range call(b, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{}).Nodes {
		if n.Ignored || n.Role == nil || n.Name == nil {
			continue
		}
		role, name := strings.Trim(string(n.Role.Value), `"`), strings.Trim(string(n.Name.Value), `"`)
		if controls[strings.ToLower(role)] && strings.TrimSpace(name) == "" {
			b.t.Errorf("%s: a %s has no name", path, role)
		}
	}
}

// walk presses Tab until the focus has come round, and compares where it was with all that can be used. Of tabs that arrow keys
// choose from, Tab reaches the chosen one. It reaches what scrolls, too, and sections come anew meanwhile: two rounds are pressed.
func (b *tab) walk(path string) {
	b.t.Helper()
	controls := eval[int](b, `{
		document.body.tabIndex = -1; document.body.focus(); document.body.removeAttribute("tabindex");
		window.controls = [...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary")]
			.filter((e) => e.checkVisibility() && !e.disabled && !(e.type === "radio" && !e.checked)
				&& !(e.role === "tab" && e.ariaSelected === "false"));
		window.reached = new Set();
		document.addEventListener("focusin", (e) => window.reached.add(e.target));
		window.controls.length;
	}`)
	for range 2*controls + 10 {
		for _, kind := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeKeyDown, input.DispatchKeyEventTypeKeyUp} {
			call(b, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: kind, Key: "Tab", Code: "Tab",
				WindowsVirtualKeyCode: 9})
		}
	}
	missed := eval[[]string](b, `window.controls.filter((e) => e.isConnected && !window.reached.has(e))
		.map((e) => e.outerHTML.slice(0, 120))`)
	if len(missed) > 0 {
		b.t.Errorf("%s: Tab reaches %d controls, and not %q", path, controls-len(missed), missed)
	}
}

// Ensure that all pages have their contents without scripts.
func TestPages_withoutScripts(t *testing.T) {
	browser, c := open(t), start(t)
	c.fill()
	console := "http://" + c.members[0].console
	all := paths(newTab(t, browser, looks[0]), console)
	b := newTab(t, browser, look{"without scripts", 1280, false, false})
	for _, path := range all {
		if strings.HasPrefix(path, "/lab/") {
			continue // it says that it needs them
		}
		b.visit(console + path)
		if text := b.text(".sections"); len(strings.TrimSpace(text)) < 20 {
			t.Errorf("%s: without scripts it says %q", path, text)
		}
		b.calm(path)
	}
}

// forms are where the forms of a page are sent.
const forms = `[...document.querySelectorAll("form[method=post]")].map((f) => f.getAttribute("action"))`

// Ensure that no form of the console that administers is served by one that reads, whatever sends it.
func TestPages_readOnly(t *testing.T) {
	browser, c := open(t), start(t)
	c.fill()
	admin, reads := "http://"+c.members[0].console, "http://"+c.members[1].console
	b := newTab(t, browser, looks[0])
	actions := map[string]bool{}
	for _, path := range paths(b, admin) {
		b.visit(admin + path)
		for _, action := range eval[[]string](b, forms) {
			actions[action] = true
		}
	}
	delete(actions, "/logout")
	delete(actions, "/login")
	for _, path := range paths(b, reads) {
		b.visit(reads + path)
		for _, action := range eval[[]string](b, forms) {
			if action != "/logout" {
				t.Errorf("%s has a form for %s", path, action)
			}
		}
	}
	b.calm("forms")
	// Members note times and heads of the audit by themselves: the places in the log do not count.
	places := regexp.MustCompile(`"(last_index|match)":"\d+"`)
	state := func() string {
		return places.ReplaceAllString(c.quorate("", "member", "list", "-o", "json"), "") + c.quorate("", "get", "--prefix", "")
	}
	before := state()
	for action := range actions {
		u, err := url.Parse(action)
		if err != nil {
			t.Fatal(err)
		}
		b.visit(reads + "/")
		status := eval[int](b, fmt.Sprintf(`fetch(%q, {method: "POST", body: new URLSearchParams({key: "k", confirm: "k"})})
			.then((r) => r.status)`, u.Path))
		if status != 403 && status != 404 && status != 405 {
			t.Errorf("%s on a console that reads: got %d", action, status)
		}
	}
	if after := state(); after != before {
		t.Errorf("a console that reads has changed something: before %s, after %s", before, after)
	}
}

// Ensure that pages say what is known, and when, after all members but one have died.
func TestPages_withoutLeader(t *testing.T) {
	browser, c := open(t), start(t)
	console := "http://" + c.members[0].console
	b := newTab(t, browser, looks[0])
	all := paths(b, console)
	for _, path := range all {
		b.visit(console + path)
	}
	b.calm("with a leader")
	c.kill(c.members[1])
	c.kill(c.members[2])
	for _, path := range all {
		b.visit(console + path)
		took := eval[float64](b, `performance.getEntriesByType("navigation")[0].responseEnd`)
		if took > 4000 {
			t.Errorf("%s took %v ms without a leader", path, took)
		}
		if text := b.text("main"); len(strings.TrimSpace(text)) < 20 {
			t.Errorf("%s says %q without a leader", path, text)
		}
		b.calm(path)
	}
}
