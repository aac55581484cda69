package member

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/progress"
)

// replacement is one member out and one in.
type replacement struct {
	old, name, with string
	peerURLs        []string
}

func newReplace(s command.Streams) *cobra.Command {
	c := newChanger(s)
	var r replacement
	cmd := &cobra.Command{
		Use:   "replace OLD",
		Short: "Put a new member in the place of one, dead or alive",
		Long: "Put a new member in the place of one, dead or alive. The newcomer joins as a learner, catches up, and then\n" +
			"the two change places in one atomic step: the number of voters stays as it is. OLD can never come back. With\n" +
			"--with the newcomer is a learner that is there already.",
		Example: "  quorate member replace m2 --name m4 --peer-urls http://10.0.4.9:2380\n" +
			"  quorate member replace m2 --with m5",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, words []string) error {
			r.old = words[0]
			if err := r.check(); err != nil {
				return err
			}
			return c.run(cmd.Context(), change{spec: r.resolve})
		},
	}
	cmd.Flags().StringVar(&r.name, "name", "", "name of the newcomer")
	cmd.Flags().StringSliceVar(&r.peerURLs, "peer-urls", nil, "URLs at which members reach the newcomer")
	cmd.Flags().StringVar(&r.with, "with", "", "MEMBER, a learner, that takes the place of OLD")
	return c.addJoinTo(c.addProtocolTo(c.addTo(cmd)))
}

// check refuses what makes no sense, and puts the URLs into the form in which members keep them.
func (r *replacement) check() error {
	switch {
	case r.with != "" && (r.name != "" || len(r.peerURLs) > 0):
		return command.Usagef("--with names a member that is there already; it goes without --name and --peer-urls")
	case r.with != "":
		return nil
	case r.name == "" || len(r.peerURLs) == 0:
		return command.Usagef("replace %s by whom? Give --name and --peer-urls, or --with", r.old)
	}
	urls, err := parsePeerURLs("--peer-urls", r.peerURLs)
	r.peerURLs = urls
	return err
}

func (r *replacement) resolve(cluster *quoratepb.Cluster) (*quoratepb.ChangeSpec, error) {
	old, err := findMember(cluster, r.old)
	if err != nil {
		return nil, err
	}
	learner := old.Role == quoratepb.Role_ROLE_LEARNER
	spec := &quoratepb.ChangeSpec{Kind: "replace", Remove: []uint64{old.Id}}
	if r.with == "" {
		spec.Add = []*quoratepb.Newcomer{{Name: r.name, PeerUrls: r.peerURLs, Learner: learner}}
		return spec, nil
	}
	next, err := findMember(cluster, r.with)
	switch {
	case err != nil:
		return nil, err
	case next.Id == old.Id:
		return nil, command.Refused(fmt.Errorf("%s cannot take its own place", progress.Name(old)))
	case learner:
		return nil, command.Refused(fmt.Errorf("%s is a learner and has no vote to pass on: `member remove %s` is "+
			"enough", progress.Name(old), r.old))
	}
	spec.Promote = []uint64{next.Id}
	return spec, nil
}
