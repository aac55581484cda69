package member_test

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/membership/autopilot"
	"github.com/quorate/quorate/internal/transport"
)

func TestMember_Join_isTheSameUntilStarted(t *testing.T) {
	c := startCluster(t, 2)
	leader := c.leader()
	follower := c.others(leader)[0]
	in := c.reserve()
	request := autopilot.JoinRequest{Name: "new", PeerURLs: []string{in.url()}}
	first, err := follower.Join(c.ctx, request)
	if err != nil || first.Cluster != testCluster || len(first.Members) != 3 {
		t.Fatalf("joined as %+v, %v", first, err)
	}
	again, err := member.Join(c.ctx, transport.Options{Logger: slog.New(slog.DiscardHandler)}, leader.url(), request)
	if err != nil || again.ID != first.ID {
		t.Errorf("asked again, from outside: %+v, %v, want member %v", again, err, first.ID)
	}
	in.launch(first.ID)
	c.await("the newcomer's vote", func(n *node) bool {
		config := n.config()
		return config.IsVoter(in.id) && len(config.Voters) == 3
	}, c.running()...)
	for _, asked := range []*node{leader, follower} {
		if _, err := asked.Join(c.ctx, request); !errors.Is(err, membership.ErrAlreadyStarted) {
			t.Errorf("a member that runs joins again: %v", err)
		}
	}
	var spec *membership.SpecError
	if _, err := follower.Join(c.ctx, autopilot.JoinRequest{PeerURLs: []string{"nonsense"}}); !errors.As(err, &spec) {
		t.Errorf("a URL that is none: %v", err)
	}
	nobody := autopilot.JoinRequest{PeerURLs: []string{c.reserve().url()}, Replaces: "nobody"}
	if _, err := follower.Join(c.ctx, nobody); !errors.As(err, &spec) {
		t.Errorf("in place of nobody: %v", err)
	}
}

// A process joins in place of a dead member with the same name.
func TestMember_Join_replaces(t *testing.T) {
	c := startCluster(t, 3)
	leader := c.leader()
	follower, dead := c.others(leader)[0], c.others(leader)[1]
	c.publish(dead, "worn")
	dead.stop()
	in := c.reserve()
	request := autopilot.JoinRequest{Name: "new", PeerURLs: []string{in.url()}, Replaces: "worn"}
	first, err := follower.Join(c.ctx, request)
	if err != nil || first.Job == 0 {
		t.Fatalf("joined as %+v, %v", first, err)
	}
	other := request
	other.Replaces = follower.id.String()
	var spec *membership.SpecError
	if _, err := follower.Join(c.ctx, other); !errors.As(err, &spec) || !strings.Contains(err.Error(), first.Job.String()) {
		t.Errorf("in place of another than that of the job: %v", err)
	}
	again, err := leader.Join(c.ctx, request)
	if err != nil || again.ID != first.ID || again.Job != first.Job {
		t.Errorf("asked again: %+v, %v, want %+v", again, err, first)
	}
	in.launch(first.ID)
	c.await("the end of the job", inState(first.Job, membership.StateDone), leader, follower, in)
	if config := in.config(); config.Contains(dead.id) || !config.IsVoter(in.id) || len(config.Voters) != 3 {
		t.Errorf("the configuration is %+v", config)
	}
}

// A process that joins in place of a learner that stays one becomes such a learner, too: the number of voters does not change.
func TestMember_Join_replacesLearner(t *testing.T) {
	c := startCluster(t, 1)
	leader, old, in := c.leader(), c.reserve(), c.reserve()
	if _, err := leader.Join(c.ctx, autopilot.JoinRequest{Name: "worn", PeerURLs: []string{old.url()}, Learner: true}); err != nil {
		t.Fatal(err)
	}
	joined, err := leader.Join(c.ctx, autopilot.JoinRequest{Name: "new", PeerURLs: []string{in.url()}, Replaces: "worn"})
	if err != nil {
		t.Fatal(err)
	}
	in.launch(joined.ID)
	c.await("the end of the job", inState(joined.Job, membership.StateDone), leader, in)
	if config := leader.config(); len(config.Voters) != 1 || !config.IsLearner(in.id) || len(config.Members) != 2 {
		t.Errorf("the configuration is %+v", config)
	}
}

// A machine that lost its disk comes back under its old URL: the dead member is removed, and the newcomer gets another id.
func TestMember_Join_takesOverURL(t *testing.T) {
	c := startCluster(t, 3)
	leader := c.leader()
	follower, dead := c.others(leader)[0], c.others(leader)[1]
	c.publish(dead, "worn")
	dead.stop()
	request := autopilot.JoinRequest{Name: "worn", PeerURLs: []string{dead.url()}}
	if _, err := follower.Join(c.ctx, request); !errors.Is(err, membership.ErrAlreadyStarted) {
		t.Errorf("under the id of the dead: %v", err)
	}
	request.Replaces = dead.id.String()
	joined, err := follower.Join(c.ctx, request)
	if err != nil || joined.ID == dead.id || joined.ID == consensus.NoMember {
		t.Fatalf("joined as %+v, %v", joined, err)
	}
	in := c.reserve()
	_ = in.listen.Close()
	in.listen, in.addr = nil, dead.addr
	in.launch(joined.ID)
	c.await("the end of the job", inState(joined.Job, membership.StateDone), leader, follower, in)
	if config := in.config(); config.Contains(dead.id) || !config.IsVoter(in.id) {
		t.Errorf("the configuration is %+v", config)
	}
}

