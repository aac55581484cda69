package alarms

import (
	"cmp"
	"context"
	"slices"

	"github.com/quorate/quorate/internal/console/observed"
	"github.com/quorate/quorate/internal/console/page"
)

// mostCertificates is how many certificates are shown, those first that end first.
const mostCertificates = 64

// certificateTable are certificates of all members.
type certificateTable struct {
	Rows   []certificateRow
	Left   int
	Silent int // members that did not answer
}

// certificateRow is one certificate, authority or revocation list.
type certificateRow struct {
	Member, To, Name, Until string
	Left, Look              string
	until                   int64
}

func certificates(ctx context.Context, r *page.Request) (any, error) {
	all, err := observed.Ask(ctx, r)
	if err != nil {
		return nil, err
	}
	var p certificateTable
	for _, m := range all.Members {
		if m.Says == nil {
			p.Silent++
		}
		for _, c := range m.Says.GetCertificates() {
			one := certificateRow{Member: m.Name, To: "/members?member=" + observed.Hex(m.ID), Name: observed.Certificate(c),
				Until: page.Moment(c.GetUntilMs()), until: c.GetUntilMs()}
			one.Left, one.Look = observed.Ends(c, m.Says.GetNowMs())
			p.Rows = append(p.Rows, one)
		}
	}
	slices.SortStableFunc(p.Rows, func(a, b certificateRow) int { return cmp.Compare(a.until, b.until) })
	p.Left = max(0, len(p.Rows)-mostCertificates)
	p.Rows = p.Rows[:len(p.Rows)-p.Left]
	return p, nil
}
