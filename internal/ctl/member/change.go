package member

import (
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/wording"
)

// changeFlags are the flags that describe a change.
type changeFlags struct {
	add, addLearner, update []string // NAME=URL[,URL]
	remove, promote, demote []string
	cordon, uncordon        []string
}

const changeExample = `  quorate member change --add m4=http://10.0.4.9:2380 --remove m2
  quorate member change --add-learner m5=http://10.0.4.10:2380
  quorate member change --promote m5 --demote m3 --update m1=http://10.0.4.11:2380
  quorate member change --add m4=http://10.0.4.9:2380 --add m5=http://10.0.4.10:2380 --dry-run`

func newChange(s command.Streams) *cobra.Command {
	c := newChanger(s)
	return c.addJoinTo(c.addForceTo(c.addProtocolTo(c.addTo(c.addChangeFlags(&cobra.Command{
		Use:   "change",
		Short: wording.About("change"),
		Long: "Add, remove, promote, demote and update members. New voters join as learners and catch up first; then all " +
			"voters\nchange in one atomic step: either all of it happens, or nothing. Marks of cordon change before.",
		Example: changeExample,
	})))))
}

func newPlan(s command.Streams) *cobra.Command {
	c := newChanger(s)
	c.dryRun = true
	return c.addProtocolTo(c.Connection.AddTo(c.addChangeFlags(&cobra.Command{
		Use:   "plan",
		Short: "Show what a change would do, and what would block it; status 1 if it is blocked",
		Long: "Tell what `member change` with the same flags would do, and change nothing. The other commands that change " +
			"members\nhave --dry-run for the same.",
		Example: "  quorate member plan --add m4=http://10.0.4.9:2380 --remove m2",
	})))
}

// addChangeFlags gives a command the flags that describe a change.
func (c *changer) addChangeFlags(cmd *cobra.Command) *cobra.Command {
	var w changeFlags
	cmd.Args = cobra.NoArgs
	flags := cmd.Flags()
	flags.StringArrayVar(&w.add, "add", nil, "NAME=URL[,URL]: a new voter, once it has caught up; may be repeated")
	flags.StringArrayVar(&w.addLearner, "add-learner", nil, "NAME=URL[,URL]: a new learner, to stay one")
	flags.StringSliceVar(&w.remove, "remove", nil, "MEMBER that leaves for ever")
	flags.StringSliceVar(&w.promote, "promote", nil, "MEMBER, a learner, that is to vote")
	flags.StringSliceVar(&w.demote, "demote", nil, "MEMBER, a voter, that becomes a learner")
	flags.StringSliceVar(&w.cordon, "cordon", nil, "MEMBER that is to leave leadership to others")
	flags.StringSliceVar(&w.uncordon, "uncordon", nil, "MEMBER, cordoned, that may lead again")
	flags.StringArrayVar(&w.update, "update", nil, "MEMBER=URL[,URL]: other peer URLs for a member")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		spec, err := w.parse()
		if err != nil {
			return err
		}
		return c.run(cmd.Context(), change{spec: spec})
	}
	return cmd
}

// parse checks what can be checked without the cluster, and returns what makes a specification of it.
func (w *changeFlags) parse() (func(*quoratepb.Cluster) (*quoratepb.ChangeSpec, error), error) {
	all := &wording.Changes{Remove: w.remove, Promote: w.promote, Demote: w.demote, Cordon: w.cordon, Uncordon: w.uncordon}
	for _, set := range []struct {
		flag  string
		texts []string
		read  *[]wording.MemberURLs
	}{{"--add", w.add, &all.Add}, {"--add-learner", w.addLearner, &all.AddLearner}, {"--update", w.update, &all.Update}} {
		var err error
		if *set.read, err = wording.ParseMemberURLs(set.flag, set.texts); err != nil {
			return nil, command.Usagef("%w", err)
		}
	}
	if all.Empty() {
		return nil, command.Usagef("change what? See --add, --add-learner, --remove, --promote, --demote, --cordon, " +
			"--uncordon and --update")
	}
	return func(cluster *quoratepb.Cluster) (*quoratepb.ChangeSpec, error) {
		spec, err := all.Spec(cluster)
		return spec, refused(err)
	}, nil
}
