package autopilot_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/reconfig"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/membership/autopilot"
	"github.com/quorate/quorate/internal/transport"
)

// lagging is a member that has not applied the last configuration, which the leader describes.
type lagging struct {
	sees
	applied consensus.Config
}

func (l *lagging) Config() consensus.Config { return l.applied }

// Ensure that an update is looked at by the configuration in force, and bound to it, also by a member that has applied an older
// one, by which nothing would change.
func TestAddresses_Confirm_lagging(t *testing.T) {
	const old, now, former = "http://old2:2380", "http://now2:2380", "http://former2:2380"
	for name, row := range map[string]struct{ urls, former []string }{ // in force
		"back to what the member that is asked has":   {[]string{now}, nil},
		"the URL stays, and the former one is needed": {[]string{old}, []string{former}},
	} {
		view := threeVoters()
		view.ID = consensus.ConfigID{Index: 20, Term: 2}
		view.Config.Members[1].PeerURLs, view.Config.Members[1].FormerURLs = row.urls, row.former
		l := &lagging{sees: sees{3, view, map[string]consensus.MemberID{now: 2, former: 2}}}
		l.applied = threeVoters().Config
		l.applied.Members[1].PeerURLs = []string{old}
		r := consensus.ChangeOne(consensus.ChangeUpdate, consensus.Member{ID: 2, PeerURLs: []string{old}})
		err := autopilot.NewAddresses(l, slog.New(slog.DiscardHandler)).Confirm(t.Context(), &r, membership.Cautious)
		next, why := reconfig.Next(&view.Config, view.ID, &r, &reconfig.Facts{})
		if after, _ := next.Config.Member(2); err == nil && why == consensus.ReasonNone {
			t.Errorf("%s: the update is taken: %q, former %q", name, after.PeerURLs, after.FormerURLs)
		}
		if err == nil && r.Expected != view.ID {
			t.Errorf("%s: the update is bound to %v", name, r.Expected)
		}
	}
}

// blinking is a Finder that misses a member once.
type blinking struct {
	sees
	at   string
	seen bool
}

func (b *blinking) Find(ctx context.Context, id consensus.MemberID, url string) (transport.Presence, error) {
	if url == b.at && !b.seen {
		b.seen = true
		return transport.Silent, nil
	}
	return b.sees.Find(ctx, id, url)
}

// Ensure that one look that fails does not undo an update of a member which was started with other URLs, and tells these again and
// again.
func TestRequests_Moved_missedOnce(t *testing.T) {
	const forgotten, updated = "http://localhost:2390", "http://10.0.0.2:2390"
	view := threeVoters()
	view.Config.Members[1].PeerURLs = []string{updated}
	s := &blinking{sees: sees{1, view, map[string]consensus.MemberID{forgotten: 2, updated: 2}}, at: updated}
	cluster := &changed{}
	requests := autopilot.NewRequests(cluster, autopilot.NewAddresses(s, slog.New(slog.DiscardHandler)), autopilot.RequestOptions{})
	if err := requests.Moved(t.Context(), 2, []string{forgotten}); err != nil || !s.seen {
		t.Errorf("%v, and it was looked for: %v", err, s.seen)
	}
	for _, r := range cluster.requests {
		if got := r.Steps[0].Member.DialURLs(); !slices.Contains(got, updated) {
			t.Errorf("member 2 is dialled at %q from now on", got)
		}
	}
}
