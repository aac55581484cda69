package autopilot_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/reconfig"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/membership/autopilot"
	"github.com/quorate/quorate/internal/transport"
)

// sees is a Finder with one vantage point: who answers at which URL, as seen from there.
type sees struct {
	self consensus.MemberID
	view *membership.View
	at   map[string]consensus.MemberID
}

func (s *sees) Self() consensus.MemberID                          { return s.self }
func (s *sees) Config() consensus.Config                          { return s.view.Config }
func (s *sees) Started(consensus.MemberID) bool                   { return true }
func (s *sees) Describe(context.Context) (membership.View, error) { return *s.view, nil }
func (s *sees) Find(_ context.Context, id consensus.MemberID, url string) (transport.Presence, error) {
	switch who := s.at[url]; who {
	case consensus.NoMember:
		return transport.Silent, nil
	case id:
		return transport.Present, nil
	default:
		return transport.Another, nil
	}
}

func (s *sees) addresses() *autopilot.Addresses {
	return autopilot.NewAddresses(s, slog.New(slog.DiscardHandler))
}

func (s *sees) requests(c autopilot.Cluster) *autopilot.Requests {
	return autopilot.NewRequests(c, s.addresses(), autopilot.RequestOptions{})
}

// in brings a change into force.
func (s *sees) in(m *consensus.Member) {
	for i := range s.view.Config.Members {
		if known := &s.view.Config.Members[i]; known.ID == m.ID {
			known.PeerURLs, known.FormerURLs = m.PeerURLs, m.FormerURLs
		}
	}
}

// Ensure that a URL which leads to a member from that member only (localhost, its own /etc/hosts) takes no URL of it away, and is
// repaired: by the leader, and by a member that tells where it is if it was accepted by an earlier build.
func TestAddresses_Confirm_byItself(t *testing.T) {
	const loop, real = "http://localhost:2380", "http://10.0.0.2:2380"
	view := threeVoters()
	view.Config.Members[1].PeerURLs = []string{real}
	self := &sees{2, view, map[string]consensus.MemberID{loop: 2, real: 2}}
	leader := &sees{1, view, map[string]consensus.MemberID{loop: 1, real: 2}}
	request := consensus.ChangeOne(consensus.ChangeUpdate, consensus.Member{ID: 2, PeerURLs: []string{loop}})
	if err := self.addresses().Confirm(t.Context(), &request, membership.Lenient); err != nil {
		t.Fatal(err)
	}
	if got := request.Steps[0].Member.FormerURLs; !slices.Equal(got, []string{real}) {
		t.Errorf("member 2 found itself, and keeps %q beside it", got)
	}
	self.in(&request.Steps[0].Member)
	again := consensus.ChangeOne(consensus.ChangeUpdate, consensus.Member{ID: 2, PeerURLs: []string{loop}})
	if err := self.addresses().Confirm(t.Context(), &again, membership.Lenient); err != nil ||
		!slices.Equal(again.Steps[0].Member.FormerURLs, []string{real}) {
		t.Errorf("the same again keeps %q beside it, %v", again.Steps[0].Member.FormerURLs, err)
	}
	cluster := &changed{}
	leader.requests(cluster).SettleAddresses(t.Context())
	if len(cluster.requests) != 1 || !slices.Equal(cluster.requests[0].Steps[0].Member.PeerURLs, []string{real}) {
		t.Errorf("the leader, who finds itself there, changed %+v", cluster.requests)
	}
	self.in(&consensus.Member{ID: 2, PeerURLs: []string{loop}})
	var telling autopilot.Telling
	telling.Told(&view.Config, 2)
	for range autopilot.TellAgain - 1 {
		if telling.Look(&view.Config, 2) {
			t.Fatal("it tells too often")
		}
	}
	if news := self.addresses().Announce(t.Context(), 2, []string{real}, telling.Again()); !telling.Look(&view.Config, 2) || !news.Tells {
		t.Errorf("the leader cannot find member 2, and member 2 does not tell: %+v", news)
	}
	cluster = &changed{}
	if err := leader.requests(cluster).Moved(t.Context(), 2, []string{real}); err != nil || len(cluster.requests) != 1 {
		t.Errorf("the leader is told, and changes %v, %v", cluster.requests, err)
	}
}

