package snapshot

import (
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/ctl/command"
)

// New makes the command. restore may be nil in a program that restores nothing.
func New(s command.Streams, restore Restorer) *cobra.Command {
	return command.Group("snapshot", "Save the contents of a cluster to a file, and begin a new cluster with it",
		newSave(s), newStatus(s), newRestore(s, restore))
}
