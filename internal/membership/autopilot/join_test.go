package autopilot_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/membership/autopilot"
	"github.com/quorate/quorate/internal/transport"
)

// still is a cluster in which nothing happens.
type still struct {
	now     membership.View
	changes int
}

func (c *still) View(context.Context) (membership.View, consensus.Term, error) { return c.now, 1, nil }
func (c *still) FreshView(context.Context) (membership.View, consensus.Term, error) {
	return c.now, 1, nil
}
func (c *still) Jobs() []autopilot.Row                              { return nil }
func (c *still) Write(context.Context, *autopilot.Write) error      { return nil }
func (c *still) Transfer(context.Context, consensus.MemberID) error { return nil }
func (c *still) Sleep(context.Context, time.Duration) error         { return nil }
func (c *still) Self() consensus.MemberID                           { return 1 }
func (c *still) Config() consensus.Config                           { return c.now.Config }
func (c *still) Started(consensus.MemberID) bool                    { return true }

func (c *still) Change(context.Context, *consensus.ChangeRequest) error {
	c.changes++
	return nil
}

func (c *still) Find(context.Context, consensus.MemberID, string) (transport.Presence, error) {
	return transport.Present, nil
}

func (c *still) Describe(context.Context) (membership.View, error) { return c.now, nil }

func (c *still) join(q autopilot.JoinRequest) (autopilot.JoinStep, error) {
	o := autopilot.RequestOptions{ElectionTimeout: time.Second, Poll: 100 * time.Millisecond}
	logger := slog.New(slog.NewTextHandler(io.Discard, nil))
	return autopilot.NewRequests(c, autopilot.NewAddresses(c, logger), o).Join(context.Background(),
		autopilot.JoinQuestion{JoinRequest: q})
}

const joinURL, formerURL = "http://10.0.0.2:2380", "http://10.0.0.9:2380"

// joinable has one voter, and a learner that was added for a process and has not started.
func joinable(url string, disk consensus.StorageID) membership.View {
	config := consensus.Config{
		Voters: []consensus.MemberID{1}, Learners: []consensus.MemberID{2},
		Members: []consensus.Member{
			{ID: 1, PeerURLs: []string{"http://10.0.0.1:2380"}, Storage: consensus.StorageID{1}},
			{ID: 2, PeerURLs: []string{url}, Storage: disk, Promote: true},
		},
	}
	return membership.View{Leader: 1, Config: config, Settled: true, MaxLearners: 3,
		Members: []membership.MemberView{{ID: 1, Active: true, CaughtUp: true}, {ID: 2}}}
}

// Ensure that a process that asks again from other peer URLs is told who it is, and is not added a second time.
func TestRequests_Join_movedBeforeStart(t *testing.T) {
	disk := consensus.StorageID{2}
	c := &still{now: joinable(formerURL, disk)}
	step, err := c.join(autopilot.JoinRequest{PeerURLs: []string{joinURL}, Storage: disk})
	if err != nil || !step.Ready || step.ID != 2 || c.changes > 0 {
		t.Errorf("got %+v, %v after %d changes, want member 2 after none", step, err, c.changes)
	}
}

// Ensure that a process is not told that it is a member whose new URLs, which it has, may be wrong: that member runs at its former
// ones. The member itself is known by its disk.
func TestRequests_Join_whereAnotherIsToBe(t *testing.T) {
	disk := consensus.StorageID{2}
	for _, row := range []struct {
		bound consensus.StorageID
		ready bool
	}{{consensus.NoStorage, false}, {disk, true}} {
		c := &still{now: joinable(joinURL, row.bound)}
		c.now.Config.Members[1].FormerURLs = []string{formerURL}
		step, err := c.join(autopilot.JoinRequest{PeerURLs: []string{joinURL}, Storage: disk})
		if step.Ready != row.ready || (err == nil) != row.ready || err != nil && !strings.Contains(err.Error(), formerURL) {
			t.Errorf("bound to %v: got %+v, %v", row.bound, step, err)
		}
	}
}

// Ensure that no process is told which member it is by a configuration that may still be lost with its leader: such a member
// would be one for ever that no cluster knows.
func TestRequests_Join_undecided(t *testing.T) {
	disk := consensus.StorageID{2}
	c := &still{now: joinable(joinURL, disk)}
	c.now.Undecided = true
	q := autopilot.JoinRequest{PeerURLs: []string{joinURL}, Storage: disk}
	if step, err := c.join(q); err != nil || step.Ready {
		t.Errorf("got %+v, %v before the configuration is decided", step, err)
	}
	c.now.Undecided = false
	if step, err := c.join(q); err != nil || !step.Ready || step.ID != 2 {
		t.Errorf("got %+v, %v once it is", step, err)
	}
}

// found is a cluster in which one member is found at one URL.
type found struct {
	still
	id  consensus.MemberID
	url string
}

