// Package plural says how many there are of something, in English: 1 alarm, 2 alarms, 3 entries.
package plural

import (
	"fmt"
	"strings"
)

// Number is any type that counts.
type Number interface {
	~int | ~int32 | ~int64 | ~uint | ~uint32 | ~uint64
}

// Of is a number with its noun. More is the form for several: see Word.
func Of[N Number](n N, one string, more ...string) string {
	return fmt.Sprintf("%d %s", n, Word(n, one, more...))
}

// Word is the noun, or the verb, that goes with a number. More is the form for several; by default it is that of one with an s,
// or with ies for a y.
func Word[N Number](n N, one string, more ...string) string {
	switch {
	case n == 1:
		return one
	case len(more) > 0:
		return more[0]
	case len(one) > 1 && one[len(one)-1] == 'y' && !strings.ContainsRune("aeiou", rune(one[len(one)-2])):
		return one[:len(one)-1] + "ies"
	}
	return one + "s"
}
