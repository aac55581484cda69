package verdict

import (
	"context"
	"fmt"
	"html/template"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/console/chart"
	"github.com/quorate/quorate/internal/console/observed"
	"github.com/quorate/quorate/internal/console/page"
	"github.com/quorate/quorate/internal/ctl/wording"
)

// tile is one number, with words around it.
type tile struct {
	Value, Name string
	Note        string
	Look        string        // the class of its colour
	Meter       template.HTML // made by package chart; empty: none
}

// unknown is the value of what no member told.
const unknown = "–"

func vitals(ctx context.Context, r *page.Request) (any, error) {
	all, err := observed.Ask(ctx, r)
	if err != nil {
		return nil, err
	}
	return tilesOf(all), nil
}

func tilesOf(all *observed.Answer) []tile {
	return append(rates(all), voters(all), leader(all), revision(all), store(all), level(all))
}

// rates are of all members that answered: each counts the calls of its own clients.
func rates(all *observed.Answer) []tile {
	writes, reads, counts, window := 0.0, 0.0, 0, int64(0)
	tellsReads := false
	for _, m := range all.Members {
		ms := m.Says.GetWindowMs()
		if ms == 0 {
			continue
		}
		counts, window = counts+1, max(window, ms)
		t := m.Says.GetTraffic()
		if t == nil {
			writes += perSecond(m.Says.GetWork().GetWrites(), ms)
			continue
		}
		tellsReads = true
		writes += perSecond(t.GetWrites(), ms)
		reads += perSecond(t.GetReads(), ms)
	}
	w, n := tile{Value: unknown, Name: "writes per second"}, tile{Value: unknown, Name: "reads per second"}
	if counts == 0 {
		w.Note, n.Note = "no member has counted for long enough", "no member has counted for long enough"
		return []tile{w, n}
	}
	of := "in the last " + page.Duration(time.Duration(window)*time.Millisecond)
	if counts < len(all.Members) {
		of += fmt.Sprintf(", of %d of %s", counts, plural.Of(len(all.Members), "member"))
	}
	w.Value, w.Note, n.Note = page.PerSecond(writes), of, of
	if tellsReads {
		n.Value = page.PerSecond(reads)
	} else {
		n.Note = "this build does not count them here"
	}
	return []tile{w, n}
}

func perSecond(n uint64, ms int64) float64 { return float64(n) * 1000 / float64(ms) }

// voters is how many of them take part, and how many more may fail.
func voters(all *observed.Answer) tile {
	c := all.Cluster()
	up, of, oldUp, oldOf := 0, 0, 0, 0
	for _, m := range c.GetMembers() {
		one := map[bool]int{true: 1}[m.GetActive()]
		switch m.GetRole() {
		case quoratepb.Role_ROLE_VOTER:
			of, up, oldOf, oldUp = of+1, up+one, oldOf+1, oldUp+one
		case quoratepb.Role_ROLE_INCOMING:
			of, up = of+1, up+one
		case quoratepb.Role_ROLE_OUTGOING, quoratepb.Role_ROLE_DEMOTING:
			oldOf, oldUp = oldOf+1, oldUp+one
		}
	}
	t := tile{Value: fmt.Sprintf("%d of %d", up, of), Name: "voters up", Note: wording.Tolerates(c.GetStrength())}
	switch {
	case of == 0:
		t.Value, t.Note = unknown, "no member told the configuration"
	case all.GetAlone() && all.Leader == nil:
		t.Value, t.Note = fmt.Sprintf("? of %d", of), "only the leader knows, and it was not asked"
	case up < int(c.GetStrength().GetQuorum()), oldUp < int(c.GetStrength().GetOutgoingQuorum()):
		t.Look = "bad"
	case c.GetStrength().GetTolerates() <= 0 && of > 1, up < of:
		t.Look = "warn"
	}
	if c.GetJoint() {
		t.Note = "a joint configuration: the old voters must agree, too"
		if c.GetStrength().GetOutgoing() > 0 {
			t.Note += fmt.Sprintf(", of whom %d of %d are up", oldUp, oldOf)
		}
	}
	return t
}

func leader(all *observed.Answer) tile {
	if all.Leader != nil {
		return tile{Value: page.Text(all.Leader.Name), Name: "leader",
			Note: fmt.Sprintf("term %d", all.Leader.Says.GetCore().GetTerm())}
	}
	for _, m := range all.Members {
		if id := m.Says.GetCore().GetLeader(); id != 0 {
			return tile{Value: page.Text(all.NameOf(id)), Name: "leader",
				Note: "as " + page.Text(m.Name) + " knows; it did not answer"}
		}
	}
	return tile{Value: "none", Name: "leader", Note: "no member that answered knows one", Look: "bad"}
}

// revision is that of the member that is furthest.
func revision(all *observed.Answer) tile {
	var most *quoratepb.ObservedStore
	for _, m := range all.Members {
		if s := m.Says.GetStore(); s != nil && s.GetRevision() >= most.GetRevision() {
			most = s
		}
	}
	if most == nil {
		return tile{Value: unknown, Name: "revision", Note: "no member told it"}
	}
	note := "nothing was compacted yet"
	if at := most.GetCompactRevision(); at > 0 {
		note = "compacted up to " + page.Count(at)
	}
	return tile{Value: page.Count(most.GetRevision()), Name: "revision", Note: note}
}

// store is that of the member which has the largest part of its quota.
func store(all *observed.Answer) tile {
	var most *observed.Member
	share := func(m *observed.Member) float64 {
		s := m.Says.GetStore()
		if s.GetQuotaBytes() == 0 {
			return 0
		}
		return float64(s.GetSizeBytes()) / float64(s.GetQuotaBytes())
	}
	for _, m := range all.Members {
		if m.Says.GetStore() != nil && (most == nil || share(m) > share(most) ||
			share(m) == share(most) && m.Says.GetStore().GetSizeBytes() > most.Says.GetStore().GetSizeBytes()) {
			most = m
		}
	}
	if most == nil {
		return tile{Value: unknown, Name: "store", Note: "no member told it"}
	}
	s := most.Says.GetStore()
	t := tile{Value: page.Bytes(s.GetSizeBytes()), Name: "store", Note: "no quota"}
	if s.GetQuotaBytes() == 0 {
		return t
	}
	of := share(most)
	t.Note = fmt.Sprintf("%s of the quota of %s", page.Percent(of), page.Bytes(s.GetQuotaBytes()))
	t.Look = chart.Fullness(of)
	t.Meter = chart.Meter("the store has "+t.Note, of)
	return t
}

func level(all *observed.Answer) tile {
	known := uint32(0)
	for _, m := range all.Config.GetMembers() {
		known = max(known, m.GetLevel())
	}
	t := tile{Value: fmt.Sprint(all.Config.GetLevel()), Name: "feature level", Note: "no member knows a higher one"}
	switch {
	case all.Config.GetLevel() == 0:
		t.Value, t.Note = unknown, "no member told it"
	case known > all.Config.GetLevel():
		t.Note = fmt.Sprintf("members know %d", known)
	}
	return t
}
