package ctl

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/ctl/command"
)

func newLease(s command.Streams) *cobra.Command {
	return command.Group("lease", "Grant, keep alive, list and revoke leases",
		newLeaseGrant(s), newLeaseKeepalive(s), newLeaseList(s), newLeaseShow(s), newLeaseRevoke(s))
}

type leaseLine struct {
	ID      string   `json:"id"`
	TTL     int64    `json:"ttl_seconds,omitempty"`
	Granted int64    `json:"granted_seconds,omitempty"`
	Keys    []string `json:"keys,omitempty"`
}

func newLeaseGrant(s command.Streams) *cobra.Command {
	c := command.NewConnection(s)
	return c.AddTo(&cobra.Command{
		Use:   "grant SECONDS",
		Short: "Grant a lease and print its id",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			seconds, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil {
				return command.Usagef("%q is not a number of seconds", args[0])
			}
			return c.Do(cmd.Context(), func(ctx context.Context, client *clientv3.Client) error {
				answer, err := client.Grant(ctx, seconds)
				if err != nil {
					return err
				}
				if c.JSON() {
					return command.PrintJSON(s.Out, leaseLine{ID: command.HexID(uint64(answer.ID)), TTL: answer.TTL})
				}
				_, err = fmt.Fprintln(s.Out, command.HexID(uint64(answer.ID)))
				return err
			})
		},
	})
}

func newLeaseRevoke(s command.Streams) *cobra.Command {
	c := command.NewConnection(s)
	return c.AddTo(&cobra.Command{
		Use:   "revoke ID",
		Short: "End a lease and delete its keys",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseID("lease", args[0])
			if err != nil {
				return err
			}
			return c.Do(cmd.Context(), func(ctx context.Context, client *clientv3.Client) error {
				if _, err := client.Revoke(ctx, clientv3.LeaseID(id)); err != nil {
					return err
				}
				_, err := fmt.Fprintf(s.Err, "revoked %s\n", command.HexID(id))
				return err
			})
		},
	})
}

func newLeaseList(s command.Streams) *cobra.Command {
	c := command.NewConnection(s)
	return c.AddTo(&cobra.Command{
		Use:   "list",
		Short: "Print the ids of all leases",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.Do(cmd.Context(), func(ctx context.Context, client *clientv3.Client) error {
				answer, err := client.Leases(ctx)
				if err != nil {
					return err
				}
				lines := []leaseLine{}
				for _, l := range answer.Leases {
					lines = append(lines, leaseLine{ID: command.HexID(uint64(l.ID))})
				}
				if c.JSON() {
					return command.PrintJSON(s.Out, lines)
				}
				for _, l := range lines {
					fmt.Fprintln(s.Out, l.ID)
				}
				return nil
			})
		},
	})
}

func newLeaseShow(s command.Streams) *cobra.Command {
	c := command.NewConnection(s)
	return c.AddTo(&cobra.Command{
		Use:   "show ID",
		Short: "Print how long a lease lasts, and its keys",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseID("lease", args[0])
			if err != nil {
				return err
			}
			return c.Do(cmd.Context(), func(ctx context.Context, client *clientv3.Client) error {
				answer, err := client.TimeToLive(ctx, clientv3.LeaseID(id), clientv3.WithAttachedKeys())
				if err != nil {
					return err
				}
				if answer.TTL < 0 {
					return command.Refused(fmt.Errorf("lease %s does not exist, or has expired", command.HexID(id)))
				}
				return printLease(c, answer)
			})
		},
	})
}

func printLease(c *command.Connection, answer *clientv3.LeaseTimeToLiveResponse) error {
	line := leaseLine{ID: command.HexID(uint64(answer.ID)), TTL: answer.TTL, Granted: answer.GrantedTTL}
	for _, k := range answer.Keys {
		line.Keys = append(line.Keys, string(k))
	}
	if c.JSON() {
		return command.PrintJSON(c.Streams.Out, line)
	}
	fmt.Fprintf(c.Streams.Out, "%s lasts %d s of %d s, %s\n", line.ID, line.TTL, line.Granted,
		plural.Of(len(line.Keys), "key"))
	for _, k := range line.Keys {
		fmt.Fprintf(c.Streams.Out, "  %s\n", k)
	}
	return nil
}

func newLeaseKeepalive(s command.Streams) *cobra.Command {
	c := command.NewConnection(s)
	var once bool
	cmd := &cobra.Command{
		Use:   "keepalive ID",
		Short: "Keep a lease alive until interrupted",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseID("lease", args[0])
			if err != nil {
				return err
			}
			if once {
				return c.Do(cmd.Context(), func(ctx context.Context, client *clientv3.Client) error {
					answer, err := client.KeepAliveOnce(ctx, clientv3.LeaseID(id))
					if err != nil {
						return err
					}
					return printKeepalive(c, answer)
				})
			}
			return keepAlive(cmd.Context(), c, clientv3.LeaseID(id))
		},
	}
	cmd.Flags().BoolVar(&once, "once", false, "renew the lease once")
	return c.AddTo(cmd)
}

func printKeepalive(c *command.Connection, answer *clientv3.LeaseKeepAliveResponse) error {
	id := command.HexID(uint64(answer.ID))
	if c.JSON() {
		return command.PrintJSON(c.Streams.Out, leaseLine{ID: id, TTL: answer.TTL})
	}
	_, err := fmt.Fprintf(c.Streams.Out, "%s lasts %d s\n", id, answer.TTL)
	return err
}

// keepalive renews until the context ends or the lease does. The first renewal is a request of its own, because the
// stream says nothing about a cluster that cannot be reached.
func keepAlive(ctx context.Context, c *command.Connection, id clientv3.LeaseID) error {
	err := c.Do(ctx, func(ctx context.Context, client *clientv3.Client) error {
		_, err := client.KeepAliveOnce(ctx, id)
		return err
	})
	if err != nil {
		return err
	}
	client, err := c.Open(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	answers, err := client.KeepAlive(ctx, id)
	if err != nil {
		return c.Explain(ctx, err, client.Endpoints())
	}
	for answer := range answers {
		if err := printKeepalive(c, answer); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return command.Refused(fmt.Errorf("lease %s has expired or was revoked", command.HexID(uint64(id))))
}
