package verdict_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/console/consoletest"
	"github.com/quorate/quorate/internal/console/verdict"
	"github.com/quorate/quorate/internal/doctor"
)

// show is the page of what was collected.
func show(t *testing.T, c *quoratepb.Collected) string {
	t.Helper()
	code, body := consoletest.Show(t, consoletest.Conn{quoratepb.Doctor_Collect_FullMethodName: c}, verdict.Page(), "/")
	if code != http.StatusOK {
		t.Fatalf("status %d", code)
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

func TestPage_healthy(t *testing.T) {
	body := show(t, consoletest.Healthy(3))
	want(t, body, "<h2>No fault is found</h2>", "All 3 members answered", "m1 asked them at 2027-01-15 08:00:00Z",
		fmt.Sprintf("%d kinds of faults", len(doctor.Codes())), "<b>120</b><span>writes per second",
		"<b>300</b><span>reads per second",
		"3 of 3", "tolerates 1 more failure", "80\u2009000", "10.0 MiB", "of the quota of 2.00 GiB", "term 4",
		"3 of 3 members answered.",
		"quorate doctor --through-member --endpoints http://127.0.0.1:2379")
	refuse(t, body, "class=\"fault\"", "/changes/")
}

// Ensure that a member that is down is the headline, with what it explains behind it, and plans beside its cure.
func TestPage_down(t *testing.T) {
	c := consoletest.Healthy(3)
	consoletest.Lose(c, 3)
	body := show(t, c)
	want(t, body, "<h2>m3 is down, for 65 s</h2>", `<span class="tag bad">next failure</span>`, "MEMBER_DOWN",
		"connection refused",
		"<code>quorate member list --endpoints http://127.0.0.1:2379</code>",
		`href="/changes/replace?member=m3">Plan to replace m3</a>`,
		`href="/members?member=3"`, "2 of 3", "no process accepts connections there</span>")
	refuse(t, body, "No fault is found", "verb=remove")
}

// Ensure that nothing is planned while a majority is down and may come back.
func TestPage_noQuorum(t *testing.T) {
	c := consoletest.Healthy(3)
	consoletest.Lose(c, 2)
	consoletest.Lose(c, 3)
	consoletest.Unled(c)
	consoletest.Of(c, 1).Disk.SyncP99Us = 900_000 // by itself a reason to replace m1
	body := show(t, c)
	want(t, body, "DISK_SLOW", `<span class="tag bad">cannot write</span>`, "So also", "<b class=\"bad\">1 of 3</b>",
		"<b class=\"bad\">none</b>")
	refuse(t, body, "/changes/")
}

// Ensure that the other findings follow the first one, by their severity, and that a cure by a new member opens its plan.
func TestPage_several(t *testing.T) {
	c := consoletest.Healthy(2)
	consoletest.Of(c, 2).Certificates[0].UntilMs = consoletest.Now + 5*3600_000*24
	body := show(t, c)
	want(t, body, "<h2>There are two voters, m1 and m2</h2>", `href="/changes/plan?verb=add">Plan to add a member</a>`,
		"Also found",
		"CERTIFICATE_NEAR", "<p>If either fails nothing can be written.</p>", "<p>A third survives one failure.</p>")
	if strings.Index(body, "TWO_VOTERS") > strings.Index(body, "CERTIFICATE_NEAR") {
		t.Error("the worst does not come first")
	}
}

// Ensure that advice alone is told calmly.
func TestPage_advice(t *testing.T) {
	body := show(t, consoletest.Healthy(4))
	want(t, body, "The doctor has advice only.</p>\n<h2>No fault is found</h2>", "The doctor has advice only.", "EVEN_VOTERS")
	refuse(t, body, `class="verdict bad"`)
}

// Ensure that a member whose build does not ask the others says what it knows itself, and that it is alone.
func TestPage_older(t *testing.T) {
	conn := consoletest.Conn{quoratepb.Doctor_Observe_FullMethodName: consoletest.Of(consoletest.Healthy(3), 2)}
	_, body := consoletest.Show(t, conn, verdict.Page(), "/")
	want(t, body, "m2 was asked alone", "The build of this member does not ask the others.", "not asked", "? of 3")
}

// Ensure that the page says why it knows nothing.
func TestPage_refused(t *testing.T) {
	conn := consoletest.Conn{quoratepb.Doctor_Collect_FullMethodName: status.Error(codes.PermissionDenied, "only root")}
	code, body := consoletest.Show(t, conn, verdict.Page(), "/")
	if code != http.StatusOK {
		t.Errorf("status %d", code)
	}
	want(t, body, "Not permitted", "only root")
	body = show(t, &quoratepb.Collected{})
	want(t, body, "no member said what it observes")
	refuse(t, body, "No fault is found")
}

// Ensure that texts of members are no markup, hide nothing, and are bounded.
func TestPage_hostile(t *testing.T) {
	evil := `"><script>alert(1)</script>` + "\u202e\x00\x1b[2J`"
	c := consoletest.Healthy(3)
	consoletest.Lose(c, 3)
	for _, m := range c.Members {
		m.FaultText, m.Endpoint = evil+strings.Repeat("x", 1<<20), evil
		m.Name += evil
		if o := m.Observation; o != nil {
			o.Name, o.Build, o.Troubles = m.Name, evil, []string{evil, "javascript:alert(1)"}
			for _, known := range o.Config.Members {
				known.Name += evil
				known.Build, known.Zone = evil, evil
			}
		}
	}
	body := show(t, c)
	refuse(t, body, "<script>alert", "\u202e", "\x00", "\x1b", `href="javascript`)
	if len(body) > 1<<20 {
		t.Errorf("the page has %d bytes", len(body))
	}
	want(t, body, "alert(1)")
}

// Ensure that very many findings are not all shown.
func TestPage_bounded(t *testing.T) {
	c := consoletest.Healthy(100)
	for i := range c.Members {
		o := consoletest.Of(c, i+1)
		o.Disk.SyncP99Us, o.Process.OpenFiles = 900_000+int64(i)*1_000_000, 60_000
		for j := range 100 {
			o.Troubles = append(o.Troubles, fmt.Sprintf("process %d of %d", j, i))
		}
	}
	body := show(t, c)
	want(t, body, "more are not shown here", "And 68 more members")
	if len(body) > 400<<10 {
		t.Errorf("the page has %d bytes", len(body))
	}
}

// Ensure that while a change is joint the tile of voters counts both sets.
func TestPage_joint(t *testing.T) {
	c := consoletest.Healthy(4)
	for _, m := range c.Members {
		known := m.Observation.Config.Members // m1 to m3 become m2 to m4
		m.Observation.Config.Joint, m.Observation.Config.Settled = true, false
		known[0].Voter = false
		known[0].Outgoing, known[1].Outgoing, known[2].Outgoing = true, true, true
	}
	consoletest.Unled(c)
	consoletest.Lose(c, 1)
	want(t, show(t, c), "<b class=\"warn\">3 of 3</b>", "the old voters must agree, too, of whom 2 of 3 are up")
	consoletest.Lose(c, 2)
	want(t, show(t, c), "<b class=\"bad\">2 of 3</b>", "of whom 1 of 3 are up", "NO_QUORUM", "2 of 3 voters of the old set")
}
