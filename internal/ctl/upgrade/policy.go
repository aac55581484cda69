package upgrade

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/base/printable"
	"github.com/quorate/quorate/internal/ctl/command"
)

func newPolicy(s command.Streams) *cobra.Command {
	c := command.NewObjectConnection(s)
	yes := false
	cmd := c.AddTo(&cobra.Command{
		Use:   "policy POLICY",
		Short: "Set when the feature level rises: soak=DURATION after all members run the new build, now, or hold",
		Long: "Set when the feature level rises: soak=DURATION after all members run the new build, now, or hold.\n\n" +
			"--level-policy of a member only sets the policy of a cluster that has none. Until the level rises, each member " +
			"may go back to the former build. A policy by which it rises at once is asked about first.",
		Example: "  quorate upgrade policy soak=72h",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			policy, err := level.ParsePolicy(args[0])
			if err != nil {
				return command.Usagef("policy %.40q: %v", args[0], err)
			}
			if !yes {
				if err := askFirst(cmd.Context(), c, policy); err != nil {
					return err
				}
			}
			return setPolicy(cmd.Context(), c, args[0])
		},
	})
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask; needed where there is no terminal to ask on")
	return cmd
}

// askFirst asks an operator about a policy by which the level rises at once: that cannot be undone.
func askFirst(ctx context.Context, c *command.Connection, policy level.Policy) error {
	if policy.Kind == level.PolicyHold {
		return nil
	}
	status, err := call(ctx, c, askStatus)
	if err != nil {
		return err
	}
	waits := policy.Kind == level.PolicySoak && policy.Seconds > status.GetSoakedSeconds()
	if status.GetCommon() <= status.GetActive() || waits {
		return nil
	}
	return confirmRise(ctx, c, status)
}

// confirmRise says what a rise ends, and asks.
func confirmRise(ctx context.Context, c *command.Connection, status *quoratepb.UpgradeStatus) error {
	fmt.Fprintf(c.Streams.Err, "level %d becomes active: %s\nBuilds that do not know it cannot return to these members.\n",
		status.GetCommon(), printable.Text(status.GetEnables(), mostWhy))
	return c.Streams.Confirm(ctx)
}

func newHold(s command.Streams) *cobra.Command {
	c := command.NewObjectConnection(s)
	return c.AddTo(&cobra.Command{
		Use:   "hold",
		Short: "Keep the feature level where it is until finalize, or another policy",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return setPolicy(cmd.Context(), c, "hold") },
	})
}

func setPolicy(ctx context.Context, c *command.Connection, policy string) error {
	status, err := call(ctx, c, func(ctx context.Context, api quoratepb.UpgradeClient) (*quoratepb.UpgradeStatus, error) {
		return api.SetPolicy(ctx, &quoratepb.SetLevelPolicyRequest{Policy: policy})
	})
	if err != nil {
		return err
	}
	return show(c, status)
}

func newFinalize(s command.Streams) *cobra.Command {
	c := command.NewObjectConnection(s)
	yes := false
	cmd := c.AddTo(&cobra.Command{
		Use:   "finalize",
		Short: "Raise the feature level now, whatever the policy; the former build cannot return then",
		Long: "Raise the feature level now, whatever the policy. It rises to the one that all members know.\n\n" +
			"This cannot be undone: a build that does not know the level does not start on the directories of members any " +
			"more. " +
			"The way back is then a snapshot or `quorate mirror`, into a new cluster of that build.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return finalize(cmd.Context(), c, yes) },
	})
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask; needed where there is no terminal to ask on")
	return cmd
}

func finalize(ctx context.Context, c *command.Connection, yes bool) error {
	before, err := call(ctx, c, askStatus)
	if err != nil {
		return err
	}
	to := before.GetCommon()
	if to <= before.GetActive() {
		held, who := atRest(before), "no member knows"
		if len(held) > 1 {
			who = "not all members know"
		}
		return command.Refused(errors.New(strings.Join(append([]string{fmt.Sprintf("there is nothing to finalize: feature "+
			"level %d is active, and %s a higher one", before.GetActive(), who)}, held...), "\n")))
	}
	if !yes {
		if err := confirmRise(ctx, c, before); err != nil {
			return err
		}
	}
	after, err := call(ctx, c, func(ctx context.Context, api quoratepb.UpgradeClient) (*quoratepb.UpgradeStatus, error) {
		return api.Finalize(ctx, &quoratepb.FinalizeUpgradeRequest{Level: to})
	})
	if err != nil {
		return err
	}
	return show(c, after)
}