// Ensure that the word of a member about a URL at which it is not, beside one at which it is, takes that URL from no other.
func TestRequests_Moved_listWithAnother(t *testing.T) {
	const old, next, elsewhere = "http://old2:2380", "http://new2:2380", "http://new3:2380"
	view := threeVoters()
	m := &view.Config.Members[1]
	m.PeerURLs, m.FormerURLs = []string{next}, []string{old}
	s := &sees{0, view, map[string]consensus.MemberID{old: 2, elsewhere: 3}} // no process at next yet
	cluster := &changed{}
	err := s.requests(cluster).Moved(t.Context(), 3, []string{elsewhere, next})
	if got := steps(cluster); err != nil || got != "3:[http://new3:2380]-[]" {
		t.Errorf("member 3 tells two URLs, and is at one: %s, %v", got, err)
	}
	cluster = &changed{}
	if err := s.requests(cluster).Moved(t.Context(), 3, []string{next}); err == nil || len(cluster.requests) > 0 {
		t.Errorf("member 3 tells the URL of member 2: %s, %v", steps(cluster), err)
	}
}

// steps are all steps of all requests: who gets which URLs, and keeps which former ones.
func steps(c *changed) string {
	var all []string
	for _, r := range c.requests {
		for i := range r.Steps {
			m := &r.Steps[i].Member
			all = append(all, fmt.Sprintf("%d:%v-%v", m.ID, m.PeerURLs, m.FormerURLs))
		}
	}
	return strings.Join(all, " ")
}

// Ensure that a member which moves to a former URL of another one, a typo that was corrected, does not undo the correction.
func TestRequests_Moved_toFormer(t *testing.T) {
	const old, typo, next = "http://old2:2380", "http://typo:2380", "http://new2:2380"
	view := threeVoters()
	m := &view.Config.Members[1]
	m.PeerURLs = []string{old}
	s := &sees{0, view, map[string]consensus.MemberID{old: 2}}
	for _, url := range []string{typo, next} { // the operator mistypes, and corrects it
		r := consensus.ChangeOne(consensus.ChangeUpdate, consensus.Member{ID: 2, PeerURLs: []string{url}})
		if err := s.addresses().Confirm(t.Context(), &r, membership.Lenient); err != nil {
			t.Fatal(err)
		}
		m.PeerURLs, m.FormerURLs = r.Steps[0].Member.PeerURLs, r.Steps[0].Member.FormerURLs
	}
	s.at[typo] = 3 // to which it belongs
	cluster := &changed{}
	err := s.requests(cluster).Moved(t.Context(), 3, []string{typo})
	if got := steps(cluster); err != nil || got != "3:[http://typo:2380]-[] 2:[http://new2:2380]-[http://old2:2380]" {
		t.Errorf("member 3 is at the typo: %s, %v", got, err)
	}
	view.Config.Members[2].PeerURLs = []string{"http://old3:2380"}
	if _, why := reconfig.Next(&view.Config, view.ID, cluster.requests[0], &reconfig.Facts{}); why != consensus.ReasonNone {
		t.Errorf("the change is refused: %v", why)
	}
}

// Ensure that a leader does not confirm its own URLs, and drop the only one that others reach.
func TestRequests_SettleAddresses_itself(t *testing.T) {
	const alias, real = "http://node1:2380", "http://10.0.0.1:2380" // node1 is 127.0.1.1 in its own /etc/hosts
	view := threeVoters()
	m := &view.Config.Members[0]
	m.PeerURLs = []string{real}
	other := &sees{0, view, map[string]consensus.MemberID{real: 1}} // cannot resolve node1
	r := consensus.ChangeOne(consensus.ChangeUpdate, consensus.Member{ID: 1, PeerURLs: []string{alias}})
	if err := other.addresses().Confirm(t.Context(), &r, membership.Lenient); err != nil {
		t.Fatal(err)
	}
	m.PeerURLs, m.FormerURLs = r.Steps[0].Member.PeerURLs, r.Steps[0].Member.FormerURLs
	self := &sees{1, view, map[string]consensus.MemberID{alias: 1, real: 1}}
	cluster := &changed{}
	self.requests(cluster).SettleAddresses(t.Context())
	if len(cluster.requests) > 0 {
		t.Errorf("by its own word the leader is at %s, where no other member finds it: %s", alias, steps(cluster))
	}
	next := &sees{2, view, map[string]consensus.MemberID{alias: 1, real: 1}}
	next.requests(cluster).SettleAddresses(t.Context())
	if got := steps(cluster); got != "1:[http://node1:2380]-[]" {
		t.Errorf("the next leader finds it: %s", got)
	}
}

