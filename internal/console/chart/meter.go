package chart

import (
	"fmt"
	"html/template"
)

// The shares of a limit from which on it is worth a look, and from which on it is nearly reached.
const (
	worthALook = 0.75
	Nearly     = 0.9
)

// Fullness is the class of the colour of a share of a limit; empty: there is room.
func Fullness(share float64) string {
	switch {
	case share >= Nearly:
		return "bad"
	case share >= worthALook:
		return "warn"
	}
	return ""
}

// Meter draws a share of a limit, from 0 to 1, as a bar that is filled so far. title says it in words.
func Meter(title string, share float64) template.HTML { return meter(title, share, Fullness(share)) }

// Progress draws a share of which more is better, as Meter does.
func Progress(title string, share float64) template.HTML { return meter(title, share, "") }

func meter(title string, share float64, look string) template.HTML {
	share = min(max(share, 0), 1)
	if share != share { // NaN: nothing is known
		share = 0
	}
	return template.HTML(fmt.Sprintf(
		`<svg class="meter %s" viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label="%s">`+
			`<rect class="track" width="100" height="6"/><rect class="filled" width="%s" height="6"/></svg>`,
		look, escape(title), number(100*share))) // #nosec: the title is escaped
}
