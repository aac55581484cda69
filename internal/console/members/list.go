package members

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/console/chart"
	"github.com/quorate/quorate/internal/console/observed"
	"github.com/quorate/quorate/internal/console/page"
	"github.com/quorate/quorate/internal/ctl/wording"
)

// mostRows is how many members a table has.
const mostRows = 128

// unknown is shown where a member did not say, or there is nothing to say.
const unknown = "–"

// table is the table of members, and the line above it.
type table struct {
	Line    []string // the cluster in a few parts
	Look    string   // of its last part
	Without string
	Zoned   bool
	Rows    []row
	Left    int
}

// Last is the place of the part that says how many failures the cluster survives.
func (t *table) Last() int { return len(t.Line) - 1 }

// cell is a value with a colour, and words for it.
type cell struct{ Text, Look string }

// row is a member as the table shows it.
type row struct {
	ID, Name   string
	State      cell
	Leader     bool
	Role, Zone string
	Lag        cell
	Sync, Disk cell
	Ends       cell // of its certificates, the first
	Level      string
	Build      string
}

func list(k *known, _ *page.Request) any {
	t := &table{Line: clusterLine(k.Cluster), Without: k.Without}
	t.Look = "good"
	if k.Cluster.GetStrength().GetTolerates() <= 0 {
		t.Look = "bad"
	}
	if s := k.Cluster.GetStrength(); s.GetTolerates() == 0 && s.GetVoters() == 1 {
		t.Look = "warn"
	}
	for i, m := range k.Cluster.GetMembers() {
		if i >= mostRows {
			t.Left = len(k.Cluster.GetMembers()) - mostRows
			break
		}
		t.Zoned = t.Zoned || m.GetZone() != ""
		t.Rows = append(t.Rows, k.row(m))
	}
	return t
}

// clusterLine is what the cluster is, part by part; the last part is how many failures it survives.
func clusterLine(c *quoratepb.Cluster) []string {
	leader := "no leader"
	if c.GetLeader() != 0 {
		leader = "leader " + wording.MemberName(c, c.GetLeader())
	}
	return []string{leader, "quorum " + wording.Quorum(c.GetStrength()), "superquorum " + wording.Superquorum(c.GetStrength()),
		"configuration " + wording.ConfigID(c.GetConfig()) + ", " + wording.Stage(c), wording.Tolerates(c.GetStrength())}
}

func (k *known) row(m *quoratepb.Member) row {
	seen := k.All.Member(m.GetId())
	if seen == nil {
		seen = &observed.Member{}
	}
	one := row{ID: observed.Hex(m.GetId()), Name: cmp.Or(m.GetName(), observed.Hex(m.GetId())), State: state(m,
		k.Without == ""),
		Leader: m.GetLeader(), Role: role(m), Zone: m.GetZone(), Lag: lag(m, k.Without == ""), Sync: syncs(seen),
		Disk: room(seen),
		Ends: ends(seen), Level: unknown, Build: cmp.Or(m.GetBuild(), unknown)}
	if m.GetLevel() > 0 {
		one.Level = fmt.Sprint(m.GetLevel())
	}
	return one
}

// state is how a member is. viewed says that the leader sees it.
func state(m *quoratepb.Member, viewed bool) cell {
	text := observed.StateOf(m)
	if !viewed && m.GetStarted() && !m.GetLeader() && !strings.Contains(text, " ") {
		text = map[bool]string{true: "answers", false: "does not answer"}[m.GetActive()]
	}
	switch {
	case m.GetLeader(), text == "answers":
		return cell{text, "good"}
	case !m.GetStarted() && !strings.Contains(m.GetState(), " "):
		return cell{text, "warn"}
	case !m.GetActive() || strings.Contains(m.GetState(), " "):
		return cell{text, "bad"}
	case !m.GetCaughtUp():
		return cell{text + ", behind", "warn"}
	}
	return cell{text, "good"}
}

// roles are what `quorate member list` says, with words for those of a joint configuration.
var roles = map[quoratepb.Role]string{
	quoratepb.Role_ROLE_INCOMING: "incoming voter", quoratepb.Role_ROLE_OUTGOING: "outgoing voter",
	quoratepb.Role_ROLE_DEMOTING: "voter, to be a learner", quoratepb.Role_ROLE_JOINING: "joining, to vote",
	quoratepb.Role_ROLE_UNSPECIFIED: unknown,
}

func role(m *quoratepb.Member) string {
	text := wording.Role(m.GetRole())
	if known, ok := roles[m.GetRole()]; ok {
		text = known
	}
	if m.GetCordoned() {
		text += ", cordoned"
	}
	return text
}

func lag(m *quoratepb.Member, viewed bool) cell {
	switch {
	case !m.GetStarted(), !viewed && m.GetMatch() == 0:
		return cell{Text: unknown}
	case m.GetActive() && m.GetCaughtUp():
		return cell{Text: page.Count(int64(min(m.GetLag(), 1<<62)))}
	}
	return cell{page.Count(int64(min(m.GetLag(), 1<<62))), "warn"}
}

// syncs is how long one sync of the log in a hundred takes. It has a colour where the doctor calls the disk slow.
func syncs(m *observed.Member) cell {
	d := m.Says.GetDisk()
	if d.GetSyncs() == 0 {
		return cell{Text: unknown}
	}
	c := cell{Text: page.Duration(time.Duration(d.GetSyncP99Us()) * time.Microsecond)}
	if d.GetSyncP99Us()*2 >= m.Says.GetElectionMs()*1000 && m.Says.GetElectionMs() > 0 {
		c.Look = "warn"
	}
	return c
}

// room is how much of the disk is free.
func room(m *observed.Member) cell {
	d := m.Says.GetDisk()
	switch {
	case d.GetReserveBytes() == 0 && d.GetAvailableBytes() == 0:
		return cell{Text: unknown}
	case d.GetLow():
		return cell{page.Bytes(d.GetAvailableBytes()) + ", low", "bad"}
	case d.GetAvailableBytes() < 2*d.GetReserveBytes():
		return cell{page.Bytes(d.GetAvailableBytes()), "warn"}
	}
	return cell{Text: page.Bytes(d.GetAvailableBytes())}
}

// ends is how long the certificate of a member that ends first is still good.
func ends(m *observed.Member) cell {
	all := m.Says.GetCertificates()
	if len(all) == 0 {
		return cell{Text: unknown}
	}
	first := slices.MinFunc(all, func(a, b *quoratepb.ObservedCertificate) int {
		return cmp.Compare(a.GetUntilMs(),
			b.GetUntilMs())
	})
	text, look := observed.Ends(first, m.Says.GetNowMs())
	return cell{text, look}
}

// bar is a share of a limit, as a picture and in words.
type bar struct {
	Name, Text, Look string
	Picture          template.HTML // made by package chart; empty: none
}

func barOf(name string, has, most int64) bar {
	b := bar{Name: name, Text: page.Bytes(has)}
	if most <= 0 {
		return b
	}
	share := float64(has) / float64(most)
	b.Text = fmt.Sprintf("%s of %s, %s", page.Bytes(has), page.Bytes(most), page.Percent(share))
	b.Look, b.Picture = chart.Fullness(share), chart.Meter(name+": "+b.Text, share)
	return b
}
