package ctl

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/ctl/command"
)

func newPut(s command.Streams) *cobra.Command {
	c := command.NewConnection(s)
	c.MostAnswer = command.LargeAnswer
	var lease string
	cmd := &cobra.Command{
		Use:   "put KEY [VALUE]",
		Short: "Write a key; without VALUE the value is read from the input",
		Args:  cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			value, err := valueOf(args, s.In)
			if err != nil {
				return err
			}
			var opts []clientv3.OpOption
			if lease != "" {
				id, err := parseID("lease", lease)
				if err != nil {
					return err
				}
				opts = append(opts, clientv3.WithLease(clientv3.LeaseID(id)))
			}
			return c.Do(cmd.Context(), func(ctx context.Context, client *clientv3.Client) error {
				answer, err := client.Put(ctx, args[0], value, opts...)
				if err != nil {
					return err
				}
				if c.JSON() {
					return command.PrintJSON(s.Out, map[string]any{"revision": answer.Header.Revision})
				}
				_, err = fmt.Fprintln(s.Out, "OK")
				return err
			})
		},
	}
	cmd.Flags().StringVar(&lease, "lease", "", "lease that the key belongs to, in hexadecimal")
	return c.AddTo(cmd)
}

func valueOf(args []string, in io.Reader) (string, error) {
	if len(args) == 2 {
		return args[1], nil
	}
	content, err := io.ReadAll(in)
	if err != nil {
		return "", command.Usagef("read the value: %w", err)
	}
	return string(content), nil
}

// parseID reads an id as clients print it, in hexadecimal.
func parseID(what, text string) (uint64, error) {
	id, err := strconv.ParseUint(text, 16, 64)
	if err != nil {
		return 0, command.Usagef("%q is not the id of a %s: ids are hexadecimal numbers", text, what)
	}
	return id, nil
}

// rangeFlags are the flags of commands that concern more than one key.
type rangeFlags struct {
	prefix, fromKey bool
}

func (r *rangeFlags) addTo(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&r.prefix, "prefix", false, "all keys that begin with KEY")
	cmd.Flags().BoolVar(&r.fromKey, "from-key", false, "all keys from KEY on")
}

func (r *rangeFlags) options(args []string) ([]clientv3.OpOption, error) {
	switch {
	case r.prefix && r.fromKey:
		return nil, command.Usagef("--prefix and --from-key exclude each other")
	case (r.prefix || r.fromKey) && len(args) > 1:
		return nil, command.Usagef("--prefix and --from-key do not go with an END")
	case r.prefix:
		return []clientv3.OpOption{clientv3.WithPrefix()}, nil
	case r.fromKey:
		return []clientv3.OpOption{clientv3.WithFromKey()}, nil
	case len(args) > 1:
		return []clientv3.OpOption{clientv3.WithRange(args[1])}, nil
	}
	return nil, nil
}

type getFlags struct {
	rangeFlags
	revision, limit                    int64
	serializable, keysOnly, valuesOnly bool
	count                              bool
}

func (g *getFlags) options(args []string) ([]clientv3.OpOption, error) {
	opts, err := g.rangeFlags.options(args)
	if g.revision != 0 {
		opts = append(opts, clientv3.WithRev(g.revision))
	}
	if g.limit != 0 {
		opts = append(opts, clientv3.WithLimit(g.limit))
	}
	if g.serializable {
		opts = append(opts, clientv3.WithSerializable())
	}
	if g.keysOnly {
		opts = append(opts, clientv3.WithKeysOnly())
	}
	if g.count {
		opts = append(opts, clientv3.WithCountOnly())
	}
	return opts, err
}

func newGet(s command.Streams) *cobra.Command {
	c := command.NewConnection(s)
	c.MostAnswer = command.LargeAnswer
	var g getFlags
	cmd := &cobra.Command{
		Use:   "get KEY [END]",
		Short: "Read a key, or the keys from KEY up to END",
		Args:  cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts, err := g.options(args)
			if err != nil {
				return err
			}
			return c.Do(cmd.Context(), func(ctx context.Context, client *clientv3.Client) error {
				answer, err := client.Get(ctx, args[0], opts...)
				if err != nil {
					return err
				}
				return g.print(c, answer)
			})
		},
	}
	g.addTo(cmd)
	cmd.Flags().Int64Var(&g.revision, "rev", 0, "read the past, as of this revision")
	cmd.Flags().Int64Var(&g.limit, "limit", 0, "at most this many keys")
	cmd.Flags().BoolVar(&g.serializable, "serializable", false, "let the member answer alone; may be stale")
	cmd.Flags().BoolVar(&g.keysOnly, "keys-only", false, "print keys without values")
	cmd.Flags().BoolVar(&g.valuesOnly, "values-only", false, "print values without keys")
	cmd.Flags().BoolVar(&g.count, "count-only", false, "print how many keys there are")
	return c.AddTo(cmd)
}

func (g *getFlags) print(c *command.Connection, answer *clientv3.GetResponse) error {
	out := c.Streams.Out
	if c.JSON() {
		return command.PrintJSON(out, map[string]any{"revision": answer.Header.Revision, "count": answer.Count,
			"more": answer.More, "kvs": newPairs(answer.Kvs)})
	}
	if g.count {
		_, err := fmt.Fprintln(out, answer.Count)
		return err
	}
	for _, kv := range answer.Kvs {
		if !g.valuesOnly {
			fmt.Fprintf(out, "%s\n", kv.Key)
		}
		if !g.keysOnly {
			fmt.Fprintf(out, "%s\n", kv.Value)
		}
	}
	if answer.More {
		fmt.Fprintf(c.Streams.Err, "%d of %s; ask for more with --from-key\n", len(answer.Kvs), plural.Of(answer.Count, "key"))
	}
	return nil
}

func newDel(s command.Streams) *cobra.Command {
	c := command.NewConnection(s)
	c.MostAnswer = command.LargeAnswer
	var r rangeFlags
	cmd := &cobra.Command{
		Use:   "del KEY [END]",
		Short: "Delete a key, or the keys from KEY up to END, and print how many there were",
		Args:  cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts, err := r.options(args)
			if err != nil {
				return err
			}
			return c.Do(cmd.Context(), func(ctx context.Context, client *clientv3.Client) error {
				answer, err := client.Delete(ctx, args[0], opts...)
				if err != nil {
					return err
				}
				if c.JSON() {
					return command.PrintJSON(s.Out, map[string]any{"revision": answer.Header.Revision,
						"deleted": answer.Deleted})
				}
				_, err = fmt.Fprintln(s.Out, answer.Deleted)
				return err
			})
		},
	}
	r.addTo(cmd)
	return c.AddTo(cmd)
}

func newCompact(s command.Streams) *cobra.Command {
	c := command.NewConnection(s)
	var physical bool
	cmd := &cobra.Command{
		Use:   "compact REVISION",
		Short: "Forget the history before a revision",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			revision, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil {
				return command.Usagef("%q is not a revision", args[0])
			}
			var opts []clientv3.CompactOption
			if physical {
				opts = append(opts, clientv3.WithCompactPhysical())
			}
			return c.Do(cmd.Context(), func(ctx context.Context, client *clientv3.Client) error {
				answer, err := client.Compact(ctx, revision, opts...)
				if err != nil {
					return err
				}
				if c.JSON() {
					return command.PrintJSON(s.Out, map[string]any{"revision": answer.Header.Revision, "compacted": revision})
				}
				_, err = fmt.Fprintf(s.Out, "compacted revision %d\n", revision)
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&physical, "physical", false, "wait until the space is free")
	return c.AddTo(cmd)
}
