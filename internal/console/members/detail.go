package members

import (
	"cmp"
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/console/chart"
	"github.com/quorate/quorate/internal/console/observed"
	"github.com/quorate/quorate/internal/console/page"
	"github.com/quorate/quorate/internal/ctl/wording"
)

// fact is a name with a value, in a list of facts.
type fact struct {
	Name, Value, Look string
	Picture           template.HTML // made by package chart; empty: none
}

// memberHead is the first section about one member.
type memberHead struct {
	Gone, Without string
	Name          string
	State         cell
	Role          string
	Facts         []fact
	Silent        string // why it tells nothing itself; empty: it does
	Snapshot      *fact  // of a snapshot that it is sent
	Links         []link
}

// link leads to the plan of a change.
type link struct{ To, Text string }

func head(o *one, _ *page.Request) (any, error) {
	if o.Gone != "" {
		return memberHead{Gone: o.Gone, Without: o.Without}, nil
	}
	m, name := o.Is, cmp.Or(o.Is.GetName(), observed.Hex(o.Is.GetId()))
	p := memberHead{Name: name, State: state(m, o.Without == ""), Role: role(m), Without: o.Without, Silent: o.silent()}
	p.Facts = append(p.Facts, fact{Name: "id", Value: observed.Hex(m.GetId())},
		fact{Name: "peer URLs", Value: strings.Join(m.GetPeerUrls(), ", ")})
	if former := m.GetFormerUrls(); len(former) > 0 {
		p.Facts = append(p.Facts, fact{Name: "not found there yet; before", Value: strings.Join(former, ", "), Look: "warn"})
	}
	p.Facts = append(p.Facts, fact{Name: "client URLs", Value: strings.Join(m.GetClientUrls(), ", ")},
		fact{Name: "zone", Value: m.GetZone()}, fact{Name: "build", Value: m.GetBuild()}, o.level(),
		fact{Name: "heard by the leader", Value: contact(m, o.Without == "")},
		fact{Name: "lag", Value: lagText(m, o.Without == ""), Look: lag(m, o.Without == "").Look})
	if says := o.Seen.Says; says != nil {
		p.Facts = append(p.Facts, fact{Name: "up for", Value: duration(says.GetUpMs())},
			fact{Name: "log", Value: fmt.Sprintf("term %d, last entry %s, committed %s, applied %s", says.GetCore().GetTerm(),
				count(says.GetCore().GetLastIndex()), count(says.GetCore().GetCommit()), count(says.GetCore().GetApplied()))},
			o.clock())
		p.Facts = append(p.Facts, troubles(says)...)
	}
	if total := m.GetSnapshotTotalBytes(); total > 0 {
		b := barOf("snapshot", m.GetSnapshotSentBytes(), total)
		if rate := m.GetBytesPerSecond(); rate > 0 {
			b.Text += ", " + page.Bytes(rate) + "/s"
		}
		p.Snapshot = &fact{Name: "snapshot on its way", Value: b.Text, Picture: chart.Meter(b.Text,
			float64(m.GetSnapshotSentBytes())/
				float64(total))}
	}
	p.Facts = slices.DeleteFunc(p.Facts, func(f fact) bool { return f.Value == "" })
	word := url.QueryEscape(o.word())
	p.Links = []link{{"/changes/replace?member=" + word, "Plan to replace " + name},
		{"/changes/plan?verb=remove&member=" + word, "Plan to remove " + name}}
	return p, nil
}

// word is how a link names the member: by its name if no other one has it.
func (o *one) word() string {
	for _, m := range o.Cluster.GetMembers() {
		if m.GetId() != o.Is.GetId() && m.GetName() == o.Is.GetName() {
			return observed.Hex(o.Is.GetId())
		}
	}
	return cmp.Or(o.Is.GetName(), observed.Hex(o.Is.GetId()))
}

// silent is why a member tells nothing itself; empty: it does.
func (o *one) silent() string {
	switch asked := o.Seen.Asked; {
	case o.Seen.Says != nil:
		return ""
	case asked == nil && o.All.GetAlone():
		return "The build of this member does not ask the others. The console of " + o.Is.GetName() + " shows more."
	case asked == nil:
		return "It was not asked."
	default:
		return "It did not answer: " + cmp.Or(asked.GetFaultText(), asked.GetFault()) + "."
	}
}

