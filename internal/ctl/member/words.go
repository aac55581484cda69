package member

import (
	"fmt"
	"io"
	"strings"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/progress"
)

// configText names a configuration as the log does: index, term, stage.
func configText(id *quoratepb.ConfigID) string {
	return consensus.ConfigID{
		Index: consensus.Index(id.GetIndex()), Term: consensus.Term(id.GetTerm()), Stage: uint8(id.GetStage()),
	}.String()
}

// roleText is a role as people write it: voter.
func roleText(r quoratepb.Role) string {
	return strings.ToLower(strings.TrimPrefix(r.String(), "ROLE_"))
}

// quorumText says how many of the voters must agree, in both sets of a joint configuration.
func quorumText(s *quoratepb.Strength) string {
	text := fmt.Sprintf("%d of %d", s.GetQuorum(), s.GetVoters())
	if s.GetOutgoing() > 0 {
		text += fmt.Sprintf(" and %d of %d", s.GetOutgoingQuorum(), s.GetOutgoing())
	}
	return text
}

func superquorumText(s *quoratepb.Strength) string {
	return fmt.Sprintf("%d of %d", s.GetSuperquorum(), s.GetVoters())
}

// toleranceText says how many more voters may fail before writes stop.
func toleranceText(s *quoratepb.Strength) string {
	if s.GetTolerates() < 0 {
		return "no writes: " + count(-int(s.GetTolerates()), "voter") + " missing"
	}
	return count(int(s.GetTolerates()), "failure")
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// memberName names a member of a cluster by its id, with its name if it has one.
func memberName(cluster *quoratepb.Cluster, id uint64) string {
	for _, m := range cluster.GetMembers() {
		if m.Id == id {
			return progress.Name(m)
		}
	}
	return command.HexID(id)
}

// undoCommand is the command that takes a change back, to be typed as it is. Earlier servers put more behind it.
func undoCommand(undo string) string {
	command, _, _ := strings.Cut(undo, ", with an empty data directory")
	return command
}

// printUndo prints that command, and what belongs to it if it brings a member back.
func printUndo(w io.Writer, undo string) {
	command := undoCommand(undo)
	if command == "" {
		return
	}
	fmt.Fprintln(w, "undo: "+command)
	if strings.Contains(command, " --peer-urls ") && !strings.Contains(command, " member update ") ||
		strings.Contains(command, " --add") {
		fmt.Fprintln(w, "      who comes back by it is a new member: start it with --join and another, empty data directory")
	}
}
