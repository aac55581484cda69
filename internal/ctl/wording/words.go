package wording

import (
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/base/typed"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/ctl/progress"
)

// ConfigID names a configuration as the log does: index, term, stage.
func ConfigID(id *quoratepb.ConfigID) string {
	return consensus.ConfigID{
		Index: consensus.Index(id.GetIndex()), Term: consensus.Term(id.GetTerm()), Stage: uint8(id.GetStage()),
	}.String()
}

// Role is a role as people write it: voter.
func Role(r quoratepb.Role) string {
	return strings.ToLower(strings.TrimPrefix(r.String(), "ROLE_"))
}

// MemberRole is the role of a member, and whether it leaves leadership to others.
func MemberRole(m *quoratepb.Member) string {
	if m.GetCordoned() {
		return Role(m.GetRole()) + ", cordoned"
	}
	return Role(m.GetRole())
}

// Quorum says how many of the voters must agree, in both sets of a joint configuration.
func Quorum(s *quoratepb.Strength) string {
	text := fmt.Sprintf("%d of %d", s.GetQuorum(), s.GetVoters())
	if s.GetOutgoing() > 0 {
		text += fmt.Sprintf(" and %d of %d", s.GetOutgoingQuorum(), s.GetOutgoing())
	}
	return text
}

// Superquorum says how many of the voters must agree for a write in one round trip.
func Superquorum(s *quoratepb.Strength) string {
	return fmt.Sprintf("%d of %d", s.GetSuperquorum(), s.GetVoters())
}

// Tolerance says how many more voters may fail before writes stop.
func Tolerance(s *quoratepb.Strength) string {
	if s.GetTolerates() < 0 {
		return "no writes: " + plural.Of(-s.GetTolerates(), "voter") + " missing"
	}
	return plural.Of(s.GetTolerates(), "failure")
}

// MemberName names a member of a cluster by its id, with its name if it has one.
func MemberName(cluster *quoratepb.Cluster, id uint64) string {
	for _, m := range cluster.GetMembers() {
		if m.Id == id {
			return progress.Name(m)
		}
	}
	return consensus.MemberID(id).String()
}

// State says in a word or two how a member is, as the leader sees it. An etcd, which is not native, tells only whether it has
// started.
func State(m *quoratepb.Member, native bool) string {
	switch {
	case strings.Contains(m.State, " "): // "lost its disk", "rolled back": no member is in such a state by itself
		return m.State
	case !m.Started:
		return "not started"
	case !native:
		return "-"
	case m.Leader:
		return "leader"
	case !m.Active:
		return "silent"
	case m.SnapshotTotalBytes > 0:
		return fmt.Sprintf("snapshot %d%%", m.SnapshotSentBytes*100/m.SnapshotTotalBytes)
	case m.State == "":
		return "-"
	}
	return m.State
}

// Contact says when the leader heard a member last.
func Contact(m *quoratepb.Member, native bool) string {
	switch {
	case !native, m.Leader:
		return "-"
	case m.Active:
		return "now"
	case m.SilentMs == 0, !m.Started:
		return "never"
	}
	return progress.Duration(time.Duration(m.SilentMs)*time.Millisecond) + " ago"
}

// Undo is the command that takes a change back, to be typed as it is; empty: there is none. Earlier servers put more behind it.
func Undo(undo string) string {
	command, _, _ := strings.Cut(undo, ", with an empty data directory")
	return command
}

// UndoNote is what else a command of Undo needs if it brings a member back; empty if it does not.
func UndoNote(command string) string {
	if strings.Contains(command, " --peer-urls ") && !strings.Contains(command, " member update ") ||
		strings.Contains(command, " --add") {
		return "who comes back by it is a new member: start it with --join and another, empty data directory"
	}
	return ""
}

// Start is the command that starts a newcomer, by way of the leader or of any other member that is up. The operator adds flags
// to it: StartNote.
func Start(cluster *quoratepb.Cluster, n *quoratepb.Newcomer) string {
	by := "PEER_URL_OF_A_MEMBER"
	for _, m := range cluster.GetMembers() {
		if len(m.PeerUrls) > 0 && m.Active && (m.Leader || by == "PEER_URL_OF_A_MEMBER") {
			by = m.PeerUrls[0]
		}
	}
	return typed.Start(n.GetName(), by, n.GetPeerUrls())
}

// StartNote says what the operator adds to the command of Start.
const StartNote = "with your flags for data, clients and TLS"

// Stale says why a change is refused whose plan is out of date.
func Stale(s *quoratepb.StaleConfig) string {
	changed := ""
	if s.GetChanged() != "" {
		changed = " (" + s.GetChanged() + ")"
	}
	return "configuration " + ConfigID(s.GetCurrent()) + " is in force now" + changed + "; nothing was changed, plan again"
}
