package history

import (
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/ctl/command"
)

const long = `Show the versions of KEY, the newest first, its deletions among them: by which user and through which member each
was written, and between which times.

The history goes back to the last compaction; the version before that is shown, but not who wrote it. Users and times are kept
from feature level 2 on. Times are those of the leader's clock, noted about every 10 seconds while the store changes. Names of
other users are shown to users with the role root.

With --prefix: the changes of all keys that begin with KEY, the newest first; an empty KEY means all keys.`

const example = `  quorate history /app/config
  quorate history /app/config --limit 5 -o json
  quorate history /app/ --prefix
  quorate get /app/config --rev 4711`

// defaultLimit is how many versions are printed.
const defaultLimit = 50

// New is the command `quorate history`.
func New(s command.Streams) *cobra.Command {
	w := &work{Connection: command.NewConnection(s)}
	cmd := w.AddTo(&cobra.Command{
		Use:     "history KEY",
		Short:   "Show by whom and when each version of a key was written, or the key deleted",
		Long:    long,
		Example: example,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if w.key = args[0]; w.key == "" && !w.prefix {
				return command.Usagef("write the key: it is not empty")
			}
			if w.limit < 1 {
				return command.Usagef("--limit %d: give how many versions to show", w.limit)
			}
			if w.before < 0 {
				return command.Usagef("--before %d: give a revision", w.before)
			}
			if w.prefix {
				return w.runPrefix(cmd.Context())
			}
			return w.run(cmd.Context())
		},
	})
	cmd.Flags().BoolVar(&w.prefix, "prefix", false, "the changes of all keys that begin with KEY")
	cmd.Flags().Int64Var(&w.limit, "limit", defaultLimit, "how many versions, or changes, to show at most")
	cmd.Flags().Int64Var(&w.before, "before", 0, "only versions, or changes, below this revision")
	return cmd
}
