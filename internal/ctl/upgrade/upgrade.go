package upgrade

import (
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/ctl/command"
)

// New makes the command and its verbs.
func New(s command.Streams) *cobra.Command {
	return command.Group("upgrade", "Plan an upgrade, and decide until when it can be undone",
		newStatus(s), newPlan(s), newCheck(s), newPolicy(s), newHold(s), newFinalize(s))
}
