package ranking

import (
	"fmt"
	"math"
	"strconv"

	"github.com/quorate/quorate/internal/base/plural"
)

// Notes say how far the numbers may be wrong where so many rows are shown, a sentence each. size writes bytes.
func (s *Summary) Notes(v View, rows int, size func(float64) string) []string {
	var out []string
	if s.OneOf > 1 {
		out = append(out, fmt.Sprintf("Of %d small calls one is counted, as %[1]d; of large ones each: %s.", s.OneOf,
			s.sampleError()))
	}
	if s.Watchers > 1 {
		out = append(out, fmt.Sprintf("Of %d watchers one is counted, as %[1]d.", s.Watchers))
	}
	if left, most := s.Beyond(v, rows); left > 0 {
		out = append(out, fmt.Sprintf("%s; each has at most %s, and so has what is in none.", plural.Of(left, "more row"),
			v.amount(most, size)))
	} else if most > 0 {
		out = append(out, fmt.Sprintf("What is in no row has at most %s each.", v.amount(most, size)))
	}
	return out
}

// sampleError says by how much the first row may be wrong since it is a sample: twice the standard deviation.
func (s *Summary) sampleError() string {
	if len(s.Rows) == 0 || s.Rows[0].Operations == 0 {
		return "few calls are none"
	}
	samples := s.Rows[0].Operations * s.Covers.Seconds() / float64(s.OneOf)
	return fmt.Sprintf("the first row is right within %.0f %%, mostly", min(100, math.Ceil(200/math.Sqrt(max(samples, 1)))))
}

// amount writes a number of what rows are ranked by.
func (v View) amount(n float64, size func(float64) string) string {
	switch v.By {
	case ByBytes:
		return size(n) + "/s"
	case ByProcessor:
		return Percent(n) + " CPU"
	case ByWatchers:
		return Whole(n) + " watchers"
	}
	return Number(n) + " ops/s"
}

// Number writes a number in at most six characters.
func Number(n float64) string {
	switch {
	case n < 9.95 && n > 0:
		return strconv.FormatFloat(n, 'f', 1, 64)
	case n < 9999.5:
		return strconv.FormatFloat(n, 'f', 0, 64)
	}
	for _, unit := range []string{"k", "M", "G"} {
		if n /= 1000; n < 999.95 {
			return strconv.FormatFloat(n, 'f', 1, 64) + unit
		}
	}
	return strconv.FormatFloat(n/1000, 'f', 1, 64) + "T"
}

// Whole writes a number of things that are not in parts.
func Whole(n float64) string {
	if n < 9999.5 {
		return strconv.FormatFloat(n, 'f', 0, 64)
	}
	return Number(n)
}

// Percent writes a part of one: of all, or of a processor.
func Percent(n float64) string {
	switch n *= 100; {
	case n > 0 && n < 0.1:
		return "<0.1 %"
	case n > 0 && n < 9.95:
		return strconv.FormatFloat(n, 'f', 1, 64) + " %"
	}
	return Number(math.Round(n)) + " %"
}
