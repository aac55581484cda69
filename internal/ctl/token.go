package ctl

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/command"
)

func newToken(s command.Streams) *cobra.Command {
	return command.Group("token", "Make, list and delete join tokens", newTokenCreate(s), newTokenList(s), newTokenDelete(s))
}

// tokenLine is a token as JSON.
type tokenLine struct {
	ID      string `json:"id"`
	Token   string `json:"token,omitempty"`
	Expires string `json:"expires"` // RFC 3339
	Uses    uint32 `json:"uses"`
	Used    uint32 `json:"used"`
	Owner   string `json:"owner,omitempty"`
}

func newTokenCreate(s command.Streams) *cobra.Command {
	c := command.NewConnection(s)
	var ttl time.Duration
	var uses uint32
	cmd := c.AddTo(&cobra.Command{
		Use:   "create",
		Short: "Make a token that lets a process join, and print it",
		Long: "Make a token that lets a process join, and print it.\n" +
			"While authentication is enabled, a process that nobody has added as a member needs one: start it with --join,\n" +
			"and give it the token in ETCD_JOIN_TOKEN or --join-token. Where the peer port asks for\n" +
			"certificates, a certificate is enough.\n" +
			"The cluster keeps only a hash: what is printed here is not shown again.",
		Example: "  quorate token create --user root\n" +
			"  ETCD_JOIN_TOKEN=… quorate --name m4 --join http://10.0.0.1:2380 …",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case ttl < time.Second:
				return command.Usagef("--ttl %v is less than a second", ttl)
			case uses == 0:
				return command.Usagef("--uses 0 would admit nobody")
			}
			return c.Do(cmd.Context(), func(ctx context.Context, client *clientv3.Client) error {
				answer, err := quoratepb.NewTokensClient(client.ActiveConnection()).CreateToken(ctx,
					&quoratepb.CreateTokenRequest{TtlSeconds: int64(ttl / time.Second), Uses: uses})
				if err != nil {
					return err
				}
				if c.JSON() {
					line := lineOfToken(answer.GetInfo())
					line.Token = answer.GetToken()
					return command.PrintJSON(s.Out, line)
				}
				note := fmt.Sprintf("it admits %s until %s", count(uses, "member"), expiry(answer.GetInfo()))
				if answer.GetNotNeeded() {
					note += "; authentication is disabled: no token is asked for yet, and this one ends when it is"
				}
				command.Say(s.Err, note)
				_, err = fmt.Fprintln(s.Out, answer.GetToken())
				return err
			})
		},
	})
	cmd.Flags().DurationVar(&ttl, "ttl", time.Hour, "how long it may be used, up to 30 days")
	cmd.Flags().Uint32Var(&uses, "uses", 1, "how many members it admits")
	return cmd
}

func count(n uint32, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return strconv.FormatUint(uint64(n), 10) + " " + of + "s"
}

func expiry(t *quoratepb.JoinToken) string {
	return time.UnixMilli(t.GetExpiresUnixMillis()).UTC().Format(time.RFC3339)
}

func lineOfToken(t *quoratepb.JoinToken) tokenLine {
	return tokenLine{ID: t.GetId(), Expires: expiry(t), Uses: t.GetUses(), Used: t.GetUsed(), Owner: t.GetOwner()}
}

func newTokenList(s command.Streams) *cobra.Command {
	c := command.NewConnection(s)
	return c.AddTo(&cobra.Command{
		Use:   "list",
		Short: "Print the tokens that have not expired, without their secrets",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.Do(cmd.Context(), func(ctx context.Context, client *clientv3.Client) error {
				tokens := quoratepb.NewTokensClient(client.ActiveConnection())
				answer, err := tokens.ListTokens(ctx, &quoratepb.ListTokensRequest{})
				if err != nil {
					return err
				}
				if c.JSON() {
					lines := []tokenLine{}
					for _, t := range answer.GetTokens() {
						lines = append(lines, lineOfToken(t))
					}
					return command.PrintJSON(s.Out, lines)
				}
				var table command.Table
				table.Add("ID", "EXPIRES", "USED", "OWNER")
				for _, t := range answer.GetTokens() {
					table.Add(t.GetId(), expiry(t), fmt.Sprintf("%d of %d", t.GetUsed(), t.GetUses()), t.GetOwner())
				}
				table.Print(s.Out)
				return nil
			})
		},
	})
}

func newTokenDelete(s command.Streams) *cobra.Command {
	c := command.NewConnection(s)
	return c.AddTo(&cobra.Command{
		Use:   "delete ID",
		Short: "End a token at once; members that it has admitted stay",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.Do(cmd.Context(), func(ctx context.Context, client *clientv3.Client) error {
				_, err := quoratepb.NewTokensClient(client.ActiveConnection()).DeleteToken(ctx,
					&quoratepb.DeleteTokenRequest{Id: args[0]})
				if err == nil {
					fmt.Fprintf(s.Err, "deleted join token %s\n", args[0])
				}
				return err
			})
		},
	})
}