func (f *found) Find(_ context.Context, id consensus.MemberID, url string) (transport.Presence, error) {
	switch {
	case url != f.url:
		return transport.Silent, nil
	case id != f.id:
		return transport.Another, nil
	}
	return transport.Present, nil
}

// Ensure that no newcomer gets the URL to which a member has moved: that member could not have it any more, and would be found
// nowhere.
func TestAddresses_resident(t *testing.T) {
	const moved = "http://10.0.0.7:2380"
	logger := slog.New(slog.DiscardHandler)
	for _, c := range []struct {
		text    string
		url     string
		demand  membership.Caution
		refused bool
	}{
		{text: "where the leader itself is", url: moved, demand: membership.Lenient, refused: true},
		{text: "by force", url: moved, demand: membership.Forced},
		{text: "where nobody is", url: "http://10.0.0.8:2380", demand: membership.Lenient},
	} {
		f := &found{still: still{now: joinable(joinURL, consensus.NoStorage)}, id: 1, url: moved}
		request := consensus.ChangeOne(consensus.ChangeAddLearner, consensus.Member{ID: 3, PeerURLs: []string{c.url}})
		err := autopilot.NewAddresses(f, logger).Confirm(t.Context(), &request, c.demand)
		var address *membership.AddressError
		if errors.As(err, &address) != c.refused || !c.refused && err != nil {
			t.Errorf("an operator adds a member %s: %v", c.text, err)
		}
		if c.demand == membership.Forced {
			continue
		}
		o := autopilot.RequestOptions{Draw: func() uint64 { return 3 },
			Admit: func(context.Context, *autopilot.JoinQuestion) error { return nil }}
		_, err = autopilot.NewRequests(f, autopilot.NewAddresses(f, logger), o).Join(t.Context(),
			autopilot.JoinQuestion{JoinRequest: autopilot.JoinRequest{PeerURLs: []string{c.url}}})
		var spec *membership.SpecError
		if refused := errors.As(err, &spec); refused != c.refused || (f.changes == 0) != c.refused {
			t.Errorf("a process joins %s: %v, after %d changes", c.text, err, f.changes)
		}
		if c.refused && !strings.Contains(err.Error(), moved) {
			t.Errorf("the refusal does not name the URL: %v", err)
		}
	}
}

// giving is a cluster in which a job gives the place of a lost member to a new one.
type giving struct {
	still
	job membership.Job
}

func (g *giving) Jobs() []autopilot.Row { return []autopilot.Row{{Job: g.job}} }

// Ensure that a process whose flags go on naming the member in whose place it is finds itself as the new member there, before and
// after the job that added that one has ended.
func TestRequests_Join_replacesItself(t *testing.T) {
	g := &giving{still: still{now: joinable(joinURL, consensus.NoStorage)}, job: membership.Job{ID: 7,
		State: membership.StateRunning, Spec: membership.Spec{Kind: membership.KindReplace, Remove: []consensus.MemberID{9},
			Add: []membership.Newcomer{{Name: "m2", PeerURLs: []string{joinURL}}}}}}
	g.now.Members[1].Name = "m2" // as the lost one was called
	q := autopilot.JoinRequest{Name: "m2", PeerURLs: []string{joinURL}, Replaces: "m2", Storage: consensus.StorageID{5}}
	for _, state := range []membership.State{membership.StateRunning, membership.StateDone} {
		g.job.State = state
		step, err := autopilot.NewRequests(g, autopilot.NewAddresses(g, slog.New(slog.DiscardHandler)),
			autopilot.RequestOptions{}).Join(t.Context(), autopilot.JoinQuestion{JoinRequest: q})
		if err != nil || !step.Ready || step.ID != 2 || g.changes > 0 {
			t.Errorf("while the job is %v: got %+v, %v after %d changes, want member 2 after none", state, step, err, g.changes)
		}
	}
}

// Ensure that a unit whose --replaces names a member that is gone is told to drop it.
func TestRequests_Join_replacesNobody(t *testing.T) {
	c := &still{now: joinable(formerURL, consensus.NoStorage)}
	o := autopilot.RequestOptions{Admit: func(context.Context, *autopilot.JoinQuestion) error { return nil }}
	_, err := autopilot.NewRequests(c, autopilot.NewAddresses(&found{still: *c}, slog.New(slog.DiscardHandler)), o).Join(t.Context(),
		autopilot.JoinQuestion{JoinRequest: autopilot.JoinRequest{PeerURLs: []string{joinURL}, Replaces: "m3"}})
	var spec *membership.SpecError
	if !errors.As(err, &spec) || !strings.Contains(err.Error(), "m3") || !strings.Contains(err.Error(), "without --replaces") ||
		!strings.Contains(err.Error(), "`quorate member list`") {
		t.Errorf("got %v", err)
	}
}

