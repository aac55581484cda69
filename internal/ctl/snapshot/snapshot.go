package snapshot

import (
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/ctl/command"
)

// New makes the command. restore may be nil in a program that restores nothing.
func New(s command.Streams, restore Restorer) *cobra.Command {
	return command.Group("snapshot", "Save the contents of the cluster, and begin a new one with them",
		newSave(s), newStatus(s), newRestore(s, restore))
}
