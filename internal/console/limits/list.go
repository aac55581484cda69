package limits

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"net/url"
	"slices"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/console/chart"
	"github.com/quorate/quorate/internal/console/observed"
	"github.com/quorate/quorate/internal/console/page"
	"github.com/quorate/quorate/internal/ctl/wording"
)

// row is a limit as the table shows it.
type row struct {
	Name         string
	Of           []string // whose requests, and at which keys
	Allows       []string
	Uses         []use
	Counting     string // how far the count is of what its prefix has; empty: it is done, or there is no quota
	Lately       string // refused in the last minute, by all members that told
	Refused      string // since this member started, by this member
	Look, Word   string // its state: the class of a colour, and a word; empty: nothing is near
	Edit, Delete string // links
	share        float64
	lately       uint64
}

// use is how much there is of what a quota allows.
type use struct {
	Text  string
	Look  string
	Meter template.HTML
}

// table are the limits.
type table struct {
	Rows     []row
	Near     int // limits whose quota is nearly used, or used
	Refusing int // limits that refused something in the last minute
	Lately   string
	Told     int // members that told what they refused
	Members  int
	Member   string
	Set      string // link to the form
	Held     string // why none can be set yet; empty: they can
}

func list(ctx context.Context, r *page.Request) (any, error) {
	answer, err := quoratepb.NewLimitsClient(r.Conn).ListLimits(ctx, &quoratepb.ListLimitsRequest{})
	if err != nil {
		return nil, err
	}
	all, err := observed.Ask(ctx, r)
	if err != nil {
		all = observed.Of(nil) // the limits are known without it
	}
	return tableOf(answer.GetLimits(), all, r), nil
}

func tableOf(states []*quoratepb.LimitState, all *observed.Answer, r *page.Request) *table {
	t := &table{Members: len(all.Members), Member: r.Member, Set: setPath, Held: held(all)}
	refused := map[string]uint64{}
	total := uint64(0)
	for _, m := range all.Members {
		if m.Says.GetWindowMs() > 0 {
			t.Told++
		}
		for _, l := range m.Says.GetLimits() {
			refused[l.GetName()] += l.GetRefused()
			total += l.GetRefused()
		}
	}
	t.Lately = page.Count(int64(total))
	for _, state := range states {
		one := rowOf(state, refused[state.GetLimit().GetName()])
		if t.Told == 0 {
			one.Lately = "–"
		}
		if one.share >= chart.Nearly {
			t.Near++
		}
		if one.lately > 0 {
			t.Refusing++
		}
		t.Rows = append(t.Rows, one)
	}
	slices.SortStableFunc(t.Rows, func(a, b row) int {
		return cmp.Or(-cmp.Compare(rank(&a), rank(&b)), -cmp.Compare(a.share, b.share), -cmp.Compare(a.lately, b.lately),
			cmp.Compare(a.Name, b.Name))
	})
	return t
}

// rank puts first what somebody has to look at.
func rank(r *row) int {
	switch {
	case r.share >= chart.Nearly:
		return 2
	case r.lately > 0:
		return 1
	}
	return 0
}

// held says why no limit can be set, if the feature level of the cluster forbids it.
func held(all *observed.Answer) string {
	if active := all.Config.GetLevel(); active != 0 && active < uint32(level.Second) {
		return fmt.Sprintf("Limits need feature level %d, and level %d is active: all members must run release 1.1 or later.",
			level.Second, active)
	}
	return ""
}

func rowOf(state *quoratepb.LimitState, lately uint64) row {
	l := state.GetLimit()
	link := url.QueryEscape(l.GetName())
	r := row{Name: l.GetName(), Of: subjectOf(l), Allows: allowsOf(l), lately: lately, Lately: page.Count(int64(lately)),
		Refused: page.Count(int64(state.GetRefused())), Edit: setPath + "?from=" + link, Delete: deletePath + "?name=" + link}
	r.uses(state)
	switch {
	case r.Counting != "":
		r.Look, r.Word = "busy", "being counted"
	case r.share >= 1:
		r.Look, r.Word = "bad", "full"
	case r.share >= chart.Nearly:
		r.Look, r.Word = "bad", "nearly full"
	case lately > 0:
		r.Look, r.Word = "warn", "refuses"
	}
	return r
}

// uses adds how much there is of what a quota allows.
func (r *row) uses(state *quoratepb.LimitState) {
	l := state.GetLimit()
	if !hasQuota(l) {
		return
	}
	if state.GetCounting() {
		r.Counting = fmt.Sprintf("%s keys so far", page.Count(state.GetUsedKeys()))
		return
	}
	if l.QuotaBytes != nil {
		r.use(state.GetUsedBytes(), l.GetQuotaBytes(), page.Bytes(state.GetUsedBytes())+" of "+sizeOf(l.GetQuotaBytes()))
	}
	if l.QuotaKeys != nil {
		r.use(state.GetUsedKeys(), l.GetQuotaKeys(),
			page.Count(state.GetUsedKeys())+" of "+page.Count(l.GetQuotaKeys())+" keys")
	}
}

// use adds a quota that is used so far.
func (r *row) use(has, most int64, text string) {
	share := shareOf(has, most)
	r.share = max(r.share, share)
	text += ", " + page.Percent(share)
	r.Uses = append(r.Uses, use{text, chart.Fullness(share), chart.Meter(text, share)})
}

// shareOf is how much is used of a quota. One of nothing is full.
func shareOf(has, most int64) float64 {
	if most <= 0 {
		return 1
	}
	return float64(max(has, 0)) / float64(most)
}

func hasQuota(l *quoratepb.Limit) bool { return l.QuotaBytes != nil || l.QuotaKeys != nil }

// subjectOf says whose requests a limit is about, and at which keys.
func subjectOf(l *quoratepb.Limit) []string {
	who := "every user"
	switch {
	case l.GetUser() != "":
		who = "user " + page.Name(l.GetUser())
	case hasQuota(l) && !hasRate(l):
		who = "everybody"
	}
	switch {
	case l.Prefix == nil:
		return []string{who, "any key"}
	case len(l.GetPrefix()) == 0:
		return []string{who, "every key"}
	}
	return []string{who, page.Name(string(l.GetPrefix())) + "…"}
}

func hasRate(l *quoratepb.Limit) bool {
	return l.WritesPerSecond != nil || l.WriteBytesPerSecond != nil || l.ReadsPerSecond != nil || l.ReadBytesPerSecond != nil ||
		l.ValueBytes != nil
}

// words say what each bound allows, in the order of wording.LimitBounds.
var words = []string{"%s writes/s", "%s/s written", "%s reads/s", "%s/s read", "values up to %s", "%s in all", "%s keys in all"}

// allowsOf says what a limit lets pass, a phrase for each bound.
func allowsOf(l *quoratepb.Limit) (all []string) {
	for i, b := range wording.LimitBounds {
		if most := *b.Field(l); most != nil {
			all = append(all, fmt.Sprintf(words[i], figure(*most, b.Bytes)))
		}
	}
	return all
}

func figure(n int64, size bool) string {
	if size {
		return sizeOf(n)
	}
	return page.Count(n)
}

// sizeOf is a size as it was typed, where that is a whole number of a unit.
func sizeOf(n int64) string {
	for i, unit := range []string{"TiB", "GiB", "MiB", "KiB"} {
		if one := int64(1) << (10 * (4 - i)); n >= one && n%one == 0 {
			return page.Count(n/one) + " " + unit
		}
	}
	return page.Bytes(n)
}

func help(context.Context, *page.Request) (any, error) { return nil, nil }