func (o *one) level() fact {
	if o.Is.GetLevel() == 0 {
		return fact{Name: "feature level", Value: "not told yet"}
	}
	return fact{Name: "feature level", Value: fmt.Sprintf("knows %d, %d is active", o.Is.GetLevel(), o.Cluster.GetLevel())}
}

func contact(m *quoratepb.Member, viewed bool) string {
	if !viewed {
		return ""
	}
	if m.GetLeader() {
		return "it leads"
	}
	return wording.Contact(m, true)
}

func lagText(m *quoratepb.Member, viewed bool) string {
	if l := lag(m, viewed); l.Text != unknown {
		return l.Text + " " + plural.Word(m.GetLag(), "entry", "entries")
	}
	return unknown
}

// clock is how much the clock of a member differs from that of the member that asked it.
func (o *one) clock() fact {
	says := o.Seen.Says
	f := fact{Name: "clock", Value: page.Moment(says.GetNowMs())}
	off, within, known := o.All.Clock(o.Seen)
	if !known {
		return f
	}
	f.Value += fmt.Sprintf(", %+d ms beside the one that asked, within %s", off.Milliseconds(), page.Duration(within))
	if off.Abs().Milliseconds() > says.GetElectionMs()+o.Seen.Asked.GetRoundTripUs()/1000 {
		f.Look = "warn"
	}
	return f
}

// troubles are what a member says of itself that should not be.
func troubles(says *quoratepb.Observation) (all []fact) {
	core := says.GetCore()
	add := func(name, value string) { all = append(all, fact{Name: name, Value: value, Look: "bad"}) }
	if core.GetCorrupt() {
		add("data", "marked corrupt: it serves nothing")
	}
	if core.GetSuperseded() != "" {
		add("serves nothing", core.GetSuperseded())
	}
	if core.GetStalled() != "" {
		add("makes no progress", core.GetStalled()+", for more than "+duration(core.GetStalledMs()))
	}
	if core.GetLeaderlessMs() > 0 {
		add("knows no leader", "for "+duration(core.GetLeaderlessMs()))
	}
	for _, text := range says.GetTroubles() {
		add("trouble", text)
	}
	return all
}

func duration(ms int64) string { return page.Duration(time.Duration(ms) * time.Millisecond) }

func micros(us int64) string { return page.Duration(time.Duration(us) * time.Microsecond) }

func count(n uint64) string { return page.Count(int64(min(n, 1<<62))) }

// tells leaves a section out if the member tells nothing itself.
func (o *one) tells() (*quoratepb.Observation, error) {
	if o.Gone != "" || o.Seen.Says == nil {
		return nil, page.ErrHidden
	}
	return o.Seen.Says, nil
}

// disk is the disk of a member, and its store.
func disk(o *one, _ *page.Request) (any, error) {
	says, err := o.tells()
	if err != nil {
		return nil, err
	}
	d, s := says.GetDisk(), says.GetStore()
	free := room(o.Seen)
	facts := []fact{{Name: "disk free", Value: free.Text, Look: free.Look},
		{Name: "kept in reserve", Value: page.Bytes(d.GetReserveBytes())},
		{Name: "syncs of the log", Value: unknown}}
	if d.GetSyncs() > 0 {
		facts[2].Value = fmt.Sprintf("%s in the last %s; mean %s, one in a hundred %s", count(d.GetSyncs()),
			duration(says.GetWindowMs()), micros(d.GetSyncMeanUs()), micros(d.GetSyncP99Us()))
		facts[2].Look = syncs(o.Seen).Look
	}
	if d.GetUnsafeNoSync() {
		facts = append(facts, fact{Name: "syncs", Value: "off: a power failure loses what was acknowledged", Look: "bad"})
	}
	size := barOf("store", s.GetSizeBytes(), s.GetQuotaBytes())
	facts = append(facts, fact{Name: "store", Value: size.Text, Look: size.Look, Picture: size.Picture},
		fact{Name: "revision", Value: page.Count(s.GetRevision()) + ", compacted up to " + page.Count(s.GetCompactRevision())},
		fact{Name: "keys", Value: page.Count(s.GetKeys()) + ", with " + page.Count(s.GetVersions()) + " versions"})
	if s.GetApplies() > 0 {
		facts = append(facts, fact{Name: "batches applied", Value: fmt.Sprintf("%s; mean %s, one in a hundred %s",
			count(s.GetApplies()),
			micros(s.GetApplyMeanUs()), micros(s.GetApplyP99Us()))})
	}
	facts = append(facts, fact{Name: "flushes", Value: pressure(s.GetPressure(), s.GetStalls())})
	return facts, nil
}

