package keyrange_test

import (
	"fmt"
	"math/rand"
	"testing"

	"github.com/quorate/quorate/internal/base/keyrange"
)

func TestFrom_etcd_pairs(t *testing.T) {
	cases := []struct {
		name, key, end string
		in, out        []string
	}{
		{"no end is the key alone", "b", "", []string{"b"}, []string{"a", "b\x00", "c"}},
		{"a zero byte is everything from the key on", "b", "\x00", []string{"b", "z", "\xff\xff"}, []string{"a", ""}},
		{"an interval excludes its end", "b", "d", []string{"b", "c", "czz"}, []string{"a", "d"}},
		{"an interval that ends before it starts is empty", "d", "b", nil, []string{"b", "c", "d"}},
		{"a zero byte twice is every key", "\x00", "\x00", []string{"\x00", "a"}, []string{""}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := keyrange.From([]byte(c.key), []byte(c.end))
			for _, key := range c.in {
				if !r.Contains([]byte(key)) {
					t.Errorf("%q is missing", key)
				}
			}
			for _, key := range c.out {
				if r.Contains([]byte(key)) {
					t.Errorf("%q is in it", key)
				}
			}
		})
	}
}

func TestSet_against_list(t *testing.T) {
	const seed = 7
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewSource(seed))
	for round := 0; round < 2000; round++ {
		var set keyrange.Set
		var list []keyrange.Range
		for i := rng.Intn(6); i >= 0; i-- {
			r := randomRange(rng)
			set.Add(r)
			list = append(list, r)
		}
		in := func(key byte) bool {
			for _, r := range list {
				if r.Contains([]byte{key}) {
					return true
				}
			}
			return false
		}
		probe := randomRange(rng)
		covers, overlaps := true, false
		for key := byte('a'); key < 'n'; key++ {
			if got, want := set.Contains([]byte{key}), in(key); got != want {
				t.Fatalf("round %d: Contains(%c) = %v, want %v", round, key, got, want)
			}
			if probe.Contains([]byte{key}) {
				covers, overlaps = covers && in(key), overlaps || in(key)
			}
		}
		if len(probe.End) == 0 { // beyond the alphabet only an open range covers an open one
			covers = covers && in(0xff)
			overlaps = overlaps || in(0xff)
		}
		if got := set.Overlaps(probe); got != overlaps {
			t.Fatalf("round %d: %q Overlaps(%q) = %v, want %v", round, set.Ranges(), probe, got, overlaps)
		}
		if got := set.Covers(probe); got != covers {
			t.Fatalf("round %d: %q Covers(%q) = %v, want %v", round, set.Ranges(), probe, got, covers)
		}
	}
}

// randomRange draws from a small alphabet so that ranges meet often; ends are single letters, so that one-letter probes
// tell everything.
func randomRange(rng *rand.Rand) keyrange.Range {
	r := keyrange.Range{Start: []byte{byte('a' + rng.Intn(12))}}
	if rng.Intn(8) > 0 {
		r.End = []byte{byte('a' + rng.Intn(13))}
	}
	return r
}

func ExampleSet() {
	var set keyrange.Set
	set.Add(keyrange.From([]byte("a"), []byte("c")))
	set.Add(keyrange.From([]byte("x"), nil))
	set.Add(keyrange.From([]byte("c"), []byte("f"))) // touches the first one
	fmt.Println(set.Len(), set.Covers(keyrange.From([]byte("b"), []byte("e"))), set.Contains([]byte("xx")))
	// Output: 2 true false
}
