package autopilot_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/membership/autopilot"
	"github.com/quorate/quorate/internal/transport"
)

// Ensure that a member that runs where it was does not undo an update that an operator made before the move (etcd's order), whether
// it tells that it is there or not.
func TestRequests_Moved_beforeTheMove(t *testing.T) {
	const before, after = "http://before:2380", "http://after:2380"
	l := &lookout{view: threeVoters(), at: map[consensus.MemberID]string{2: before}}
	m := &l.view.Config.Members[1]
	m.PeerURLs = []string{before}
	request := consensus.ChangeOne(consensus.ChangeUpdate, consensus.Member{ID: 2, PeerURLs: []string{after}})
	if err := l.confirm(&request, membership.Lenient); err != nil {
		t.Fatal(err)
	}
	m.PeerURLs, m.FormerURLs = []string{after}, request.Steps[0].Member.FormerURLs
	if !slices.Equal(m.FormerURLs, []string{before}) {
		t.Fatalf("the former URLs are %q", m.FormerURLs)
	}
	cluster := &changed{}
	requests := autopilot.NewRequests(cluster, autopilot.NewAddresses(l, slog.New(slog.DiscardHandler)),
		autopilot.RequestOptions{})
	if err := requests.Moved(t.Context(), 2, []string{before}); err != nil || len(cluster.requests) > 0 {
		t.Errorf("the update is changed by %v (%v)", cluster.requests, err)
	}
}

// hooked is a lookout at which something happens whenever a member looks.
type hooked struct {
	*lookout
	during func()
}

func (h *hooked) Find(ctx context.Context, id consensus.MemberID, url string) (transport.Presence, error) {
	h.during()
	return h.lookout.Find(ctx, id, url)
}

// Ensure that what a leader repairs depends on the configuration that it looked at: an update that is acknowledged meanwhile stays.
func TestRequests_repairsWhatItSaw(t *testing.T) {
	const former, now, next, there = "http://former:2380", "http://now:2380", "http://next:2380", "http://there:2380"
	seen, later := consensus.ConfigID{Index: 7, Term: 1}, consensus.ConfigID{Index: 8, Term: 1}
	for name, row := range map[string]struct {
		at     string
		former []string
		do     func(*autopilot.Requests)
	}{
		"one that is found where it is to be": {now, []string{former}, func(r *autopilot.Requests) { r.SettleAddresses(t.Context()) }},
		"one whose new URLs mislead":          {former, []string{former}, func(r *autopilot.Requests) { r.SettleAddresses(t.Context()) }},
		"one that tells where it is":          {there, nil, func(r *autopilot.Requests) { _ = r.Moved(t.Context(), 2, []string{there}) }},
	} {
		l := &lookout{view: threeVoters(), at: map[consensus.MemberID]string{2: row.at}}
		l.view.ID = seen
		if row.at == former {
			l.strangers = map[string]*transport.NoPeerPortError{now: {Text: "that is a client port"}}
		}
		m := &l.view.Config.Members[1]
		m.PeerURLs, m.FormerURLs = []string{now}, row.former
		h := &hooked{l, func() {}}
		updated := false
		cluster := &changed{}
		h.during = func() { // an operator's update commits
			config := l.view.Config.Clone()
			config.Members[1].PeerURLs, config.Members[1].FormerURLs = []string{next}, []string{now}
			l.view.Config, l.view.ID, updated = config, later, true
		}
		row.do(autopilot.NewRequests(cluster, autopilot.NewAddresses(h, slog.New(slog.DiscardHandler)),
			autopilot.RequestOptions{}))
		for _, r := range cluster.requests {
			if r.Expected != seen && r.Expected != later {
				t.Errorf("%s: a change expects configuration %v", name, r.Expected)
			}
			if got := r.Steps[0].Member; r.Expected == later && !slices.Contains(got.DialURLs(), next) {
				t.Errorf("%s: %q takes the place of the update to %q", name, got.PeerURLs, next)
			}
		}
		if !updated {
			t.Errorf("%s: nobody looked", name)
		}
	}
}
