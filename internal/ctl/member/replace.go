package member

import (
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/wording"
)

func newReplace(s command.Streams) *cobra.Command {
	c := newChanger(s)
	var r wording.Replacement
	cmd := &cobra.Command{
		Use:   "replace OLD",
		Short: wording.About("replace"),
		Long: "Put a new member in the place of one, dead or alive. The newcomer joins as a learner, catches up, and then\n" +
			"the two change places in one atomic step: the number of voters stays as it is. OLD can never come back. With\n" +
			"--with the newcomer is a learner that is there already.",
		Example: "  quorate member replace m2 --name m4 --peer-urls http://10.0.4.9:2380\n" +
			"  quorate member replace m2 --with m5",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, words []string) error {
			r.Old = words[0]
			if err := checkReplacement(&r); err != nil {
				return err
			}
			return c.run(cmd.Context(), change{spec: func(cluster *quoratepb.Cluster) (*quoratepb.ChangeSpec, error) {
				spec, err := r.Spec(cluster)
				return spec, refused(err)
			}})
		},
	}
	cmd.Flags().StringVar(&r.Name, "name", "", "name of the newcomer")
	cmd.Flags().StringSliceVar(&r.PeerURLs, "peer-urls", nil, "URLs at which members reach the newcomer")
	cmd.Flags().StringVar(&r.With, "with", "", "MEMBER, a learner, that takes the place of OLD")
	return c.addJoinTo(c.addProtocolTo(c.addTo(cmd)))
}

// checkReplacement refuses what makes no sense, and puts the URLs into the form in which members keep them.
func checkReplacement(r *wording.Replacement) error {
	switch {
	case r.With != "" && (r.Name != "" || len(r.PeerURLs) > 0):
		return command.Usagef("--with names a member that is there already; it goes without --name and --peer-urls")
	case r.With != "":
		return nil
	case r.Name == "" || len(r.PeerURLs) == 0:
		return command.Usagef("replace %s by whom? Give --name and --peer-urls, or --with", r.Old)
	}
	urls, err := parsePeerURLs("--peer-urls", r.PeerURLs)
	r.PeerURLs = urls
	return err
}
