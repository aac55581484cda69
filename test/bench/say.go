package main

import (
	"fmt"
	"os"
	"time"
)

// say tells the user what is done now.
func say(what, server string) {
	fmt.Fprintf(os.Stderr, "%s %s: %s\n", time.Now().Format(time.TimeOnly), what, server)
}

// rounded keeps four digits, which is more than the figures are worth.
func rounded(v float64) float64 {
	var out float64
	if _, err := fmt.Sscan(fmt.Sprintf("%.4g", v), &out); err != nil {
		return 0
	}
	return out
}
