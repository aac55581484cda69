package keep

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/base/plural"
)

// Rule says what is kept. The zero value keeps all.
type Rule struct {
	// Window is the time for which any moment can be restored; zero: for ever, and the other fields are zero.
	Window time.Duration
	// Of so many of the last days (in UTC, weeks as in ISO 8601) that have a base the last base stays, without its log.
	Daily, Weekly, Monthly, Yearly int
}

// Bounds of a rule.
const (
	MinWindow = time.Hour
	MaxWindow = 100 * 365 * 24 * time.Hour
	MaxCount  = 10_000
)

// All is the word for a rule that keeps all.
const All = "all"

const help = "write how long any moment can be restored, such as 14d or 48h, and perhaps older bases after it: " +
	"48h,daily:30,weekly:12,monthly:12,yearly:5; or \"all\""

// units are those of a window.
var units = []struct {
	letter string
	is     time.Duration
}{{"w", 7 * 24 * time.Hour}, {"d", 24 * time.Hour}, {"h", time.Hour}}

// count is one of the fields that count bases.
type count struct {
	name, unit string
	is         *int
}

func (r *Rule) counts() []count {
	return []count{{"daily", "day", &r.Daily}, {"weekly", "week", &r.Weekly}, {"monthly", "month", &r.Monthly},
		{"yearly", "year", &r.Yearly}}
}

// Parse reads a rule. Empty is All. The error says how a rule is written.
func Parse(text string) (r Rule, err error) {
	if text == "" || text == All {
		return Rule{}, nil
	}
	for i, word := range strings.Split(text, ",") {
		name, number, counts := strings.Cut(word, ":")
		switch {
		case i == 0 && counts:
			return Rule{}, fmt.Errorf("%q begins with %q, and not with a time: %s", text, word, help)
		case i == 0:
			r.Window, err = parseWindow(word)
		default:
			err = r.parseCount(name, number, counts)
		}
		if err != nil {
			return Rule{}, fmt.Errorf("%q: %w", text, err)
		}
	}
	return r, nil
}

func parseWindow(word string) (time.Duration, error) {
	for _, u := range units {
		digits, found := strings.CutSuffix(word, u.letter)
		if !found {
			continue
		}
		n, err := strconv.ParseInt(digits, 10, 32)
		if err != nil || digits[0] == '+' || digits[0] == '-' {
			break
		}
		if n < int64(MinWindow/u.is) || n > int64(MaxWindow/u.is) || time.Duration(n)*u.is < MinWindow {
			return 0, fmt.Errorf("%q: any moment can be kept for 1 hour to 100 years", word)
		}
		return time.Duration(n) * u.is, nil
	}
	return 0, fmt.Errorf("%q is no time of whole hours (h), days (d) or weeks (w): %s", word, help)
}

func (r *Rule) parseCount(name, number string, counts bool) error {
	for _, c := range r.counts() {
		if !counts || c.name != name {
			continue
		}
		n, err := strconv.ParseUint(number, 10, 32)
		if err != nil || n < 1 || n > MaxCount {
			return fmt.Errorf("%q: choose a number from 1 to %d", name+":"+number, MaxCount)
		}
		if *c.is != 0 {
			return fmt.Errorf("%q is there twice", name)
		}
		*c.is = int(n)
		return nil
	}
	return fmt.Errorf("%q is none of daily:N, weekly:N, monthly:N, yearly:N: %s", name, help)
}

// String writes a rule as Parse reads it.
func (r Rule) String() string {
	if r.Window == 0 {
		return All
	}
	text := fmt.Sprint(int64(r.Window/time.Hour), "h")
	if day := 24 * time.Hour; r.Window%day == 0 {
		text = fmt.Sprint(int64(r.Window/day), "d")
	}
	for _, c := range r.counts() {
		if *c.is > 0 {
			text += fmt.Sprintf(",%s:%d", c.name, *c.is)
		}
	}
	return text
}

// Sentence says what a rule means.
func (r Rule) Sentence() string {
	if r.Window == 0 {
		return "all is kept: nothing is ever removed"
	}
	text := "any moment of the last " + span(r.Window) + " can be restored"
	for _, c := range r.counts() {
		if *c.is > 0 {
			text += "; the last base of each of " + plural.Of(*c.is, c.unit)
		}
	}
	return text
}

// span writes a window in days, or in hours if it has no whole days.
func span(d time.Duration) string {
	n, unit := int64(d/time.Hour), "hour"
	if d%(24*time.Hour) == 0 {
		n, unit = n/24, "day"
	}
	if n == 1 {
		return unit
	}
	return fmt.Sprint(n, " ", unit, "s")
}
