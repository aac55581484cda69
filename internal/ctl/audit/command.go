package audit

import (
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/ctl/command"
)

// New makes the command and its verbs.
func New(s command.Streams) *cobra.Command {
	return command.Group("audit", "Say which calls members record, and verify files of records",
		command.Group("policy", "Show or set which calls members record", newShow(s), newSet(s)), newHeads(s),
		newRecords(s), newVerify(s))
}
