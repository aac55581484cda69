package ctl

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/internal/ctl/command"
)

func newWatch(s command.Streams) *cobra.Command {
	c := command.NewConnection(s)
	c.MostAnswer = command.LargeAnswer
	var r rangeFlags
	var revision int64
	var previous bool
	cmd := &cobra.Command{
		Use:   "watch KEY [END]",
		Short: "Print changes of a key, or of the keys from KEY up to END, as they happen",
		Args:  cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts, err := r.options(args)
			if err != nil {
				return err
			}
			if revision != 0 {
				opts = append(opts, clientv3.WithRev(revision))
			}
			if previous {
				opts = append(opts, clientv3.WithPrevKV())
			}
			return watchKeys(cmd.Context(), c, args[0], append(opts, clientv3.WithCreatedNotify()))
		},
	}
	r.addTo(cmd)
	cmd.Flags().Int64Var(&revision, "rev", 0, "begin with the changes of this revision")
	cmd.Flags().BoolVar(&previous, "prev-kv", false, "print the value before the change too")
	return c.AddTo(cmd)
}

// watch prints events until the context ends. Only the beginning is bounded in time: a watch that has been created
// may be quiet forever, and the client reconnects by itself.
func watchKeys(ctx context.Context, c *command.Connection, key string, opts []clientv3.OpOption) error {
	client, err := c.Open(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	bounded, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	bounded, release := command.CancelIfRefused(bounded, client.Endpoints())
	defer release()
	open, end := context.WithCancel(ctx)
	defer end()
	disarm := context.AfterFunc(bounded, end)
	for answer := range client.Watch(clientv3.WithRequireLeader(open), key, opts...) {
		if answer.Err() != nil {
			return explainWatch(ctx, c, answer, client.Endpoints())
		}
		if answer.Created {
			disarm()
		}
		if err := printEvents(c, answer); err != nil {
			return err
		}
	}
	return c.Explain(ctx, context.DeadlineExceeded, client.Endpoints())
}

func explainWatch(ctx context.Context, c *command.Connection, answer clientv3.WatchResponse, endpoints []string) error {
	if answer.CompactRevision != 0 {
		return command.Refused(fmt.Errorf("the history before revision %d is compacted; watch with --rev %d "+
			"or later", answer.CompactRevision, answer.CompactRevision))
	}
	return c.Explain(ctx, answer.Err(), endpoints)
}

type eventLine struct {
	Type     string `json:"type"`
	Revision int64  `json:"revision"`
	pair
	Previous *pair `json:"previous,omitempty"`
}

func printEvents(c *command.Connection, answer clientv3.WatchResponse) error {
	for _, e := range answer.Events {
		if c.JSON() {
			line := eventLine{Type: e.Type.String(), Revision: e.Kv.ModRevision, pair: newPair(e.Kv)}
			if e.PrevKv != nil {
				before := newPair(e.PrevKv)
				line.Previous = &before
			}
			if err := command.PrintJSON(c.Streams.Out, line); err != nil {
				return err
			}
			continue
		}
		text := fmt.Sprintf("%d %s %s", e.Kv.ModRevision, e.Type, e.Kv.Key)
		if e.IsCreate() || e.IsModify() {
			text += fmt.Sprintf(" %s", e.Kv.Value)
		}
		if e.PrevKv != nil {
			text += fmt.Sprintf(" (was %s)", e.PrevKv.Value)
		}
		if _, err := fmt.Fprintln(c.Streams.Out, text); err != nil {
			return err
		}
	}
	return nil
}
