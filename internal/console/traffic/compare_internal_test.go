package traffic

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/quorate/quorate/api/quoratepb"
)

// even are members among which none stands out.
func even(n int) *quoratepb.Collected {
	c := &quoratepb.Collected{}
	for i := range n {
		id := uint64(i + 1)
		o := &quoratepb.Observation{MemberId: id, Name: fmt.Sprint("m", id), WindowMs: 60_000,
			Core: &quoratepb.ObservedCore{Leader: 1}, Disk: &quoratepb.ObservedDisk{Syncs: 900, SyncP99Us: 2000 + 100*int64(i)},
			Config: &quoratepb.ObservedConfig{},
			Traffic: &quoratepb.ObservedTraffic{Writes: 600, Puts: 600, PutP50Us: 2000, PutP99Us: 6000, Reads: 1200, Serializable: 300,
				ReadP50Us: 500, ReadP99Us: 1500, SplitWrites: 200, QueueUs: 100, NetworkUs: 900, SyncUs: 1000, ApplyUs: 100}}
		for voter := range n {
			o.Config.Members = append(o.Config.Members, &quoratepb.ObservedMember{Id: uint64(voter + 1), Voter: true})
		}
		for at := range 12 {
			o.Series = append(o.Series, &quoratepb.ObservedPoint{EndedMs: int64(11-at) * 10_000, LastedMs: 10_000, Writes: 100, Reads: 200,
				PutP99Us: 6000, SyncP99Us: 2000})
		}
		c.Members = append(c.Members, &quoratepb.CollectedMember{Id: id, Name: o.Name, Observation: o})
	}
	return c
}

// Ensure that a member stands out by what is much more than at every other, and much beside the time of a write: whatever the
// milliseconds are.
func TestCompare(t *testing.T) {
	type members func(n int) *quoratepb.Observation
	for _, row := range []struct {
		name string
		make func(of members)
		want string // empty: none stands out
	}{
		{"even", func(members) {}, ""},
		{"a slow disk", func(of members) { of(2).Disk.SyncP99Us = 40_000 }, "m2 is slow by its disk: one sync of its log in a hundred takes 40.0 ms, 18 times"},
		{"two slow disks", func(of members) { of(2).Disk.SyncP99Us, of(3).Disk.SyncP99Us = 40_000, 40_000 }, ""},
		{"few syncs", func(of members) { of(2).Disk.SyncP99Us, of(2).Disk.Syncs = 40_000, 299 }, ""},
		{"few puts", func(of members) { of(2).Traffic.PutP99Us, of(2).Traffic.Puts = 90_000, 100 }, ""},
		{"a site that is far", func(of members) { of(3).Traffic.NetworkUs = 70_000 }, "m3 is slow by the network: a write waits for other members 70.0 ms"},
		{"a far site among far ones", func(of members) {
			for n := 1; n <= 3; n++ {
				of(n).Traffic.NetworkUs = 60_000 + 1000*int64(n)
			}
		}, ""},
		{"much of nearly nothing", func(of members) { of(3).Traffic.ApplyUs, of(3).Traffic.QueueUs = 500, 400 }, ""},
		{"the same in a fast cluster", func(of members) {
			for n := 1; n <= 3; n++ {
				of(n).Traffic.NetworkUs, of(n).Traffic.SyncUs = 50, 50
			}
			of(3).Traffic.ApplyUs = 500
		}, "m3 is slow by applying"},
		{"the larger of two causes", func(of members) { of(2).Disk.SyncP99Us, of(2).Traffic.NetworkUs = 9000, 90_000 }, "m2 is slow by the network"},
		{"puts alone", func(of members) { of(1).Traffic.PutP99Us = 90_000 }, "m1 is slow by the slowest of its puts"},
		{"a member that does not tell", func(of members) { of(2).Traffic = nil; of(2).Disk.SyncP99Us = 90_000 }, "m2 is slow by its disk"},
		{"numbers without end", func(of members) { of(2).Traffic.SyncUs, of(2).Traffic.QueueUs = math.MaxInt64, math.MinInt64 }, "m2 is slow by"},
	} {
		c := even(3)
		row.make(func(n int) *quoratepb.Observation { return c.Members[n-1].Observation })
		got := compare(membersOf(c))
		if (got.Slow == "") != (row.want == "") || !strings.HasPrefix(got.Sentence, row.want) {
			t.Errorf("%s: got %q", row.name, got.Sentence)
		}
	}
}

// Ensure that one member, or none, is compared with nothing.
func TestCompare_alone(t *testing.T) {
	if got := compare(membersOf(even(1))); !got.Alone() || got.Slow != "" {
		t.Errorf("got %+v", got)
	}
	if got := compare(nil); !got.Alone() {
		t.Errorf("got %+v", got)
	}
}

// Ensure that a line has the rate of each step, wherever a member counted, and no value where it did not.
func TestResample(t *testing.T) {
	count := func(p *quoratepb.ObservedPoint) float64 { return rateOf(p, p.GetWrites()) }
	for _, row := range []struct {
		name        string
		points      []*quoratepb.ObservedPoint
		last, third float64 // the last value, and the one three steps before it
	}{
		{"none", nil, math.NaN(), math.NaN()},
		{"one step", []*quoratepb.ObservedPoint{{LastedMs: 10_000, Writes: 50}}, 5, math.NaN()},
		{"between steps", []*quoratepb.ObservedPoint{{EndedMs: 5000, LastedMs: 40_000, Writes: 400}, {EndedMs: 0, LastedMs: 5000, Writes: 0}}, 5, 10},
		{"without time", []*quoratepb.ObservedPoint{{LastedMs: 0, Writes: 50}, {LastedMs: -5, Writes: 1}}, math.NaN(), math.NaN()},
		{"of the future", []*quoratepb.ObservedPoint{{EndedMs: -60_000, LastedMs: 90_000, Writes: 50}}, math.NaN(), math.NaN()},
		{"without end", []*quoratepb.ObservedPoint{{EndedMs: math.MaxInt64, LastedMs: math.MaxInt64, Writes: math.MaxUint64}}, math.NaN(), math.NaN()},
	} {
		got := resample(row.points, count)
		same := func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }
		if len(got) != mostSteps || !same(got[mostSteps-1], row.last) || !same(got[mostSteps-4], row.third) {
			t.Errorf("%s: got %v", row.name, got[mostSteps-5:])
		}
	}
}
