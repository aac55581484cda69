package autopilot_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/autopilot"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/transport"
)

// lookout is a Finder of a cluster whose members answer where at says.
type lookout struct {
	view *membership.View
	at   map[consensus.MemberID]string
}

func (l *lookout) Config() consensus.Config                          { return l.view.Config }
func (l *lookout) Started(consensus.MemberID) bool                   { return true }
func (l *lookout) Describe(context.Context) (membership.View, error) { return *l.view, nil }
func (l *lookout) confirm(request *consensus.ChangeRequest, demand membership.Caution) error {
	return autopilot.NewAddresses(l, slog.New(slog.DiscardHandler)).Confirm(context.Background(), request, demand)
}

func (l *lookout) Find(_ context.Context, id consensus.MemberID, url string) (transport.Presence, error) {
	if l.at[id] == url {
		return transport.Present, nil
	}
	return transport.Silent, nil
}

// Ensure that the former URLs stay until the member is found at the new ones, also if the same update is asked for again.
func TestAddresses_Confirm_again(t *testing.T) {
	const before, after = "http://0000000000000002", "http://elsewhere"
	l := &lookout{view: threeVoters(), at: map[consensus.MemberID]string{2: before}}
	ask := func() []string {
		request := consensus.ChangeOne(consensus.ChangeUpdate, consensus.Member{ID: 2, PeerURLs: []string{after}})
		if err := l.confirm(&request, membership.Lenient); err != nil {
			t.Fatal(err)
		}
		return request.Steps[0].Member.FormerURLs
	}
	m := &l.view.Config.Members[1]
	m.PeerURLs = []string{before}
	first := ask()
	m.PeerURLs, m.FormerURLs = []string{after}, first
	if again := ask(); !slices.Equal(first, []string{before}) || !slices.Equal(again, first) {
		t.Errorf("the former URLs are %q, and %q after the same request again, want %q", first, again, before)
	}
	l.at[2] = after
	if found := ask(); len(found) > 0 {
		t.Errorf("the former URLs are %q after the member was found", found)
	}
}
