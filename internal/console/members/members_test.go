package members_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/console/consoletest"
	"github.com/quorate/quorate/internal/console/members"
)

// connOf is a member of a cluster with a leader's view.
func connOf(c *quoratepb.Collected) consoletest.Conn {
	return consoletest.Conn{quoratepb.Doctor_Collect_FullMethodName: c,
		quoratepb.Membership_Describe_FullMethodName: consoletest.Described(c)}
}

func show(t *testing.T, conn consoletest.Conn, target string) string {
	t.Helper()
	code, body := consoletest.Show(t, conn, members.Page(), target)
	if code != http.StatusOK {
		t.Fatalf("%s: status %d", target, code)
	}
	return body
}

func want(t *testing.T, body string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(body, text) {
			t.Errorf("the page lacks %q:\n%s", text, body[strings.Index(body, "<main"):])
			return
		}
	}
}

func refuse(t *testing.T, body string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(body, text) {
			t.Errorf("the page has %q", text)
		}
	}
}

func TestPage_list(t *testing.T) {
	c := consoletest.Healthy(3)
	consoletest.Of(c, 2).Disk.SyncP99Us = 800_000
	consoletest.Of(c, 3).Disk.Low = true
	body := show(t, connOf(c), "/members")
	want(t, body, "quorum 2 of 3", `<span class="tag good">tolerates 1 more failure</span>`,
		`<a href="/members?member=2">m2</a>`,
		`<span class="warn">800 ms</span>`, "9.00 ms", `<span class="bad">50.0 GiB, low</span>`, "in 265 days",
		"quorate member list")
	refuse(t, body, `id="member"`, "Zone", "leader's view is missing")
}

// Ensure that the page shows what is known without a leader, and without observations.
func TestPage_halves(t *testing.T) {
	c := consoletest.Healthy(3)
	conn := connOf(c)
	consoletest.Unled(c)
	consoletest.Lose(c, 3)
	conn[quoratepb.Membership_Describe_FullMethodName] = status.Error(codes.Unavailable, "etcdserver: no leader")
	body := show(t, conn, "/members")
	want(t, body, "leader&#39;s view is missing: etcdserver: no leader", "does not answer", "answers", "no leader")
	conn[quoratepb.Membership_Describe_FullMethodName] = status.FromContextError(context.DeadlineExceeded).Err()
	want(t, show(t, conn, "/members"), "no leader answered within 1.20 s")
	for _, m := range c.Members {
		if o := m.Observation; o != nil { // m1 leaves, and m3 is new
			o.Config.Joint, o.Config.Settled = true, false
			o.Config.Members[0].Voter, o.Config.Members[0].Outgoing, o.Config.Members[1].Outgoing = false, true, true
		}
	}
	want(t, show(t, conn, "/members"), "outgoing voter", "incoming voter", "a majority of each set must agree",
		"2 of 2 voters of the old set up", "1 of 2 voters of the new set up", "quorum 2 of 2 and 2 of 2")
	conn = connOf(consoletest.Healthy(3))
	conn[quoratepb.Doctor_Collect_FullMethodName] = status.Error(codes.Unavailable, "away")
	want(t, show(t, conn, "/members"), ">up<", "tolerates 1 more failure")
	conn[quoratepb.Membership_Describe_FullMethodName] = status.Error(codes.PermissionDenied, "not yours")
	want(t, show(t, conn, "/members"), "Not permitted", "not yours")
}

func TestPage_matrix(t *testing.T) {
	c := consoletest.Healthy(5)
	consoletest.Of(c, 1).Peers[0].RoundTripUs = 2700 // to m2
	consoletest.Of(c, 1).Peers[1].RoundTripUs = 9000
	consoletest.Of(c, 2).Peers[0].RoundTripUs = 0
	consoletest.Of(c, 3).Peers[0].RoundTripUs = 1900 // twice the median, and less than a fiftieth of a heartbeat interval
	consoletest.Lose(c, 5)
	for _, m := range c.Members[:4] {
		m.Observation.Config.Members = append(m.Observation.Config.Members, &quoratepb.ObservedMember{Id: 6, Name: "m6"})
	}
	body := show(t, connOf(c), "/members")
	want(t, body, "m6 has not started.", `<td class="number near" title="m2 to m3: 900 µs">900 µs</td>`,
		`<td class="number mid" title="m1 to m2: 2.70 ms">2.70 ms<small>3.0 × median</small></td>`,
		`<td class="number far" title="m1 to m3: 9.00 ms">9.00 ms<small>10 × median</small></td>`, "the median is 900 µs",
		`<td class="number bad" title="m1 to m5: no connection stands">no link<small>unreachable</small></td>`,
		"did not answer",
		"m2 to m1: nothing was measured", `<td class="number near" title="m3 to m1: 1.90 ms">1.90 ms</td>`, "or below 2.00 ms")
}

