package member

import (
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/wording"
)

func newReset(s command.Streams) *cobra.Command {
	c := newChanger(s)
	cmd := &cobra.Command{
		Use:   "reset MEMBER",
		Short: wording.About("reset"),
		Long: "Give the place of a member whose disk is lost, or was rolled back, to a new one with the same name and URLs.\n" +
			"The old id can never come back. The process with the empty directory that waits there takes the place by\n" +
			"itself: it becomes a learner, catches up, and votes again. A voter that is only silent may be starting: unless\n" +
			"the cluster knows that it lost its disk, was rolled back or is corrupt, this wants a reason, with --force.",
		Example: "  quorate member reset m1\n  quorate member reset m1 --force 'the machine burned'",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, words []string) error {
			return c.run(cmd.Context(), change{spec: func(cluster *quoratepb.Cluster) (*quoratepb.ChangeSpec, error) {
				spec, err := wording.Reset(cluster, words[0])
				return spec, refused(err)
			}})
		},
	}
	return c.addForceTo(c.addProtocolTo(c.addTo(cmd)))
}