// Ensure that no process joins without a token while authentication is enabled, and that a member that root has added does.
func TestMember_Join_withAuthentication(t *testing.T) {
	c := startCluster(t, 1)
	leader := c.leader()
	text := leader.enableUsers()
	in := c.reserve()
	request := autopilot.JoinRequest{Name: "new", PeerURLs: []string{in.url()}}
	outside := transport.Options{Logger: slog.New(slog.DiscardHandler)}
	var spec *membership.SpecError
	if _, err := member.Join(c.ctx, outside, leader.url(), request); !errors.As(err, &spec) ||
		!strings.Contains(err.Error(), "authentication is enabled") {
		t.Errorf("a process that nobody knows joins: %v", err)
	}
	with := func(token string, urls ...string) (autopilot.JoinAnswer, error) {
		return member.Join(c.ctx, outside, leader.url(), autopilot.JoinRequest{PeerURLs: urls, Token: token})
	}
	for _, wrong := range []string{"7", strings.Replace(text, ".00", ".01", 1), strings.Replace(text, "07", "08", 1)} {
		if _, err := with(wrong, "http://10.0.0.1:1"); !errors.As(err, &spec) {
			t.Errorf("with the token %q: %v", wrong, err)
		}
	}
	first, err := with(text, "http://10.0.0.1:1")
	if err != nil {
		t.Errorf("with a token: %v", err)
	}
	if again, err := with(text, "http://10.0.0.1:1"); err != nil || again.ID != first.ID {
		t.Errorf("the same again: %+v, %v", again, err)
	}
	if _, err := with(text, "http://10.0.0.1:2"); !errors.As(err, &spec) || !strings.Contains(err.Error(), "as many members") {
		t.Errorf("another with the same token: %v", err)
	}
	added, err := leader.Join(c.ctx, request) // as the native service does, for root
	if err != nil {
		t.Fatal(err)
	}
	if again, err := member.Join(c.ctx, outside, leader.url(), request); err != nil || again.ID != added.ID {
		t.Errorf("who was added joins: %+v, %v, want %v", again, err, added.ID)
	}
}

// Ensure that a process that was admitted and asks again writes nothing: a process that is refused for another reason asks each
// second.
func TestMember_Join_admittedBefore(t *testing.T) {
	c := startCluster(t, 1)
	leader := c.leader()
	text := leader.enableUsers()
	c.publish(leader, "taken")
	request := autopilot.JoinRequest{Name: "taken", PeerURLs: []string{"http://10.0.0.1:1"}, Token: text}
	var wrote []consensus.Index
	// The member itself writes something now and then. If each request wrote something, there would never be two in a row that
	// did not.
	for len(wrote) < 20 && (len(wrote) < 3 || !slices.Equal(wrote[len(wrote)-2:], []consensus.Index{0, 0})) {
		before := leader.Status().LastIndex
		_, err := member.Join(c.ctx, transport.Options{Logger: slog.New(slog.DiscardHandler)}, leader.url(), request)
		if err == nil || !strings.Contains(err.Error(), "the name taken belongs to") {
			t.Errorf("with a name that is taken: %v", err)
		}
		wrote = append(wrote, leader.Status().LastIndex-before)
	}
	if wrote[0] == 0 || wrote[len(wrote)-1] != 0 {
		t.Errorf("entries that each request wrote: %v", wrote)
	}
}

// enableUsers enables authentication, and returns a join token that admits one newcomer.
func (n *node) enableUsers() (text string) {
	n.c.t.Helper()
	n.c.publish(n, n.id.String())
	token, text := auth.NewToken(func(b []byte) { b[0] = 7 })
	now := time.Now()
	token.Expires, token.Uses = now.Add(time.Hour).UnixMilli(), 1
	for _, change := range []auth.Change{
		{Kind: auth.UserAdd, User: "root", Hash: []byte("h")},
		{Kind: auth.UserGrantRole, User: "root", Role: "root"},
		{Kind: auth.Enable, Secret: make([]byte, 32)},
		{Kind: auth.JoinTokenAdd, Token: &token, Now: now.UnixMilli()},
	} {
		by := auth.Credentials{User: "root", Revision: auth.AnyRevision}
		if result, err := n.Propose(n.c.ctx, &kv.Command{Auth: &change, By: by}); err != nil || result.Err != nil {
			n.c.t.Fatal(err, result.Err)
		}
	}
	return text
}
