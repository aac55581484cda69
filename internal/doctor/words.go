package doctor

import (
	"fmt"
	"strings"
)

// cures that several findings have
const (
	cureStatus = "quorate status"
	cureList   = "quorate member list"
	cureLimits = "quorate limit list"
	cureLog    = "journalctl --grep 'garbage stays on disk'"
)

// span writes milliseconds in the unit that people think in.
func span(ms int64) string {
	switch {
	case ms < 0:
		return "-" + span(-ms)
	case ms < 1000:
		return fmt.Sprintf("%d ms", ms)
	case ms < 10_000:
		return fmt.Sprintf("%.1f s", float64(ms)/1000)
	case ms < 2*60_000:
		return fmt.Sprintf("%d s", ms/1000)
	case ms < 2*3600_000:
		return fmt.Sprintf("%d minutes", ms/60_000)
	case ms < 48*3600_000:
		return fmt.Sprintf("%d hours", ms/3600_000)
	}
	return fmt.Sprintf("%d days", ms/(24*3600_000))
}

// micros writes microseconds.
func micros(us int64) string {
	if us < 10_000 {
		return fmt.Sprintf("%.1f ms", float64(us)/1000)
	}
	return span(us / 1000)
}

// size writes bytes.
func size(bytes int64) string {
	switch {
	case bytes < 1<<10:
		return fmt.Sprintf("%d bytes", bytes)
	case bytes < 1<<20:
		return fmt.Sprintf("%d KiB", bytes>>10)
	case bytes < 10<<30:
		return fmt.Sprintf("%d MiB", bytes>>20)
	}
	return fmt.Sprintf("%d GiB", bytes>>30)
}

// list joins names as a sentence does: a, b and c.
func list(names []string) string {
	switch n := len(names); n {
	case 0:
		return "no member"
	case 1:
		return names[0]
	default:
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
}

// percent is the share of a part, rounded down.
func percent(part, whole int64) int64 {
	if whole <= 0 {
		return 0
	}
	return part * 100 / whole
}

// lastingMS is how long so many entries took to commit, if so many committed within the window.
func lastingMS(entries uint64, window int64, committed uint64) int64 {
	return int64(min(float64(entries)/float64(max(committed, 1))*float64(window), mostNumber))
}
