package browser

import (
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// Ensure that a browser keeps all bytes of a value that its form shows, and that a key with any bytes is found by the name that is
// typed.
func TestKeys_edit(t *testing.T) {
	browser, c := open(t), start(t)
	console := "http://" + c.members[0].console
	for _, as := range []look{looks[0], {"without scripts", 1280, false, false}} {
		b := newTab(t, browser, as)
		for name, value := range map[string]string{
			"lines": "\n\na\n  b\t\n\n", "returns": "a\r\n\r\nb\r\n", "markup": "</textarea><script>alert(1)</script>&amp;&lt;", "no end": "a",
			"characters": "größer \u202e\u200b\ufeff שלום \u2028 \u00a0", `"quoted"`: `"`,
		} {
			c.quorate(value, "put", name)
			typed := name
			if strings.HasPrefix(name, `"`) {
				typed = `"\"quoted\""`
			}
			b.visit(console + "/keys/edit?key=" + url.QueryEscape(typed))
			b.run(chromedp.Click("form[action='/keys/edit'] button"), chromedp.WaitVisible("[role=status].said, .fault"))
			if text := b.text(".said") + b.text(".fault"); !strings.Contains(text, "nothing was written") {
				t.Errorf("%s, %s: %s", as.name, name, text)
			}
		}
		b.calm("forms")
	}
}

// Ensure that changes and the time that leases have left come by themselves, and values do not.
func TestKeys_live(t *testing.T) {
	browser, c := open(t), start(t)
	console := "http://" + c.members[0].console
	b := newTab(t, browser, looks[0])
	c.quorate("before", "put", "/live/key")
	b.visit(console + "/keys/watch?prefix=%2Flive%2F&from=1")
	c.quorate("after", "put", "/live/key")
	until(t, "the change is shown", func() bool { return strings.Contains(b.text("#watch-events"), "after") })
	id := strings.Fields(c.quorate("", "lease", "grant", "1000"))[0]
	b.visit(console + "/keys/lease?id=" + id)
	left := b.text("#lease-ttl")
	until(t, "the lease counts down", func() bool { now := b.text("#lease-ttl"); return now != left && strings.Contains(now, "min") })
	b.calm("live pages")
}
