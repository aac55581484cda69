package traffic

import (
	"context"
	"embed"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/console/page"
)

//go:embed *.html
var templates embed.FS

// Page returns the page.
func Page() page.Page {
	section := func(id, title string, wide bool, load func([]member) (any, error)) page.Section {
		return page.Section{ID: id, Title: title, Live: true, Wide: wide, Template: id, Load: with(load)}
	}
	drawn := func(id, title string, load func([]member) (any, error)) page.Section {
		s := section(id, title, false, load)
		s.Template = "traffic-chart"
		return s
	}
	slow := section("traffic-slow", "Which member is slow?", true, func(all []member) (any, error) { return compare(all), nil })
	slow.Command = page.Is("doctor", "--through-member")
	trips := section("traffic-trips", "Writes in one round trip", false, trips)
	trips.Command = page.Is("latency")
	return page.Page{
		Path: "/traffic", Name: "Traffic",
		About:     "How calls of clients go, member by member, in the last minute.",
		Templates: templates,
		Sections: []page.Section{
			slow,
			section("traffic-members", "Members", true, table),
			trips,
			section("traffic-split", "Where the time of a write goes", false, split),
			drawn("traffic-writes", "Writes a second", chartOf(writes)),
			drawn("traffic-reads", "Reads a second", chartOf(reads)),
			drawn("traffic-puts", "The slowest put of a hundred (p99)", chartOf(puts)),
			drawn("traffic-syncs", "The slowest sync of a hundred (p99)", chartOf(syncs)),
			drawn("traffic-share", "Share of writes by the fast path", chartOf(shares)),
		},
	}
}

// with loads what members observe. All sections of a look ask for the same, which the member that is asked collects once.
func with(show func([]member) (any, error)) func(context.Context, *page.Request) (any, error) {
	return func(ctx context.Context, r *page.Request) (any, error) {
		all, err := quoratepb.NewDoctorClient(r.Conn).Collect(ctx, &quoratepb.CollectRequest{Series: true})
		if err != nil {
			return nil, err
		}
		return show(membersOf(all))
	}
}
