package keep_test

import (
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/backup/keep"
)

const day = 24 * time.Hour

// Ensure that rules are read as they are meant, and written as they are read.
func TestParse(t *testing.T) {
	for text, want := range map[string]struct {
		rule           keep.Rule
		word, sentence string
	}{
		"":    {keep.Rule{}, "all", "all is kept: nothing is ever removed"},
		"all": {keep.Rule{}, "all", "all is kept: nothing is ever removed"},
		"14d": {keep.Rule{Window: 14 * day}, "14d", "any moment of the last 14 days can be restored"},
		"2w":  {keep.Rule{Window: 14 * day}, "14d", "any moment of the last 14 days can be restored"},
		"1h":  {keep.Rule{Window: time.Hour}, "1h", "any moment of the last hour can be restored"},
		"48h,daily:30,weekly:12,monthly:12": {keep.Rule{Window: 2 * day, Daily: 30, Weekly: 12, Monthly: 12},
			"2d,daily:30,weekly:12,monthly:12", "any moment of the last 2 days can be restored; the last base of each of 30 days; " +
				"the last base of each of 12 weeks; the last base of each of 12 months"},
		"30h,yearly:1": {keep.Rule{Window: 30 * time.Hour, Yearly: 1}, "30h,yearly:1",
			"any moment of the last 30 hours can be restored; the last base of each of 1 year"},
	} {
		got, err := keep.Parse(text)
		if err != nil || got != want.rule || got.String() != want.word || got.Sentence() != want.sentence {
			t.Errorf("%s: %+v, %v, %q, %q", text, got, err, got.String(), got.Sentence())
		}
		if again, err := keep.Parse(got.String()); err != nil || again != got {
			t.Errorf("%s: again %+v, %v", text, again, err)
		}
	}
}

// Ensure that a rule that makes no sense is refused by a sentence that says how rules are written.
func TestParse_wrong(t *testing.T) {
	for text, want := range map[string]string{
		"14": "no time of whole hours", "d": "no time", "-1d": "no time", "+1d": "no time", "1.5d": "no time", "14D": "no time",
		"0h": "1 hour to 100 years", "30m": "no time", "40000d": "1 hour to 100 years", "99999999999999999999d": "no time",
		"daily:30": "begins with", "14d,30": "none of daily:N", "14d,": "none of daily:N", "14d,hourly:2": "none of daily:N",
		"14d,daily:0": "from 1 to", "14d,daily:x": "from 1 to", "14d,daily:-1": "from 1 to", "14d,daily:10001": "from 1 to",
		"14d,daily:1,daily:2": "twice", "14d, daily:1": "none of", "14d;daily:1": "begins with", "ALL": "no time", "all,daily:1": "no time",
	} {
		if got, err := keep.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v; want %q", text, got, err, want)
		}
	}
}

// Whatever a text is: Parse ends, and a rule that it takes is written as it is read.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"14d", "48h,daily:30,weekly:12,monthly:12,yearly:3", "all", "1w,daily:", ":", ","} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := keep.Parse(text)
		if err != nil {
			return
		}
		if again, err := keep.Parse(r.String()); err != nil || again != r {
			t.Fatalf("%q is %+v, and %q is %+v, %v", text, r, r.String(), again, err)
		}
	})
}
