package traffic

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/console/page"
)

// mostMembers is how many members are shown.
const mostMembers = 64

// member is what one member observes. Its texts can be shown.
type member struct {
	name    string
	id      string // in hexadecimal
	fault   string // why it did not answer; empty: it did
	is      *quoratepb.Observation
	traffic *quoratepb.ObservedTraffic // nil: it is not told
}

// membersOf are the members by their names.
func membersOf(c *quoratepb.Collected) (all []member) {
	for _, m := range c.GetMembers()[:min(len(c.GetMembers()), mostMembers)] {
		is := m.GetObservation()
		one := member{name: page.Text(cmp.Or(m.GetName(), is.GetName(), strconv.FormatUint(m.GetId(), 16))), is: is,
			id: strconv.FormatUint(m.GetId(), 16), traffic: is.GetTraffic()}
		if is == nil {
			one.fault = page.Text(cmp.Or(m.GetFaultText(), m.GetFault(), "it did not say why"))
		}
		all = append(all, one)
	}
	slices.SortStableFunc(all, func(a, b member) int { return cmp.Compare(a.name, b.name) })
	return all
}

// leads reports whether the member is the leader, as it says itself.
func (m *member) leads() bool {
	return m.is.GetMemberId() != 0 && m.is.GetCore().GetLeader() == m.is.GetMemberId()
}

// rate is a number of the window a second.
func (m *member) rate(n uint64) float64 {
	return float64(n) / max(float64(m.is.GetWindowMs()), 1) * 1000
}

// writeTime is the mean time of a write, as the sum of its parts; 0: not known.
func (m *member) writeTime() int64 {
	if t := m.traffic; t.GetSplitWrites() > 0 {
		return bounded(t.GetQueueUs()) + bounded(t.GetNetworkUs()) + bounded(t.GetSyncUs()) + bounded(t.GetApplyUs())
	}
	return 0
}

// bounded is a duration that a member told in microseconds, within what can be: nothing that is shown here takes an hour.
func bounded(us int64) int64 { return min(max(us, 0), time.Hour.Microseconds()) }

// micros is a duration that a member told in microseconds; a dash: there was none.
func micros(us int64) string {
	if us <= 0 {
		return "–"
	}
	return page.Duration(time.Duration(bounded(us)) * time.Microsecond)
}

// row is a member as the table shows it.
type row struct {
	Name, Fault  string
	Leads        bool
	Learner      bool
	Told         bool
	Writes       string
	Reads        string
	Serializable string
	Share        string // of writes that the fast path decided
	Put, PutMost string
	Get, GetMost string
	Sync         string
}

type tableView struct {
	Rows          []row
	Window        string
	Writes, Reads string // of all that told
	Partial       bool   // some did not
}

// table is the members, a row each, and the sums of what can be added.
func table(all []member) (any, error) {
	v := tableView{}
	var sumOfWrites, sumOfReads float64
	longest := int64(0)
	for i := range all {
		m := &all[i]
		t := m.traffic
		one := row{Name: m.name, Fault: m.fault, Leads: m.leads(), Learner: m.is.GetCore().GetLearner(), Told: t != nil,
			Sync: micros(m.is.GetDisk().GetSyncP99Us())}
		longest = max(longest, m.is.GetWindowMs())
		if t == nil {
			v.Partial = true
			v.Rows = append(v.Rows, one)
			continue
		}
		sumOfWrites, sumOfReads = sumOfWrites+m.rate(t.GetWrites()), sumOfReads+m.rate(t.GetReads())
		one.Writes, one.Reads = page.PerSecond(m.rate(t.GetWrites())), page.PerSecond(m.rate(t.GetReads()))
		one.Share, one.Serializable = shareOf(m), part(t.GetSerializable(), t.GetReads())
		one.Put, one.PutMost = micros(t.GetPutP50Us()), micros(t.GetPutP99Us())
		one.Get, one.GetMost = micros(t.GetReadP50Us()), micros(t.GetReadP99Us())
		v.Rows = append(v.Rows, one)
	}
	v.Writes, v.Reads = page.PerSecond(sumOfWrites), page.PerSecond(sumOfReads)
	v.Window = page.Seconds(time.Duration(min(max(longest, 0), time.Hour.Milliseconds())) * time.Millisecond)
	return v, nil
}

// shareOf is the share of writes that the fast path decided; a dash: a leader needs none.
func shareOf(m *member) string {
	if m.leads() && m.traffic.GetOffered() == 0 {
		return "–"
	}
	return part(m.traffic.GetOneTrip(), decided(m.traffic))
}

// decided is how many writes there were, by either count: that of writes lacks those that native clients send over streams, and
// that of offers those that were not offered.
func decided(t *quoratepb.ObservedTraffic) uint64 {
	return max(t.GetWrites(), t.GetOffered(), t.GetOneTrip())
}

// part is a share of a whole; a dash: there is no whole.
func part(n, whole uint64) string {
	if whole == 0 {
		return "–"
	}
	return page.Percent(min(1, float64(n)/float64(whole)))
}

// ago is how long ago something was.
func ago(d time.Duration) string { return page.Seconds(d) + " ago" }
