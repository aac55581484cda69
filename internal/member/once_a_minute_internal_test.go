package member

import (
	"fmt"
	"testing"
	"time"
)

// Ensure that a text is logged once a minute, whatever is logged meanwhile, and that the memory for many different texts is
// bounded.
func TestOnceAMinute(t *testing.T) {
	var o onceAMinute
	begun, said := time.Now(), map[string]int{}
	for second := range 150 {
		for _, text := range []string{"a", "b"} {
			if o.shouldLog(text, begun.Add(time.Duration(second)*time.Second)) {
				said[text]++
			}
		}
	}
	if said["a"] != 3 || said["b"] != 3 {
		t.Errorf("logged in 150 seconds: %v", said)
	}
	for i := range 1000 {
		o.shouldLog(fmt.Sprint(i), begun)
	}
	if len(o.logged) > maxLoggedTexts {
		t.Errorf("%d texts are remembered", len(o.logged))
	}
}
