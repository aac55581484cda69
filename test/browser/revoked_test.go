package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// Ensure that a user whose permission is revoked while a page is open sees no more of it, neither there nor when the page is loaded
// again, and that one whose user is gone is asked to log in.
func TestPages_revoked(t *testing.T) {
	browser, c := open(t), start(t)
	c.quorate("", "put", "/team/a", "1")
	for _, step := range [][]string{
		{"role", "add", "root"}, {"user", "add", "root:p"}, {"user", "grant-role", "root", "root"},
		{"role", "add", "team"}, {"role", "grant-permission", "team", "--prefix=true", "read", "/team/"},
		{"user", "add", "ann:p"}, {"user", "grant-role", "ann", "team"}, {"auth", "enable"},
	} {
		c.quorate("", append([]string{"etcdctl"}, step...)...)
	}
	root := []string{"etcdctl", "--user=root:p"}
	b := newTab(t, browser, looks[0])
	watched := "http://" + c.members[0].console + "/keys/watch?prefix=%2Fteam%2F&from=1"
	b.visit(watched)
	b.run(chromedp.WaitVisible("#name"), chromedp.SendKeys("#name", "ann"), chromedp.SendKeys("#password", "p"),
		chromedp.Click("form button"), chromedp.WaitVisible("nav"))
	if at := eval[string](b, `location.pathname + location.search`); at != "/keys/watch?prefix=%2Fteam%2F&from=1" {
		t.Fatalf("after the login the browser is at %s", at)
	}
	c.quorate("", append(root, "put", "/team/b", "seen")...)
	until(t, "the change is seen", func() bool { return strings.Contains(b.text("main"), "/team/b") })
	c.quorate("", append(root, "user", "revoke-role", "ann", "team")...)
	c.quorate("", append(root, "put", "/team/c", "secret")...)
	until(t, "the open page says that it may not be seen", func() bool {
		return strings.Contains(b.text("main"), "Not permitted") || strings.Contains(b.text("main"), "permission denied")
	})
	if text := b.text("main"); strings.Contains(text, "/team/") && strings.Contains(text, "seen") {
		t.Errorf("the open page still shows %s", text)
	}
	b.visit(watched)
	if text := b.text("main"); strings.Contains(text, "/team/c") || strings.Contains(text, "secret") {
		t.Errorf("the page that is loaded again shows %s", text)
	}
	c.quorate("", append(root, "user", "delete", "ann")...)
	until(t, "a login is asked for", func() bool {
		b.run(chromedp.Navigate(watched))
		return strings.Contains(eval[string](b, `location.pathname`), "/login")
	})
	b.calm("revoked")
}