// Ensure that a form chooses members, that those that are down count without being chosen, and that strange ids do no harm.
func TestPage_failures(t *testing.T) {
	c := consoletest.Healthy(5)
	conn := connOf(c)
	described := consoletest.Described(c)
	described.Cluster.Members[4].Active = false
	for i, m := range described.Cluster.Members {
		m.Zone = []string{"east", "west"}[i%2]
	}
	conn[quoratepb.Membership_Describe_FullMethodName] = described
	body := show(t, conn, "/members")
	want(t, body, "<h3>m5 is down already.</h3>", `value="5" checked disabled`, "4 of 5 voters up, 3 needed",
		`<a class="button plain" href="/members?die=2&amp;die=4#failures">zone west</a>`)
	body = show(t, conn, "/members?die=2&die=3&die=zz&die=99&die="+url.QueryEscape("<script>"))
	want(t, body, "<h3>Without m2, m3, while m5 is down already:</h3>", "No member has the id zz", "No member has the id 99",
		"&lt;script&gt;", "2 of 5 voters up, 3 needed: until 1 more voter runs", `value="2" checked>`)
	refuse(t, body, "<script>:")
	body = show(t, conn, "/members?"+strings.Repeat("die=ffff&", 500))
	if n := strings.Count(body, "No member has the id"); n > 64 {
		t.Errorf("%d words of the query are told", n)
	}
}

func TestPage_member(t *testing.T) {
	c := consoletest.Healthy(3)
	conn := connOf(c)
	for _, word := range []string{"2", "m2"} {
		body := show(t, conn, "/members?member="+word)
		want(t, body, `<h2 class="large">m2 `, "http://m2:2380", "/changes/replace?member=m2", "Memory against its limits",
			"1.00 GiB of 4.00 GiB, 25 %", "4\u2009000 in the last 1 min; mean 2.00 ms", "certificate for peers",
			"stands for 1 h")
		refuse(t, body, `id="members-list"`, `id="matrix"`)
	}
	body := show(t, conn, "/members?member="+url.QueryEscape("gone<b>"))
	want(t, body, "There is no such member", "no member is called", "gone&lt;b&gt;")
	refuse(t, body, `id="member-disk"`, "<b>;")
	consoletest.Lose(c, 3)
	conn[quoratepb.Doctor_Collect_FullMethodName] = c
	want(t, show(t, conn, "/members?member=m3"), "It did not answer: connection refused.")
}

func TestPage_hostile(t *testing.T) {
	evil := `"><script>alert(1)</script>` + "\u202e\x00"
	c := consoletest.Healthy(3)
	for _, m := range c.Members {
		o := m.Observation
		o.Core.Superseded, o.Core.Stalled, o.Troubles = evil, evil, []string{evil}
		o.Certificates[0].What, o.Process.Parts[0].Name = evil, evil
		for _, p := range o.Peers {
			p.Fault, p.Refused, p.Connected, p.State = evil, evil, false, evil
		}
		for _, known := range o.Config.Members {
			known.Name, known.Zone, known.Build = known.Name+evil, evil, evil
			known.PeerUrls, known.ClientUrls = []string{evil + "javascript:1"}, []string{strings.Repeat("y", 1<<20)}
		}
	}
	for _, target := range []string{"/members", "/members?member=2", "/members?die=2"} {
		body := show(t, connOf(c), target)
		refuse(t, body, "<script>alert", "\u202e", "\x00", `href="javascript`)
		if len(body) > 1<<20 {
			t.Errorf("%s has %d bytes", target, len(body))
		}
	}
}
