package members

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/operator/internal/decide"
)

// Ensure that the answer of the last epoch counts, whatever terms others have, and none of an epoch that a recovery ended; that one of
// another process at a member's address is none; and that the leader's own comes first.
func TestBestOf(t *testing.T) {
	of := func(epoch string, term uint64, leader string, names ...string) *quoratepb.Cluster {
		c := &quoratepb.Cluster{ClusterId: 9, Leader: 1, Term: term, Epoch: epoch, Config: &quoratepb.ConfigID{Index: 5}}
		for _, name := range names {
			c.Members = append(c.Members, &quoratepb.Member{Name: name, Leader: name == leader})
		}
		return c
	}
	old := func(term uint64) *quoratepb.Cluster { return of("0", term, "m1", "m1", "m2", "m3") }
	for _, row := range []struct {
		name      string
		described []*quoratepb.Cluster
		newest    string // of claims; those of all seats have it
		want      int
		says      string
	}{
		{"all say the same", []*quoratepb.Cluster{old(7), old(7), old(7)}, "0", 0, ""},
		{"the leader has another seat", []*quoratepb.Cluster{of("0", 7, "m3", "m1", "m3"), nil, of("0", 7, "m3", "m1", "m3")}, "0", 2, ""},
		{"a later term", []*quoratepb.Cluster{old(7), old(8), old(7)}, "0", 1, ""},
		{"a later epoch, and a former majority that went on", []*quoratepb.Cluster{old(9), old(9), of("1-ab", 8, "m3", "m3")}, "0", 2, ""},
		{"only the former majority answers", []*quoratepb.Cluster{old(9), old(9), nil}, "1-ab", -1, "a recovery left those members out"},
		{"two survivors were recovered apart", []*quoratepb.Cluster{nil, of("1-cd", 9, "m2", "m2"), of("1-ab", 8, "m3", "m3")}, "1-ab", 2, ""},
		{"a build that tells no epoch", []*quoratepb.Cluster{of("", 7, "m1", "m1"), nil, nil}, "0", 0, ""},
		{"builds that tell no epoch, after one did", []*quoratepb.Cluster{of("", 7, "m1", "m1"), of("", 8, "m1", "m1", "m2"), nil}, "1-ab", 1, ""},
		{"a build that tells its epoch, and is behind", []*quoratepb.Cluster{of("1-ab", 7, "m1", "m1"), of("", 8, "m1", "m1", "m2"), nil}, "1-ab", 1, ""},
		{"a build that tells no epoch, of a claim that a recovery left out", []*quoratepb.Cluster{nil, nil, nil, of("", 9, "x", "m4", "x")}, "1-ab",
			-1, "run `kubectl annotate -n ns --overwrite pvc m4 quorate.io/epoch=1-ab`"},
		{"another cluster at an address that was used again", []*quoratepb.Cluster{of("0", 7, "x1", "x1", "x2"), nil, nil}, "", -1, ""},
		{"no leader", []*quoratepb.Cluster{{ClusterId: 9, Members: old(1).Members}, nil, nil}, "", -1, ""},
	} {
		var answered []int
		for i, d := range row.described {
			if d != nil {
				answered = append(answered, i)
			}
		}
		newest := decide.ParseEpoch(row.newest)
		seats := []Seat{{"m1", "ns", "", "", newest}, {"m2", "ns", "", "", newest}, {"m3", "ns", "", "", newest}, {"m4", "ns", "", "", decide.ParseEpoch("0")}}
		got, err := bestOf(seats, row.described, answered, 0, newest)
		if got != row.want || (err != nil) != (row.says != "") || err != nil && !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: got %d, %v", row.name, got, err)
		}
	}
	if got, _ := bestOf([]Seat{{Member: "m1"}}, []*quoratepb.Cluster{old(7)}, []int{0}, 8, decide.Epoch{}); got >= 0 {
		t.Error("the answer of another cluster counts")
	}
}