// pressure is how much the store is behind with its flushes.
func pressure(p float64, stalls uint64) string {
	if stalls > 0 {
		return "writes waited for the store " + plural.Of(stalls, "time") + " in the last minute"
	}
	return page.Percent(min(max(p, 0), 1)) + " of the pressure at which writes wait"
}

// processView is the process of a member.
type processView struct {
	Facts []fact
	Bars  []bar
}

func process(o *one, _ *page.Request) (any, error) {
	says, err := o.tells()
	if err != nil {
		return nil, err
	}
	p, w := says.GetProcess(), says.GetWork()
	var m processView
	if p.GetProcessors() > 0 && p.GetProcessorUs() > 0 && says.GetWindowMs() > 0 {
		share := float64(p.GetProcessorUs()) / 1000 / float64(says.GetWindowMs()) / float64(p.GetProcessors())
		m.Facts = append(m.Facts, fact{Name: "processor", Value: fmt.Sprintf("%s of %s", page.Percent(share),
			plural.Of(p.GetProcessors(), "processor")), Look: chart.Fullness(share), Picture: chart.Meter("processor", share)})
	}
	if p.GetOpenFilesLimit() > 0 {
		share := float64(p.GetOpenFiles()) / float64(p.GetOpenFilesLimit())
		m.Facts = append(m.Facts, fact{Name: "open files", Value: fmt.Sprintf("%s of %s", count(p.GetOpenFiles()),
			count(p.GetOpenFilesLimit())), Look: chart.Fullness(share), Picture: chart.Meter("open files", share)})
	}
	m.Facts = append(m.Facts, fact{Name: "watchers",
		Value: page.Count(w.GetWatchers()) + ", of which " + page.Count(w.GetWatchersBehind()) +
			" are behind"}, fact{Name: "leases", Value: page.Count(w.GetLeases())})
	m.Bars = append(m.Bars, barOf("process, of --memory", p.GetMemoryBytes(), p.GetMemoryLimitBytes()))
	for _, part := range p.GetParts()[:min(len(p.GetParts()), 32)] {
		m.Bars = append(m.Bars, barOf(part.GetName(), part.GetBytes(), part.GetLimitBytes()))
	}
	if w.GetLeaseLimitBytes() > 0 {
		m.Bars = append(m.Bars, barOf("leases", w.GetLeaseBytes(), w.GetLeaseLimitBytes()))
	}
	if w.GetWatchLimitBytes() > 0 {
		m.Bars = append(m.Bars, barOf("events that wait for watchers", w.GetWatchWaitingBytes(), w.GetWatchLimitBytes()))
	}
	return m, nil
}

// peer is a link of a member to another one.
type peer struct {
	Name, To           string
	Link               cell
	Trip, Sent, Got    string
	Broke, Failed, Cut uint64
	Refused            string
}

func links(o *one, _ *page.Request) (any, error) {
	says, err := o.tells()
	if err != nil {
		return nil, err
	}
	var all []peer
	for _, p := range says.GetPeers()[:min(len(says.GetPeers()), mostRows)] {
		one := peer{Name: o.All.NameOf(p.GetId()), To: observed.Hex(p.GetId()), Trip: unknown, Sent: count(p.GetSent()),
			Got: count(p.GetReceived()), Broke: p.GetLosses(), Failed: p.GetFailures(), Cut: p.GetDropped(),
			Refused: p.GetRefused(),
			Link:    cell{"stands for " + duration(p.GetConnectedMs()), "good"}}
		if !p.GetConnected() {
			one.Link = cell{strings.TrimSpace("none " + p.GetFault()), "bad"}
		}
		if p.GetRoundTripUs() > 0 {
			one.Trip = micros(p.GetRoundTripUs())
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b peer) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// certificate is a certificate.
type certificate struct {
	Name, From, Until string
	Left              cell
}

func certificates(o *one, _ *page.Request) (any, error) {
	says, err := o.tells()
	if err != nil {
		return nil, err
	}
	var all []certificate
	for _, c := range says.GetCertificates() {
		text, look := observed.Ends(c, says.GetNowMs())
		all = append(all, certificate{observed.Certificate(c), page.Moment(c.GetFromMs()), page.Moment(c.GetUntilMs()),
			cell{text, look}})
	}
	return all, nil
}
