package config

import (
	"errors"
	"fmt"
	"strings"
)

// Answers of Load that are requests rather than failures.
var (
	ErrHelp    = errors.New("config: help requested")
	ErrVersion = errors.New("config: version requested")
)

// UsageError is a command line that cannot be read at all: an unknown flag, a missing or malformed value. Programs
// end with status 2 for it, as etcd does.
type UsageError struct{ Reason string }

func (e *UsageError) Error() string { return e.Reason }

// Faults are all reasons why a configuration cannot work, in the order in which they were found. Programs end with
// status 2 for it, too.
type Faults []string

func (f Faults) Error() string {
	if len(f) == 1 {
		return f[0]
	}
	var text strings.Builder
	text.WriteString("the configuration has " + countWord(len(f)) + " faults:")
	for i, fault := range f {
		fmt.Fprintf(&text, " (%d) %s", i+1, fault)
	}
	return text.String()
}

func countWord(n int) string {
	words := []string{"no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"}
	if n < len(words) {
		return words[n]
	}
	return "many"
}

// err returns the faults as an error, nil if there are none.
func (f Faults) err() error {
	if len(f) == 0 {
		return nil
	}
	return f
}
