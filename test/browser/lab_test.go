package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// Ensure that the laboratory of the console plays a story with its rule and without, that a link leads to the same moment, and that
// its policy lets it.
func TestLab(t *testing.T) {
	browser, c := open(t), start(t)
	lab := "http://" + c.members[0].console + "/lab/"
	b := newTab(t, browser, looks[0])
	b.visit(lab)
	if strings.Contains(b.text("main"), "has no laboratory") {
		t.Skip("this build has no laboratory: `make lab` puts it there")
	}
	b.run(chromedp.WaitVisible("#events > *"))
	stories := eval[[]string](b, `[...document.querySelectorAll("[id^=story-]")].map((e) => e.id)`)
	if len(stories) < 10 {
		t.Fatalf("only the stories %q", stories)
	}
	first, said := b.text("#events"), ""
	eval[int](b, `document.getElementById("drop-rule").click(), 0`)
	until(t, "another run", func() bool { said = b.text("#events"); return said != "" && said != first })
	b.run(chromedp.Click("#step"))
	link := eval[string](b, `location.href`)
	b.run(chromedp.Navigate("about:blank"))
	b.visit(link)
	b.run(chromedp.WaitVisible("#events > *"))
	if again := b.text("#events"); again != said {
		t.Errorf("the link %s shows %.200q, not %.200q", link, again, said)
	}
	if text := b.text("#error"); text != "" {
		t.Errorf("the laboratory says %s", text)
	}
	b.calm("the laboratory")
}
