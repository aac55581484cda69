package diary

import (
	"runtime/debug"
	"strings"
)

// Stack returns the calls of this program on the present stack, innermost first, at most twelve.
func Stack() string {
	lines := strings.Split(string(debug.Stack()), "\n")
	var calls []string
	for _, line := range lines {
		if strings.HasPrefix(line, "\t") && strings.Contains(line, "/internal/") && len(calls) < 12 {
			calls = append(calls, strings.TrimSpace(line))
		}
	}
	return strings.Join(calls, "\n")
}
