package progress

import (
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
)

var units = []string{"B", "KiB", "MiB", "GiB", "TiB"}

// scale returns the unit in which n reads best, and its size.
func scale(n int64) (unit string, size float64) {
	size = 1
	at := 0
	for float64(n)/size >= 1024 && at < len(units)-1 {
		size *= 1024
		at++
	}
	return units[at], size
}

// quantity writes a number with as many digits as help.
func quantity(f float64, unit string) string {
	if unit == units[0] || f >= 100 {
		return fmt.Sprintf("%.0f", f)
	}
	return fmt.Sprintf("%.1f", f)
}

// Size writes a number of bytes.
func Size(n int64) string {
	unit, size := scale(n)
	return quantity(float64(n)/size, unit) + " " + unit
}

// part writes how much of a whole there is, in the unit of the whole: 2.2/3.1 GiB.
func part(n, whole int64) string {
	unit, size := scale(whole)
	return quantity(float64(n)/size, unit) + "/" + quantity(float64(whole)/size, unit) + " " + unit
}

// Duration writes how long something takes, with two units at most: 340 ms, 12 s, 7m12s, 3h05m, 2d04h.
func Duration(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", max(d.Milliseconds(), 0))
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
	}
}

// Bar draws a fraction, between 0 and 1, width cells wide, and says it in percent. It is full only when all is there.
func Bar(fraction float64, width int) string {
	fraction = min(max(fraction, 0), 1)
	filled := int(fraction * float64(width))
	return strings.Repeat("█", filled) + strings.Repeat("░", width-filled) + fmt.Sprintf(" %3d %%", int(fraction*100))
}

// Name is how people call a member: by its name, else by its id.
func Name(m *quoratepb.Member) string {
	if m.GetName() != "" {
		return m.GetName()
	}
	return fmt.Sprintf("%x", m.GetId())
}
