package autopilot

import (
	"strings"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
)

// maxMessageBytes is far less than what is left beside the largest new job, even if JSON escapes every byte.
const maxMessageBytes = 4 << 10

// words say what is going on. An attempt that failed before is told for as long as the same is attempted.
func (d *Driver) words(id membership.JobID, action *membership.Action, turned bool) string {
	if d.of != id {
		return bounded(action.Message)
	}
	if turned || (action.Change == nil && action.Transfer == consensus.NoMember) {
		d.obstacle = ""
	}
	if d.obstacle == "" {
		return bounded(action.Message)
	}
	return bounded(action.Message + "; the last attempt failed: " + d.obstacle)
}

// bounded cuts what would make the row of the job too large to be written: the job would stand still for ever.
func bounded(message string) string {
	if len(message) <= maxMessageBytes {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessageBytes], "") + " …"
}

// sameClass reports whether two messages say the same but for their numbers, which the View shows better. A command is to be
// copied: of addresses in it every digit counts.
func sameClass(a, b string) bool {
	return withoutNumbers(a) == withoutNumbers(b) && commandIn(a) == commandIn(b)
}

// commandIn returns the command that a message quotes, empty if there is none.
func commandIn(message string) string {
	_, rest, _ := strings.Cut(message, "`")
	command, _, _ := strings.Cut(rest, "`")
	return command
}

func withoutNumbers(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r == '.' || r == ',' {
			return -1
		}
		return r
	}, text)
}
