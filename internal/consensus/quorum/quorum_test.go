package quorum_test

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/consensus/quorum"
)

// Ensure that the sizes are those of docs: superquorums 1, 2, 3, 3, 4, 5, 6 for 1 to 7 voters.
func TestSuper_sizes(t *testing.T) {
	var got []int
	for n := 1; n <= 7; n++ {
		got = append(got, quorum.Super(n))
	}
	if want := []int{1, 2, 3, 3, 4, 5, 6}; !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

// Ensure by enumeration that any two majorities meet, and that a superquorum meets any majority in a recovery quorum,
// while what misses a superquorum's rivals cannot reach one.
func TestQuorum_intersection(t *testing.T) {
	for n := 1; n <= 7; n++ {
		m, s, r := quorum.Majority(n), quorum.Super(n), quorum.Recovery(n)
		for a := range uint(1) << n {
			for b := range uint(1) << n {
				common := bits.OnesCount(a & b)
				if bits.OnesCount(a) == m && bits.OnesCount(b) == m && common == 0 {
					t.Fatalf("n=%d: majorities %b and %b are disjoint", n, a, b)
				}
				if bits.OnesCount(a) == s && bits.OnesCount(b) == m && common < r {
					t.Fatalf("n=%d: superquorum %b and majority %b share %d < %d", n, a, b, common, r)
				}
			}
		}
		if n-s >= r {
			t.Fatalf("n=%d: a conflicting proposal could also be recovered: %d >= %d", n, n-s, r)
		}
	}
}

// Ensure that Reached is the largest value that a majority has reached, by counting.
func TestReached_counting(t *testing.T) {
	if got := quorum.Super(0); got != 1 {
		t.Errorf("%d of no voters succeed on the fast path", got)
	}
	if got := quorum.Reached(nil); got != 0 {
		t.Fatalf("nobody agreed on %d", got)
	}
	for n := 1; n <= 5; n++ {
		total := 1
		for range n {
			total *= 4
		}
		for code := range total {
			values := make([]uint64, n)
			for i, c := 0, code; i < n; i, c = i+1, c/4 {
				values[i] = uint64(c % 4)
			}
			want := uint64(0)
			for v := uint64(1); v < 4; v++ {
				reached := 0
				for _, x := range values {
					if x >= v {
						reached++
					}
				}
				if reached >= quorum.Majority(n) {
					want = v
				}
			}
			if got := quorum.Reached(slices.Clone(values)); got != want {
				t.Fatalf("%v: got %d, want %d", values, got, want)
			}
		}
	}
}

func TestTally_outcomes(t *testing.T) {
	for _, tc := range []struct {
		name                string
		n, granted, refused int
		want                quorum.Outcome
	}{
		{"nobody to ask", 0, 0, 0, quorum.Lost},
		{"alone", 1, 1, 0, quorum.Won},
		{"three, one grant", 3, 1, 1, quorum.Pending},
		{"three, two refusals", 3, 1, 2, quorum.Lost},
		{"four, half is not enough", 4, 2, 1, quorum.Pending},
		{"four, two refusals decide", 4, 2, 2, quorum.Lost},
		{"five, three grants", 5, 3, 2, quorum.Won},
	} {
		if got := quorum.Tally(tc.n, tc.granted, tc.refused); got != tc.want {
			t.Errorf("%s: got %v, want %v", tc.name, got, tc.want)
		}
	}
	if got := quorum.Both(quorum.Won, quorum.Pending); got != quorum.Pending {
		t.Errorf("joint: got %v", got)
	}
	if got := quorum.Both(quorum.Won, quorum.Lost); got != quorum.Lost {
		t.Errorf("joint: got %v", got)
	}
}

func ExampleSuper() {
	for n := 1; n <= 5; n++ {
		fmt.Printf("%d voters: majority %d, recovery %d, superquorum %d, may fail %d\n",
			n, quorum.Majority(n), quorum.Recovery(n), quorum.Super(n), n-quorum.Majority(n))
	}
	// Output:
	// 1 voters: majority 1, recovery 1, superquorum 1, may fail 0
	// 2 voters: majority 2, recovery 2, superquorum 2, may fail 0
	// 3 voters: majority 2, recovery 2, superquorum 3, may fail 1
	// 4 voters: majority 3, recovery 2, superquorum 3, may fail 1
	// 5 voters: majority 3, recovery 2, superquorum 4, may fail 2
}
