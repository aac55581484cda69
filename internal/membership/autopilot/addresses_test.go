package autopilot_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/membership/autopilot"
	"github.com/quorate/quorate/internal/transport"
)

// lookout is a Finder of a cluster whose members answer where at says.
type lookout struct {
	view *membership.View
	self consensus.MemberID // that looks
	at   map[consensus.MemberID]string
	// strangers are at URLs of others.
	strangers map[string]*transport.NoPeerPortError
	empty     string // where a process without data was started as every member
}

func (l *lookout) Self() consensus.MemberID                          { return l.self }
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
	if other := l.strangers[url]; other != nil {
		return transport.NoPeerPort, other
	}
	if url == l.empty {
		return transport.Empty, nil
	}
	return transport.Silent, nil
}

// Ensure that a member's word that it has moved takes no URLs of another one while it does not answer there.
func TestRequests_Moved_takenByAWord(t *testing.T) {
	const now, others = "http://now:2380", "http://others:2380"
	cluster := &changed{}
	l := &lookout{view: threeVoters(), at: map[consensus.MemberID]string{2: others, 3: "http://elsewhere:2380"}}
	l.view.Config.Members[1].PeerURLs, l.view.Config.Members[1].FormerURLs = []string{now}, []string{others}
	requests := autopilot.NewRequests(cluster, autopilot.NewAddresses(l, slog.New(slog.DiscardHandler)),
		autopilot.RequestOptions{})
	if err := requests.Moved(t.Context(), 3, []string{now}); err == nil || len(cluster.requests) > 0 {
		t.Errorf("nobody is at the new URL: %v, and %d changes", err, len(cluster.requests))
	}
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

// Ensure that no URL is dropped at which a member may still be, because it did not answer there in the moment of another
// update; that there is a bound; and that what is restored are those at which it answers.
func TestAddresses_Confirm_unconfirmedStay(t *testing.T) {
	const wrong, right, worse = "http://wrong", "http://right", "http://worse"
	l := &lookout{view: threeVoters(), at: map[consensus.MemberID]string{}}
	m := &l.view.Config.Members[1]
	update := func(url string) (*consensus.ChangeRequest, error) {
		request := consensus.ChangeOne(consensus.ChangeUpdate, consensus.Member{ID: 2, PeerURLs: []string{url}})
		return &request, l.confirm(&request, membership.Forced)
	}
	m.PeerURLs, m.FormerURLs = []string{right}, []string{wrong}
	request, err := update(worse)
	if got := request.Steps[0].Member.FormerURLs; err != nil || !slices.Equal(got, []string{wrong, right}) {
		t.Errorf("it is silent: the former URLs are %q, %v", got, err)
	}
	l.at[2] = right
	request, err = update(worse)
	if got := request.Steps[0].Member.FormerURLs; err != nil || !slices.Equal(got, []string{right}) {
		t.Errorf("it answers at its present URL: the former URLs are %q, %v", got, err)
	}
	m.PeerURLs, m.FormerURLs = []string{worse}, []string{wrong, right}
	l.strangers = map[string]*transport.NoPeerPortError{worse: {Text: "that is a client port"}}
	cluster := &changed{}
	requests := autopilot.NewRequests(cluster, autopilot.NewAddresses(l, slog.New(slog.DiscardHandler)),
		autopilot.RequestOptions{})
	requests.SettleAddresses(t.Context())
	if len(cluster.requests) != 1 || !slices.Equal(cluster.requests[0].Steps[0].Member.PeerURLs, []string{right}) {
		t.Errorf("restored: %+v", cluster.requests)
	}
	delete(l.at, 2)
	for i := range membership.MaxFormer {
		m.FormerURLs = append(m.FormerURLs[:i:i], fmt.Sprintf("http://former%d", i))
	}
	var refused *membership.AddressError
	if _, err := update(right); !errors.As(err, &refused) {
		t.Errorf("one more: %v", err)
	}
}

// Ensure that a client port is never taken for a peer port, whatever is demanded, and that its refusal says whose it is.
func TestAddresses_Confirm_clientPort(t *testing.T) {
	const peer, client = "http://0000000000000002", "http://client"
	l := &lookout{
		view: threeVoters(), at: map[consensus.MemberID]string{2: peer},
		strangers: map[string]*transport.NoPeerPortError{client: {Text: "that is a client port", Cluster: 1, Member: 2}},
	}
	l.view.Config.Members[1].PeerURLs = []string{peer}
	for _, demand := range []membership.Caution{membership.Cautious, membership.Lenient} {
		request := consensus.ChangeOne(consensus.ChangeUpdate, consensus.Member{ID: 2, PeerURLs: []string{client}})
		err := l.confirm(&request, demand)
		var refused *membership.AddressError
		if !errors.As(err, &refused) {
			t.Fatalf("demand %d: got %v", demand, err)
		}
		for _, part := range []string{client + " is a wrong URL: that is a client port", "its peer URL is " + peer} {
			if !strings.Contains(refused.Text, part) {
				t.Errorf("demand %d: no %q in %q", demand, part, refused.Text)
			}
		}
	}
}

// changed is a Cluster that takes note of changes.
type changed struct {
	autopilot.Cluster
	requests []*consensus.ChangeRequest
}

func (c *changed) Change(_ context.Context, request *consensus.ChangeRequest) error {
	c.requests = append(c.requests, request)
	return nil
}

func (*changed) Sleep(context.Context, time.Duration) error { return nil }

// Ensure that a member that says where it is gets a wrong URL repaired that was accepted before, as long as it does not answer
// there itself, and that a word alone moves no member.
func TestRequests_Moved(t *testing.T) {
	const wrong, right = "http://client:2379", "http://member:2380"
	for _, row := range []struct {
		name  string
		at    string
		moved bool
	}{
		{"a client port is in the configuration, and it is found elsewhere", right, true},
		{"it answers where it was", wrong, false},
		{"it is found nowhere", "http://nowhere", false},
	} {
		cluster := &changed{}
		l := &lookout{view: threeVoters(), at: map[consensus.MemberID]string{2: row.at}}
		if row.at != wrong {
			l.strangers = map[string]*transport.NoPeerPortError{wrong: {Text: "that is a client port"}}
		}
		l.view.Config.Members[1].PeerURLs = []string{wrong}
		requests := autopilot.NewRequests(cluster, autopilot.NewAddresses(l, slog.New(slog.DiscardHandler)),
			autopilot.RequestOptions{})
		err := requests.Moved(t.Context(), 2, []string{right})
		if (len(cluster.requests) == 1) != row.moved {
			t.Errorf("%s: %d changes, %v", row.name, len(cluster.requests), err)
		}
		if err := requests.Moved(t.Context(), 9, []string{right}); err == nil {
			t.Error("a member that the configuration does not have may take its word for heard")
		}
	}
}

// Ensure that a process without data which was started as a member does not keep that member from being heard which has moved,
// gives it no address, takes none from it, and is named.
func TestRequests_Moved_emptyProcess(t *testing.T) {
	const old, right, ghost = "http://old2:2380", "http://new2:2380", "http://ghost:2380"
	var said strings.Builder
	cluster := &changed{}
	l := &lookout{view: threeVoters(), at: map[consensus.MemberID]string{2: right}, empty: old}
	l.view.Config.Members[1].PeerURLs = []string{old}
	addresses := autopilot.NewAddresses(l, slog.New(slog.NewTextHandler(&said, nil)))
	requests := autopilot.NewRequests(cluster, addresses, autopilot.RequestOptions{})
	if err := requests.Moved(t.Context(), 2, []string{right}); err != nil || len(cluster.requests) != 1 {
		t.Fatalf("the member that has moved is not heard: %d changes, %v", len(cluster.requests), err)
	}
	if got := cluster.requests[0].Steps[0].Member.DialURLs(); !slices.Equal(got, []string{right}) {
		t.Errorf("it is dialled at %q", got)
	}
	if want := "was started as 2, runs at " + old + " (stop its unit on host old2)"; !strings.Contains(said.String(), want) {
		t.Errorf("the log does not name it: %s", said.String())
	}

	l.at[2], l.empty = old, ghost // the member is where it was
	if err := requests.Moved(t.Context(), 2, []string{ghost}); err != nil || len(cluster.requests) != 1 {
		t.Errorf("a process without data has moved a member: %d changes, %v", len(cluster.requests), err)
	}
	update := consensus.ChangeOne(consensus.ChangeUpdate, consensus.Member{ID: 2, PeerURLs: []string{ghost}})
	if err := l.confirm(&update, membership.Cautious); err == nil || !strings.Contains(err.Error(), "runs at "+ghost) {
		t.Errorf("an update leads to a process without data: %v", err)
	}
	l.view.Config.Members[1].PeerURLs, l.view.Config.Members[1].FormerURLs = []string{ghost}, []string{old}
	requests.SettleAddresses(t.Context())
	if len(cluster.requests) != 2 || !slices.Equal(cluster.requests[1].Steps[0].Member.PeerURLs, []string{old}) {
		t.Errorf("an update that led to a process without data stays: %d changes", len(cluster.requests))
	}
}

// Ensure that a member that was started at other URLs tells it if it answers there itself, also one that is alone, and asks
// all but itself. It does not where an update waits for it to move, nor again where it finds itself as the configuration has it.
func TestAddresses_Announce(t *testing.T) {
	const here, there = "http://0000000000000002", "http://there"
	for _, row := range []struct {
		name   string
		at     string // where it answers
		urls   string // with which it was started
		self   consensus.MemberID
		done   bool
		wrong  bool
		others int // that are asked; no number: it tells none
		former []string
		again  bool
	}{
		{"it is where it was", here, here, 2, true, false, -1, nil, false},
		{"it has moved", there, there, 2, false, false, 2, nil, false},
		{"it does not answer there", here, there, 2, false, true, -1, nil, false},
		{"it is in no configuration yet", there, there, 9, false, false, -1, nil, false},
		{"an update waits for it to move", there, there, 2, true, false, -1, []string{"http://old", there}, false},
		{"it is at none of the former URLs", there, there, 2, false, false, 2, []string{"http://old"}, false},
		{"it has told, and answers where the configuration has it, too", here, there, 2, true, false, -1, nil, true},
		{"it has told, and does not answer there", there, there, 2, false, false, 2, nil, true},
	} {
		l := &lookout{view: threeVoters(), at: map[consensus.MemberID]string{2: row.at}}
		l.view.Config.Members[1].PeerURLs, l.view.Config.Members[1].FormerURLs = []string{here}, row.former
		news := autopilot.NewAddresses(l, slog.New(slog.DiscardHandler)).Announce(t.Context(), row.self, []string{row.urls}, row.again)
		if news.Done != row.done || (news.Wrong != "") != row.wrong || news.Tells != (row.others >= 0) ||
			len(news.Ask) != max(0, row.others) || slices.Contains(news.Ask, row.self) {
			t.Errorf("%s: %+v", row.name, news)
		}
	}
	for at, wrong := range map[string]bool{there: false, here: true} { // a newcomer that no member has told anything
		l := &lookout{view: &membership.View{}, at: map[consensus.MemberID]string{9: at}}
		news := autopilot.NewAddresses(l, slog.New(slog.DiscardHandler)).Announce(t.Context(), 9, []string{there}, false)
		if news.Done || news.Tells || (news.Wrong != "") != wrong || news.Known.ID != consensus.NoMember {
			t.Errorf("a newcomer that is at %s, and says %s: %+v", at, there, news)
		}
	}
	l := &lookout{view: threeVoters(), at: map[consensus.MemberID]string{1: there}}
	l.view.Config.Members = l.view.Config.Members[:1]
	l.view.Config.Voters = l.view.Config.Voters[:1]
	if news := autopilot.NewAddresses(l, slog.New(slog.DiscardHandler)).Announce(t.Context(), 1, []string{there}, false); !news.Tells {
		t.Errorf("who is alone does not tell: %+v", news)
	}
}

// Ensure that a member that has moved is not kept out by another one that a typo put at its new URLs while no process answered
// there: the other one, which answers where it was, gets its former URLs back.
func TestRequests_Moved_taken(t *testing.T) {
	const before, now, others = "http://before:2380", "http://now:2380", "http://others:2380"
	for _, row := range []struct {
		name  string
		there string // where the other one answers
		want  string
	}{
		{"the other one is where it was", others, "[2:[http://others:2380] 3:[http://now:2380]]"},
		{"the other one is nowhere", "http://nowhere", "[3:[http://now:2380]]"}, // and the change is refused
	} {
		cluster := &changed{}
		l := &lookout{view: threeVoters(), at: map[consensus.MemberID]string{2: row.there, 3: now}}
		l.view.Config.Members[1].PeerURLs, l.view.Config.Members[1].FormerURLs = []string{now}, []string{others}
		l.view.Config.Members[2].PeerURLs = []string{before}
		requests := autopilot.NewRequests(cluster, autopilot.NewAddresses(l, slog.New(slog.DiscardHandler)),
			autopilot.RequestOptions{})
		err := requests.Moved(t.Context(), 3, []string{now})
		var got []string
		for _, r := range cluster.requests {
			got = append(got, fmt.Sprintf("%d:%v", r.Steps[0].Member.ID, r.Steps[0].Member.PeerURLs))
		}
		if err != nil || fmt.Sprint(got) != row.want {
			t.Errorf("%s: %v, want %s (%v)", row.name, got, row.want, err)
		}
	}
}

// Ensure that members which took each other's place are updated by one change, however many they are, and only those that are found
// where they are now.
func TestRequests_Moved_displaced(t *testing.T) {
	const one, two, three, free = "http://one:2380", "http://two:2380", "http://three:2380", "http://free:2380"
	for _, row := range []struct {
		name string
		at   map[consensus.MemberID]string
		to   string // where member 1 says that it is
		want map[consensus.MemberID]string
	}{
		{"two swapped", map[consensus.MemberID]string{1: two, 2: one, 3: three}, two, map[consensus.MemberID]string{1: two, 2: one}},
		{"three moved round", map[consensus.MemberID]string{1: two, 2: three, 3: one}, two,
			map[consensus.MemberID]string{1: two, 2: three, 3: one}},
		{"the one that was there is found nowhere", map[consensus.MemberID]string{1: two, 3: three}, two,
			map[consensus.MemberID]string{1: two}}, // which is refused
		{"one moved to a new place", map[consensus.MemberID]string{1: free, 2: two, 3: three}, free,
			map[consensus.MemberID]string{1: free}},
	} {
		cluster := &changed{}
		l := &lookout{view: threeVoters(), at: row.at}
		for i, url := range []string{one, two, three} {
			l.view.Config.Members[i].PeerURLs = []string{url}
		}
		requests := autopilot.NewRequests(cluster, autopilot.NewAddresses(l, slog.New(slog.DiscardHandler)),
			autopilot.RequestOptions{})
		if err := requests.Moved(t.Context(), 1, []string{row.to}); err != nil || len(cluster.requests) != 1 {
			t.Fatalf("%s: %v, and %d changes", row.name, err, len(cluster.requests))
		}
		got := map[consensus.MemberID]string{}
		for _, s := range cluster.requests[0].Steps {
			got[s.Member.ID] = strings.Join(s.Member.PeerURLs, ",")
		}
		if !maps.Equal(got, row.want) {
			t.Errorf("%s: got %v, want %v", row.name, got, row.want)
		}
	}
}

// Ensure that a leader drops the former URLs of a member that it finds at the new ones, restores them if another process is at
// the new ones and the member where it was, and leaves all else as it is.
func TestRequests_SettleAddresses(t *testing.T) {
	const former, now = "http://former", "http://now"
	client := map[string]*transport.NoPeerPortError{now: {Text: "that is a client port"}}
	for _, row := range []struct {
		name   string
		at     string
		others map[string]*transport.NoPeerPortError
		want   string
	}{
		{"it is at its new URL", now, nil, now},
		{"it is where it was, and a client port is at the new one", former, client, former},
		{"it is where it was, and nobody is at the new one", former, nil, ""},
		{"it is found nowhere, and a client port is at the new one", "", client, ""},
	} {
		cluster := &changed{}
		l := &lookout{view: threeVoters(), at: map[consensus.MemberID]string{2: row.at}, strangers: row.others}
		l.view.Config.Members[1].PeerURLs, l.view.Config.Members[1].FormerURLs = []string{now}, []string{former}
		autopilot.NewRequests(cluster, autopilot.NewAddresses(l, slog.New(slog.DiscardHandler)),
			autopilot.RequestOptions{}).SettleAddresses(t.Context())
		got := ""
		for _, r := range cluster.requests {
			got += strings.Join(r.Steps[0].Member.PeerURLs, ",")
		}
		if got != row.want {
			t.Errorf("%s: it is changed to %q, want %q", row.name, got, row.want)
		}
	}
}

// Ensure that a member tells where it is until it has told, and again when its URLs in the configuration change after that.
func TestTelling(t *testing.T) {
	config := func(url string) *consensus.Config {
		return &consensus.Config{Members: []consensus.Member{{ID: 1, PeerURLs: []string{url}}, {ID: 2, PeerURLs: []string{"two"}}}}
	}
	var telling autopilot.Telling
	want := func(what string, c *consensus.Config, due bool) {
		t.Helper()
		if telling.Look(c, 1) != due {
			t.Errorf("%s: it has to tell: %t", what, !due)
		}
	}
	want("at the start", config("one"), true)
	telling.Told(config("one"), 1)
	want("it has told", config("one"), false)
	want("a change that was under way", config("before"), true)
	telling.Told(config("before"), 1)
	for range autopilot.TellAgain - 1 {
		want("it has told again", config("before"), false)
	}
	want("the configuration has not changed for long", config("before"), true)
	telling.Told(config("before"), 1)
	want("it has told once more", config("before"), false)
	want("it is no member", &consensus.Config{}, true)
}