// Ensure that an operator's change is bound to the configuration that was looked at.
func TestAddresses_Confirm_bound(t *testing.T) {
	const old, there, x = "http://old2:2380", "http://there:2380", "http://x:2380"
	view := threeVoters()
	m := &view.Config.Members[1]
	m.PeerURLs = []string{old}
	view.ID = consensus.ConfigID{Index: 7, Term: 1}
	s := &sees{0, view, map[string]consensus.MemberID{there: 2}}
	r := consensus.ChangeOne(consensus.ChangeUpdate, consensus.Member{ID: 2, PeerURLs: []string{x}})
	if err := s.addresses().Confirm(t.Context(), &r, membership.Lenient); err != nil {
		t.Fatal(err)
	}
	if r.Expected != view.ID {
		t.Errorf("the change is bound to %v, not to %v", r.Expected, view.ID)
	}
	r.Expected = consensus.ConfigID{Index: 3, Term: 1}
	if err := s.addresses().Confirm(t.Context(), &r, membership.Lenient); err != nil || r.Expected.Index != 3 {
		t.Errorf("one that is bound already is bound to %v, %v", r.Expected, err)
	}
}

// Ensure that a member says it that does not answer where both its flag and the configuration have it.
func TestAddresses_Announce_elsewhere(t *testing.T) {
	const old, next = "http://old2:2380", "http://new2:2380"
	view := threeVoters()
	view.Config.Members[1].PeerURLs = []string{old}
	s := &sees{2, view, map[string]consensus.MemberID{next: 2}}
	if news := s.addresses().Announce(t.Context(), 2, []string{old}, false); !news.Done || news.Wrong == "" {
		t.Errorf("it is at %s, and announces %+v", next, news)
	}
	s.at[old] = 2
	if news := s.addresses().Announce(t.Context(), 2, []string{old}, false); !news.Done || news.Wrong != "" {
		t.Errorf("it is where it is to be, and announces %+v", news)
	}
}

// Ensure that an update which waits for a member to move stays when the member tells that it is elsewhere meanwhile, unless it
// leads to another process.
func TestRequests_Moved_waitsToMove(t *testing.T) {
	const old, there, next = "http://old2:2380", "http://there2:2380", "http://new2:2380"
	for _, row := range []struct {
		at   map[string]consensus.MemberID
		want string
	}{
		{map[string]consensus.MemberID{there: 2}, "2:[http://new2:2380]-[http://old2:2380 http://there2:2380]"},
		{map[string]consensus.MemberID{there: 2, next: 3}, "2:[http://there2:2380]-[]"},
		{map[string]consensus.MemberID{}, ""},
	} {
		view := threeVoters()
		view.Config.Members[1].PeerURLs, view.Config.Members[1].FormerURLs = []string{next}, []string{old}
		cluster := &changed{}
		s := &sees{1, view, row.at}
		err := s.requests(cluster).Moved(t.Context(), 2, []string{there})
		if got := steps(cluster); got != row.want || (err != nil) != (row.want == "") {
			t.Errorf("%v: %s, %v", row.at, got, err)
		}
		if row.want == "" {
			continue
		}
		if _, why := reconfig.Next(&view.Config, view.ID, cluster.requests[0], &reconfig.Facts{}); why != consensus.ReasonNone {
			t.Errorf("the change is refused: %v", why)
		}
	}
}

