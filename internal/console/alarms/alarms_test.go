package alarms_test

import (
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/console/alarms"
	"github.com/quorate/quorate/internal/console/consoletest"
)

func connOf(c *quoratepb.Collected) consoletest.Conn {
	return consoletest.Conn{quoratepb.Doctor_Collect_FullMethodName: c,
		quoratepb.Membership_Describe_FullMethodName: consoletest.Described(c),
		quoratepb.Upgrade_Status_FullMethodName: &quoratepb.UpgradeStatus{Active: 3, Common: 3, Policy: "soak=24h",
			Members: []*quoratepb.MemberLevel{{Id: 1, Name: "m1", Build: "1.0", Level: 3}, {Id: 2, Name: "m2", Build: "1.1",
				Level: 4}, {Id: 3}}}}
}

func show(t *testing.T, conn consoletest.Conn) string {
	t.Helper()
	code, body := consoletest.Show(t, conn, alarms.Page(), "/alarms")
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

func TestPage_calm(t *testing.T) {
	conn := connOf(consoletest.Healthy(3))
	conn[quoratepb.Backup_Status_FullMethodName] = &quoratepb.BackupStatus{Generation: 2, On: true, Place: "s3://b/p", NowMs: 9000,
		Member: 2, MemberName: "m2", Restorable: &quoratepb.BackupMark{Index: 9, Revision: 7, TimeMs: 4000}}
	body := show(t, conn)
	want(t, body, "No alarm is raised", "As 3 of 3 members say.", "certificate for peers", "in 265 days",
		"Feature level 3 is active; policy soak=24h.", "Level 4 is held back by m1 (build 1.0), 3 (not started)",
		"The backup goes to s3://b/p", "A restore reaches revision 7, as of 5 s ago.", "It is shipped by m2;",
		"The cluster keeps no record of files.", "quorate snapshot save backup-", "10.0 MiB, up to revision 80\u2009000",
		"Automatic repair finds nothing to do.", "not started")
	if n := strings.Count(body, "holds it back"); n != 2 {
		t.Errorf("%d members hold the level back", n)
	}
}

// Ensure that an alarm that all members know is shown once, with what it means and the commands that end it, and that states of
// single members stand beside it.
func TestPage_alarms(t *testing.T) {
	c := consoletest.Healthy(3)
	for n := range c.Members {
		consoletest.Of(c, n+1).Alarms = []*quoratepb.ObservedAlarm{{Kind: "NOSPACE", Member: 2}, {Kind: "CORRUPT", Member: 3}}
	}
	consoletest.Of(c, 3).Core.Corrupt = true
	consoletest.Of(c, 1).Disk.Low = true
	consoletest.Of(c, 2).Troubles = []string{"a process of another epoch"}
	conn := connOf(c)
	described := consoletest.Described(c)
	described.Cluster.Alarms, described.Cluster.Advice = []string{"m9 is of another epoch"}, "m3 should be replaced"
	conn[quoratepb.Membership_Describe_FullMethodName] = described
	body := show(t, conn)
	want(t, body, "Alarm NOSPACE of m2 (2): its store has reached --quota-backend-bytes",
		"<code>quorate compact 75000 --endpoints http://127.0.0.1:2379</code>",
		"<code>quorate alarm disarm --endpoints http://127.0.0.1:2379</code>", "Alarm CORRUPT of m3 (3)",
		"<code>quorate member reset m3 --dry-run --endpoints http://127.0.0.1:2379</code>", "disk nearly full",
		"a process of another epoch",
		"how the continuous backup is, is not known now",
		"m9 is of another epoch", "m3 should be replaced", "The disk of m1 is nearly full: it refuses to make a backup.")
	if n := strings.Count(body, "Alarm CORRUPT of"); n != 1 {
		t.Errorf("the alarm is shown %d times", n)
	}
}

// Ensure that each section fails by itself.
func TestPage_noLeader(t *testing.T) {
	conn := connOf(consoletest.Healthy(3))
	conn[quoratepb.Membership_Describe_FullMethodName] = status.Error(codes.Unavailable, "etcdserver: no leader")
	conn[quoratepb.Upgrade_Status_FullMethodName] = status.Error(codes.Unavailable, "etcdserver: no leader")
	body := show(t, conn)
	want(t, body, "No alarm is raised", "No answer in time", "certificate for peers", "this is what members have published",
		"<b>3</b><span>active</span>")
	conn[quoratepb.Doctor_Collect_FullMethodName] = status.Error(codes.Unavailable, "away")
	want(t, show(t, conn), "quorate snapshot save", "away")
}

func TestPage_hostile(t *testing.T) {
	evil := `"><script>alert(1)</script>` + "\u202e\x00`\u202e"
	c := consoletest.Healthy(3)
	for n := range c.Members {
		o := consoletest.Of(c, n+1)
		for range 200 {
			o.Alarms = append(o.Alarms, &quoratepb.ObservedAlarm{Kind: evil, Member: uint64(len(o.Alarms))})
			o.Certificates = append(o.Certificates, &quoratepb.ObservedCertificate{Port: evil, What: evil, UntilMs: 5})
		}
	}
	conn := connOf(c)
	conn[quoratepb.Upgrade_Status_FullMethodName] = &quoratepb.UpgradeStatus{Active: 1, Common: 2, Enables: evil,
		Policy: evil, PausedBy: evil,
		Members: []*quoratepb.MemberLevel{{Name: evil, Build: evil, Level: 1}}}
	body := show(t, conn)
	for _, text := range []string{"<script>alert", "\u202e", "\x00"} {
		if strings.Contains(body, text) {
			t.Errorf("the page has %q", text)
		}
	}
	want(t, body, "more alarms", "more certificates")
	if len(body) > 1<<20 {
		t.Errorf("the page has %d bytes", len(body))
	}
}
