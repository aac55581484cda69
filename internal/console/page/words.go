package page

import (
	"fmt"
	"html/template"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/base/printable"
)

// mostText is how many characters of a text that another process said are shown.
const mostText = 4096

// Words are the functions of all templates.
var Words = template.FuncMap{
	"bytes":   Bytes,
	"count":   func(n any) string { return Count(whole(n)) },
	"plural":  func(n any, one string, more ...string) string { return plural.Of(whole(n), one, more...) },
	"micros":  func(n any) string { return Duration(time.Duration(whole(n)) * time.Microsecond) },
	"millis":  func(n any) string { return Duration(time.Duration(whole(n)) * time.Millisecond) },
	"moment":  func(n any) string { return Moment(whole(n)) },
	"hex":     func(n uint64) string { return strconv.FormatUint(n, 16) },
	"hexid":   func(n int64) string { return strconv.FormatUint(uint64(n), 16) },
	"percent": func(share float64) string { return Percent(share) },
	"text":    Text,
	"name":    Name,
	"join":    strings.Join,
}

// Text is a text of another process without what a reader must not be shown: controls and marks of direction.
func Text(text string) string { return printable.Text(text, mostText) }

// mostName is how many bytes of a name, or a key, are shown.
const mostName = 200

// Name is a name, or a key, as it is; in quotes if a reader could not tell it from another, or where it ends. A long one is
// cut.
func Name(text string) string {
	cut := text[:min(len(text), mostName)]
	for len(cut) < len(text) && len(cut) > 0 && !utf8.RuneStart(text[len(cut)]) {
		cut = cut[:len(cut)-1]
	}
	odd := func(r rune) bool { return r == utf8.RuneError || r == '"' || unicode.IsSpace(r) || !unicode.IsPrint(r) }
	whole := len(cut) == len(text)
	if text == "" || strings.ContainsFunc(cut, odd) {
		cut = strconv.Quote(cut)
	}
	if !whole {
		cut += "… (" + plural.Of(len(text), "byte") + ")"
	}
	return cut
}

// whole is a number of a template as an int64.
func whole(n any) int64 {
	switch n := n.(type) {
	case int:
		return int64(n)
	case int32:
		return int64(n)
	case int64:
		return n
	case uint32:
		return int64(n)
	case uint64:
		return int64(n)
	case float64:
		return int64(n)
	}
	return 0
}

// Bytes is a size with a unit of 1024, to three digits.
func Bytes(n any) string {
	size, units := float64(whole(n)), []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	at := 0
	for size >= 1000 && at < len(units)-1 {
		size, at = size/1024, at+1
	}
	if at == 0 {
		return fmt.Sprintf("%d B", whole(n))
	}
	return threeDigits(size) + " " + units[at]
}

// Count is a number with thin spaces between groups of three digits.
func Count(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "−", digits[1:]
	}
	var groups []string
	for len(digits) > 3 {
		groups = append([]string{digits[len(digits)-3:]}, groups...)
		digits = digits[:len(digits)-3]
	}
	return sign + strings.Join(append([]string{digits}, groups...), "\u2009")
}

// Duration is a duration to three digits in one unit, or, from a minute on, in the two largest.
func Duration(d time.Duration) string {
	switch {
	case d < 0:
		return "−" + Duration(-d)
	case d == 0:
		return "0"
	case d < time.Microsecond:
		return fmt.Sprintf("%d ns", d.Nanoseconds())
	case d < time.Millisecond:
		return threeDigits(float64(d)/float64(time.Microsecond)) + " µs"
	case d < time.Second:
		return threeDigits(float64(d)/float64(time.Millisecond)) + " ms"
	case d < time.Minute:
		return threeDigits(d.Seconds()) + " s"
	case d < time.Hour:
		return two(d, time.Minute, "min", time.Second, "s")
	case d < 48*time.Hour:
		return two(d, time.Hour, "h", time.Minute, "min")
	}
	return two(d, 24*time.Hour, "days", time.Hour, "h")
}

// Seconds is a duration in whole seconds, for what goes on.
func Seconds(d time.Duration) string {
	if d = d.Round(time.Second); d >= 0 && d < time.Minute {
		return strconv.Itoa(int(d.Seconds())) + " s"
	}
	return Duration(d)
}

// PerSecond is a rate, to the precision that a reader compares by.
func PerSecond(n float64) string {
	switch {
	case n == 0:
		return "0"
	case n < 0.1:
		return "<0.1"
	case n < 9.95:
		return strconv.FormatFloat(n, 'f', 1, 64)
	}
	return Count(int64(min(n, 1<<60) + 0.5))
}

func two(d, large time.Duration, one string, small time.Duration, other string) string {
	if rest := d % large / small; rest > 0 {
		return fmt.Sprintf("%d %s %d %s", d/large, one, rest, other)
	}
	return fmt.Sprintf("%d %s", d/large, one)
}

func threeDigits(n float64) string {
	switch {
	case n >= 100:
		return strconv.FormatFloat(n, 'f', 0, 64)
	case n >= 10:
		return strconv.FormatFloat(n, 'f', 1, 64)
	}
	return strconv.FormatFloat(n, 'f', 2, 64)
}

// Percent is a share in hundredths.
func Percent(share float64) string {
	if share > 0 && share < 0.01 {
		return "<1 %"
	}
	return fmt.Sprintf("%.0f %%", 100*share)
}

// Moment is a Unix time in milliseconds as the reader of a log expects it: UTC, to the second; empty: zero.
func Moment(ms int64) string {
	if ms == 0 {
		return ""
	}
	return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05Z")
}