// Ensure that the move of a leader is judged by the member that it tells, and not by itself; and that an update of a leader that
// has moved is confirmed, which it cannot do itself.
func TestRequests_Moved_leader(t *testing.T) {
	const old, here = "http://old1:2380", "http://here1:2380"
	for _, row := range []struct {
		urls, former []string
		at           map[string]consensus.MemberID
		want         string
	}{
		{[]string{old}, nil, map[string]consensus.MemberID{here: 1}, "1:[http://here1:2380]-[]"},
		{[]string{here}, []string{old}, map[string]consensus.MemberID{here: 1}, "1:[http://here1:2380]-[]"},
		{[]string{here}, []string{old}, map[string]consensus.MemberID{}, ""},
		{[]string{here}, []string{old}, map[string]consensus.MemberID{here: 3, old: 1}, ""},
		{[]string{old}, nil, map[string]consensus.MemberID{here: 1, old: 1}, ""}, // it is still there
	} {
		view := threeVoters()
		view.Config.Members[0].PeerURLs, view.Config.Members[0].FormerURLs = row.urls, row.former
		leader, told := &sees{1, view, row.at}, &sees{2, view, row.at}
		news := leader.addresses().Announce(t.Context(), 1, []string{here}, false)
		if found := row.at[here] == 1; news.Tells != found || found && !slices.Equal(news.Ask, []consensus.MemberID{2, 3}) {
			t.Errorf("from %q, %q: it tells %+v", row.urls, row.former, news)
		}
		if autopilot.LeaderLooks(1, 1) || !autopilot.LeaderLooks(1, 2) {
			t.Error("the leader looks for itself, or not for others")
		}
		cluster := &changed{}
		if err := leader.requests(cluster).Moved(t.Context(), 1, []string{here}); !errors.Is(err, autopilot.ErrOwnAddress) {
			t.Errorf("it finds itself: %s, %v", steps(cluster), err)
		}
		err := told.requests(cluster).Moved(t.Context(), 1, []string{here})
		if got := steps(cluster); got != row.want {
			t.Errorf("from %q, %q: %s, %v", row.urls, row.former, got, err)
		}
	}
}

// Ensure that a leader without others, which tells itself where it is, does not believe its own sight: those that join dial it
// where it was, too, until one of them finds it where it says.
func TestRequests_Moved_itself(t *testing.T) {
	const alias, old, here = "http://localhost:2380", "http://old1:2380", "http://here1:2380"
	for _, row := range []struct {
		urls, former []string
		at           map[string]consensus.MemberID
		want         string
	}{
		{[]string{alias}, []string{old}, map[string]consensus.MemberID{alias: 1, here: 1},
			"1:[http://localhost:2380]-[http://old1:2380 http://here1:2380]"},
		{[]string{alias}, nil, map[string]consensus.MemberID{alias: 1, here: 1}, "1:[http://here1:2380]-[http://localhost:2380]"},
		{[]string{old}, nil, map[string]consensus.MemberID{here: 1}, "1:[http://here1:2380]-[http://old1:2380]"},
		{[]string{old}, nil, map[string]consensus.MemberID{}, ""},
		{[]string{old, here}, nil, map[string]consensus.MemberID{here: 1}, ""},
		{[]string{here}, []string{old}, map[string]consensus.MemberID{here: 1}, ""}, // no process confirms it
	} {
		view := threeVoters()
		view.Config.Members[0].PeerURLs, view.Config.Members[0].FormerURLs = row.urls, row.former
		view.Config.Members, view.Config.Voters = view.Config.Members[:1], view.Config.Voters[:1]
		cluster := &changed{}
		s := &sees{1, view, row.at}
		err := s.requests(cluster).Moved(t.Context(), 1, []string{here})
		if got := steps(cluster); got != row.want {
			t.Errorf("from %q, %q: %s, %v", row.urls, row.former, got, err)
		}
		if row.want == "" {
			continue
		}
		if _, why := reconfig.Next(&view.Config, view.ID, cluster.requests[0], &reconfig.Facts{}); why != consensus.ReasonNone {
			t.Errorf("the change is refused: %v", why)
		}
	}
}