// Ensure that a process does not take the place of the member whose URLs it has by itself, because its unit goes on saying so: that
// the disk is lost is its own word.
func TestRequests_Join_replacesItsPlace(t *testing.T) {
	for _, row := range []struct {
		name, state, token string
		refused            bool
	}{
		{"it alone shows that the disk is lost", membership.LostItsDisk, "", true},
		{"it has a token", membership.LostItsDisk, "1.2", false},
		{"the member is corrupt", membership.MarkedCorrupt, "", false},
	} {
		c := &still{now: joinable(joinURL, consensus.StorageID{2})}
		c.now.Config.Voters, c.now.Config.Learners = []consensus.MemberID{1, 2}, nil
		c.now.Members[1] = membership.MemberView{ID: 2, Name: "m2", State: row.state, PeerURLs: []string{joinURL}}
		o := autopilot.RequestOptions{Admit: func(context.Context, *autopilot.JoinQuestion) error { return nil },
			Draw: func() uint64 { return 9 }}
		nowhere := autopilot.NewAddresses(&found{still: *c}, slog.New(slog.DiscardHandler))
		_, err := autopilot.NewRequests(c, nowhere, o).Join(t.Context(),
			autopilot.JoinQuestion{JoinRequest: autopilot.JoinRequest{Name: "m2", PeerURLs: []string{joinURL}, Replaces: "m2",
				Token: row.token, Storage: consensus.StorageID{7}}})
		var spec *membership.SpecError
		if refused := errors.As(err, &spec) && strings.Contains(err.Error(), "`quorate member reset m2`"); refused != row.refused {
			t.Errorf("%s: got %v", row.name, err)
		}
	}
}

// mistyped is a cluster in which one URL is a client port of member 1, whichever member is looked for there.
type mistyped struct {
	still
	url    string
	member consensus.MemberID // whose port the answer says it is; none: it does not say
}

func (m *mistyped) Find(_ context.Context, _ consensus.MemberID, url string) (transport.Presence, error) {
	if url != m.url {
		return transport.Silent, nil
	}
	return transport.NoPeerPort, &transport.NoPeerPortError{Text: "that is no peer port", Member: m.member}
}

// Ensure that no newcomer gets the client URL of a member for its peer URL: no member would reach it, and it would wait for
// ever. A port that only does not speak as one now may be right once the newcomer runs.
func TestAddresses_notForNewcomer_clientPort(t *testing.T) {
	const typo, right = "http://10.0.0.1:2379", "http://10.0.0.8:2380"
	logger := slog.New(slog.DiscardHandler)
	for _, c := range []struct {
		text    string
		url     string
		whose   consensus.MemberID
		refused bool
	}{
		{"the client port of a member", typo, 1, true},
		{"what speaks something else", typo, consensus.NoMember, false},
		{"where nobody is", right, 1, false},
	} {
		m := &mistyped{still: still{now: joinable(joinURL, consensus.NoStorage)}, url: typo, member: c.whose}
		m.now.TermStarted = true
		addresses := autopilot.NewAddresses(m, logger)
		request := consensus.ChangeOne(consensus.ChangeAddLearner, consensus.Member{ID: 3, PeerURLs: []string{c.url}})
		err := addresses.Confirm(t.Context(), &request, membership.Lenient)
		var address *membership.AddressError
		if errors.As(err, &address) != c.refused {
			t.Errorf("a member is added at %s: %v", c.text, err)
		}
		if err := addresses.Confirm(t.Context(), &request, membership.Forced); err != nil {
			t.Errorf("a member is added at %s by force: %v", c.text, err)
		}
		requests := autopilot.NewRequests(m, addresses, autopilot.RequestOptions{Draw: func() uint64 { return 3 },
			Admit: func(context.Context, *autopilot.JoinQuestion) error { return nil }})
		spec := membership.Spec{Add: []membership.Newcomer{{Name: "new", PeerURLs: []string{c.url}}}}
		plan, err := requests.Plan(t.Context(), &spec)
		if err != nil || (len(plan.Blockers) > 0) != c.refused {
			t.Errorf("a job adds one at %s: blocked by %q, %v", c.text, plan.Blockers, err)
		}
		_, err = requests.Join(t.Context(), autopilot.JoinQuestion{JoinRequest: autopilot.JoinRequest{PeerURLs: []string{c.url}}})
		var refused *membership.SpecError
		if errors.As(err, &refused) != c.refused || (m.changes == 0) != c.refused {
			t.Errorf("a process joins at %s: %v, after %d changes", c.text, err, m.changes)
		}
		const words = typo + " is a wrong URL: that is no peer port; 1 is a member without a name, and, as far as " +
			"is known here, its peer URL is http://10.0.0.1:2380: correct"
		if c.refused && (!strings.Contains(fmt.Sprint(err), words) || !strings.Contains(fmt.Sprint(plan.Blockers), words)) {
			t.Errorf("got %q and %v, want %s", plan.Blockers, err, words)
		}
	}
}
