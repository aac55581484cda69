package member

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/progress"
)

func newReset(s command.Streams) *cobra.Command {
	c := newChanger(s)
	cmd := &cobra.Command{
		Use:   "reset MEMBER",
		Short: "Give the place of a member whose disk is lost to a new one with the same name and URLs",
		Long: "Give the place of a member whose disk is lost, or was rolled back, to a new one with the same name and URLs.\n" +
			"The old id can never come back. The process with the empty directory that waits there takes the place by\n" +
			"itself: it becomes a learner, catches up, and votes again. A voter that is only silent may be starting: unless\n" +
			"the cluster knows that it lost its disk, was rolled back or is corrupt, this wants a reason, with --force.",
		Example: "  quorate member reset m1\n  quorate member reset m1 --force 'the machine burned'",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, words []string) error {
			return c.run(cmd.Context(), change{spec: func(cluster *quoratepb.Cluster) (*quoratepb.ChangeSpec, error) {
				return resetSpec(cluster, words[0])
			}})
		},
	}
	return c.addForceTo(c.addProtocolTo(c.addTo(cmd)))
}

// markedCorrupt is the state of a member whose store differs from the others', as the server says it.
const markedCorrupt = "marked corrupt"

func resetSpec(cluster *quoratepb.Cluster, name string) (*quoratepb.ChangeSpec, error) {
	old, err := findMember(cluster, name)
	if err != nil {
		return nil, err
	}
	if old.Active && old.State == markedCorrupt {
		return nil, command.Refused(fmt.Errorf("%s is marked corrupt and still runs: stop it, move its data directory "+
			"aside, and repeat this", progress.Name(old)))
	}
	if old.Active {
		return nil, command.Refused(fmt.Errorf("%s is up and has its disk: there is nothing to reset; to move it, see "+
			"`quorate member replace`", progress.Name(old)))
	}
	return &quoratepb.ChangeSpec{Kind: "replace", Remove: []uint64{old.Id}, Add: []*quoratepb.Newcomer{{
		Name: old.Name, PeerUrls: old.PeerUrls, Learner: old.Role == quoratepb.Role_ROLE_LEARNER,
	}}}, nil
}
