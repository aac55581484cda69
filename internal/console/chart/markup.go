package chart

import (
	"fmt"
	"html/template"
	"math"
	"strings"
)

// mostSeries is how many lines, or parts, have a colour and a pattern of their own.
const mostSeries = 7

// largest is as what a larger value is drawn.
const largest = 1e15

func known(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

func beginTable(out *strings.Builder, title string) {
	fmt.Fprintf(out, `<details><summary>Numbers</summary><div class="scroll"><table><thead><tr><th scope="col">%s</th>`,
		escape(title))
}

func number(v float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.1f", v), "0"), ".")
}

func escape(text string) string { return template.HTMLEscapeString(text) }