// Ensure that a leader whose new URLs lead to another process gets its former ones back, also those at which it does not find itself.
func TestRequests_SettleAddresses_itselfMisled(t *testing.T) {
	const others, far, near = "http://six:2380", "http://far1:2380", "http://near1:2380"
	view := threeVoters()
	view.Config.Members[0].PeerURLs, view.Config.Members[0].FormerURLs = []string{others}, []string{far, near}
	cluster := &changed{}
	(&sees{1, view, map[string]consensus.MemberID{others: 3, near: 1}}).requests(cluster).SettleAddresses(t.Context())
	if got, want := steps(cluster), "1:[http://far1:2380 http://near1:2380]-[]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Ensure that members which have taken each other's place are updated also if an update of one of them waits for it to move.
func TestRequests_Moved_swapped(t *testing.T) {
	const one, two = "http://one:2380", "http://two:2380"
	view := threeVoters()
	view.Config.Members[0].PeerURLs = []string{one}
	view.Config.Members[1].PeerURLs, view.Config.Members[1].FormerURLs = []string{two}, []string{one}
	s := &sees{2, view, map[string]consensus.MemberID{one: 2, two: 1}}
	cluster := &bounded{view: view}
	err := s.requests(cluster).Moved(t.Context(), 1, []string{two})
	if got, want := steps(&cluster.changed), "1:[http://two:2380]-[] 2:[http://one:2380]-[]"; err != nil || got != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
}

// bounded is a Cluster that refuses what the core refuses.
type bounded struct {
	changed
	view *membership.View
}

func (c *bounded) Change(ctx context.Context, request *consensus.ChangeRequest) error {
	_, why := reconfig.Next(&c.view.Config, c.view.ID, request, &reconfig.Facts{})
	if why != consensus.ReasonNone {
		return &membership.RefusedError{Reason: why}
	}
	return c.changed.Change(ctx, request)
}

// Ensure that a member which is asked itself, again and again, keeps as many former URLs as there may be, and is not stuck.
func TestAddresses_Confirm_byItselfOften(t *testing.T) {
	view := threeVoters()
	m := &view.Config.Members[1]
	m.PeerURLs = []string{"http://0:2380"}
	s := &sees{2, view, map[string]consensus.MemberID{}}
	for i := range 3 * membership.MaxFormer {
		url := fmt.Sprintf("http://%d:2380", i+1)
		s.at[url] = 2
		r := consensus.ChangeOne(consensus.ChangeUpdate, consensus.Member{ID: 2, PeerURLs: []string{url}})
		if err := s.addresses().Confirm(t.Context(), &r, membership.Cautious); err != nil {
			t.Fatalf("update %d: %v", i, err)
		}
		s.in(&r.Steps[0].Member)
	}
	if n := len(m.FormerURLs); n != membership.MaxFormer || m.FormerURLs[n-1] != fmt.Sprintf("http://%d:2380", 3*n-1) {
		t.Errorf("it keeps %q", m.FormerURLs)
	}
}

// Ensure that a leader which is where the configuration has another member, that is found nowhere, waits until that one is found:
// else no update of that one could be made. And that one whose URLs lead to another process leaves them.
func TestRequests_Moved_itselfTaken(t *testing.T) {
	const one, two, here = "http://one:2380", "http://two:2380", "http://here:2380"
	view := threeVoters()
	view.Config.Members[0].PeerURLs, view.Config.Members[1].PeerURLs = []string{one}, []string{two}
	cluster := &bounded{view: view}
	s := &sees{2, view, map[string]consensus.MemberID{one: 2}}
	if err := s.requests(cluster).Moved(t.Context(), 2, []string{one}); err == nil || len(cluster.requests) > 0 {
		t.Errorf("member 1 is found nowhere: %s, %v", steps(&cluster.changed), err)
	}
	s = &sees{2, view, map[string]consensus.MemberID{one: 2, here: 1}}
	err := s.requests(cluster).Moved(t.Context(), 1, []string{here})
	if got, want := steps(&cluster.changed), "1:[http://here:2380]-[]"; err != nil || got != want {
		t.Errorf("member 1, which leads, tells member 2: %s, %v, want %s", got, err, want)
	}
}
