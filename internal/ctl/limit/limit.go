// Package limit is the command quorate limit: the rules that bound users and prefixes of keys.
//
// Invariants:
//  1. A rule that makes no sense is refused before a member is asked, with what is wrong about it.
//  2. Names, users and prefixes that a member tells are printed as text, and steer no terminal.
package limit

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/wording"
)

// New returns the command.
func New(s command.Streams) *cobra.Command {
	return command.Group("limit", "Bound what users may do, and what may be done to the keys with a prefix",
		newSet(s), newList(s), newDelete(s))
}

func newSet(s command.Streams) *cobra.Command {
	c := command.NewConnection(s)
	var user, prefix string
	given := make([]string, len(wording.LimitBounds))
	cmd := c.AddTo(&cobra.Command{
		Use:   "set NAME",
		Short: "Set a limit, in place of the one of that name",
		Long: "Set a limit, in place of the one of that name: of a user, of the keys with a prefix, or of a user at them.\n" +
			"A rate holds at each member by itself: three members together let three times as much pass. A quota holds\n" +
			"in the cluster, once the keys that exist are counted, for which the command waits. Sizes are bytes, or a\n" +
			"number with KiB, MiB, GiB or TiB; 0 lets nothing pass. Users with the role root have no rates; quotas hold\n" +
			"for all.",
		Example: "  quorate limit set batch --for-user batch --writes 200 --write-bytes 4MiB\n" +
			"  quorate limit set tenant-a --prefix /tenants/a/ --quota-bytes 256MiB --quota-keys 100000",
		Args: cobra.ExactArgs(1),
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		l := &quoratepb.Limit{Name: args[0], User: user}
		if cmd.Flags().Changed("prefix") {
			l.Prefix = append([]byte{}, prefix...)
		}
		for i, b := range wording.LimitBounds {
			if !cmd.Flags().Changed(b.Flag) {
				continue
			}
			n, err := wording.ParseBound(given[i], b.Bytes)
			if err != nil {
				return command.Usagef("--%s %s: %w", b.Flag, given[i], err)
			}
			*b.Field(l) = &n
		}
		return c.Do(cmd.Context(), func(ctx context.Context, client *clientv3.Client) error {
			limits := quoratepb.NewLimitsClient(client.ActiveConnection())
			answer, err := limits.SetLimit(ctx, &quoratepb.SetLimitRequest{Limit: l})
			if err != nil {
				return err
			}
			if c.JSON() {
				return command.PrintJSON(s.Out, lineOf(answer.GetState()))
			}
			_, err = fmt.Fprintf(s.Out, "limit %s is set: %s\n", l.GetName(), sentence(answer.GetState()))
			return err
		})
	}
	cmd.Flags().StringVar(&user, "for-user", "", "the user that it bounds; without it every user but root")
	cmd.Flags().StringVar(&prefix, "prefix", "", "the prefix of the keys that it is about; an empty one means every key")
	for i, b := range wording.LimitBounds {
		cmd.Flags().StringVar(&given[i], b.Flag, "", b.Help)
	}
	return cmd
}

func newList(s command.Streams) *cobra.Command {
	c := command.NewConnection(s)
	return c.AddTo(&cobra.Command{
		Use:   "list",
		Short: "Print the limits, what their prefixes have, and how many requests the member that answers has refused",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.Do(cmd.Context(), func(ctx context.Context, client *clientv3.Client) error {
				limits := quoratepb.NewLimitsClient(client.ActiveConnection())
				answer, err := limits.ListLimits(ctx, &quoratepb.ListLimitsRequest{})
				if err != nil {
					return err
				}
				return print(s, c.JSON(), answer.GetLimits())
			})
		},
	})
}

func newDelete(s command.Streams) *cobra.Command {
	c := command.NewConnection(s)
	return c.AddTo(&cobra.Command{
		Use:   "delete NAME",
		Short: "End a limit",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.Do(cmd.Context(), func(ctx context.Context, client *clientv3.Client) error {
				_, err := quoratepb.NewLimitsClient(client.ActiveConnection()).DeleteLimit(ctx,
					&quoratepb.DeleteLimitRequest{Name: args[0]})
				if err == nil {
					fmt.Fprintf(s.Err, "deleted limit %s\n", args[0])
				}
				return err
			})
		},
	})
}
