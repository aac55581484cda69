package traffic

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/console/page"
)

const (
	// standsOut is how many times the largest figure of the others a figure is that stands out.
	standsOut = 2.5
	// leastShare is the least part of the time of a write, at the others, that the difference makes up.
	leastShare = 0.25
	// leastSamples is how many samples a mean has that is compared.
	leastSamples = 20
	// leastOfHundred is how many samples a 99th percentile has: of fewer it is the one or two slowest, which say little.
	leastOfHundred = 300
)

// figure is a time of members that is compared.
type figure struct {
	by   string // what the member is slow by
	said string // what the time is, before "takes"
	of   func(m *member) (us int64, samples uint64)
	need uint64 // how many samples it has to have
}

var figures = []figure{
	{"its disk", "one sync of its log in a hundred takes", func(m *member) (int64, uint64) {
		return m.is.GetDisk().GetSyncP99Us(), m.is.GetDisk().GetSyncs()
	}, leastOfHundred},
	{"the disks that its writes wait for", "a write waits for syncs", func(m *member) (int64, uint64) {
		return m.traffic.GetSyncUs(), m.traffic.GetSplitWrites()
	}, leastSamples},
	{"the network", "a write waits for other members", func(m *member) (int64, uint64) {
		return m.traffic.GetNetworkUs(), m.traffic.GetSplitWrites()
	}, leastSamples},
	{"the queue of its writes", "a write waits before it leaves the member", func(m *member) (int64, uint64) {
		return m.traffic.GetQueueUs(), m.traffic.GetSplitWrites()
	}, leastSamples},
	{"applying what is committed", "a write waits until it is applied here and answered", func(m *member) (int64, uint64) {
		return m.traffic.GetApplyUs(), m.traffic.GetSplitWrites()
	}, leastSamples},
	{"the slowest of its puts", "one put in a hundred takes", func(m *member) (int64, uint64) {
		return m.traffic.GetPutP99Us(), m.traffic.GetPuts()
	}, leastOfHundred},
}

// compareView is the member that stands out, if one does.
type compareView struct {
	Slow     string // its name
	ID       string // in hexadecimal
	Sentence string
	Told     int // members that were compared
	Missing  []string
}

// compare says which member is slow, and by what: one whose figure is much more than that of every other.
func compare(all []member) compareView {
	v := compareView{}
	for i := range all {
		if all[i].traffic != nil {
			v.Told++
		} else {
			v.Missing = append(v.Missing, all[i].name)
		}
	}
	most := 0.0
	for i, f := range figures {
		if v.Slow != "" && i == len(figures)-1 { // a part explains it
			break
		}
		slowest, us, others, found := f.slowest(all)
		excess := float64(us-others) / max(writeTime(all, slowest), 1)
		if !found || excess < leastShare || excess <= most {
			continue
		}
		most = excess
		v.Slow, v.ID = slowest.name, slowest.id
		v.Sentence = fmt.Sprintf("%s is slow by %s: %s %s, %s the longest among the others, which is %s.", slowest.name, f.by,
			f.said, micros(us), times(us, others), micros(others))
	}
	return v
}

// slowest returns the member whose figure is the largest by far, and the largest one of the others.
func (f *figure) slowest(all []member) (slowest *member, us, others int64, found bool) {
	compared := 0
	for i := range all {
		n, samples := f.of(&all[i])
		n = bounded(n)
		if samples < f.need || n <= 0 {
			continue
		}
		compared++
		if n > us {
			slowest, us, others = &all[i], n, us
		} else {
			others = max(others, n)
		}
	}
	return slowest, us, others, compared > 1 && float64(us) >= standsOut*float64(others)
}

// writeTime is the median time of a write at the others, in microseconds: beside it a difference counts, or does not.
func writeTime(all []member, but *member) float64 {
	var times []int64
	for i := range all {
		if t := all[i].writeTime(); t > 0 && &all[i] != but {
			times = append(times, t)
		}
	}
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	return float64(times[len(times)/2])
}

// times says how many times the others' figure one is.
func times(us, others int64) string {
	n := float64(us) / float64(max(others, 1))
	if n < 10 {
		return fmt.Sprintf("%.1f times", n)
	}
	return page.Count(int64(n)) + " times"
}

// Alone reports whether there is nothing to compare.
func (v compareView) Alone() bool { return v.Told < 2 }

// Compared is how many members were compared, in words.
func (v compareView) Compared() string { return plural.Of(v.Told, "member") }
