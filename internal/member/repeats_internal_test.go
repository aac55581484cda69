package member

import (
	"fmt"
	"testing"
	"time"
)

// Ensure that a text is said once a minute, whatever is said meanwhile, and that texts without number take no memory without bound.
func TestRepeats(t *testing.T) {
	var r repeats
	begun, said := time.Now(), map[string]int{}
	for second := range 150 {
		for _, text := range []string{"a", "b"} {
			if r.again(text, begun.Add(time.Duration(second)*time.Second)) {
				said[text]++
			}
		}
	}
	if said["a"] != 3 || said["b"] != 3 {
		t.Errorf("said in 150 seconds: %v", said)
	}
	for i := range 1000 {
		r.again(fmt.Sprint(i), begun)
	}
	if len(r.said) > maxRepeats {
		t.Errorf("%d texts are remembered", len(r.said))
	}
}
