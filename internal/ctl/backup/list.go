package backup

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/history"
	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/progress"
)

const listHelp = `List what a place has of a cluster's continuous backup: bases, and the entries that segments of the log hold
without a break. Little but names is read: "quorate backup verify" proves what objects hold. With --identity the newest base of
each set of recipients is read, too, to tell whether the identity opens it.

Of a place with backups of several clusters, each cluster and its last state are listed; --cluster ID chooses one.`

func newList(s command.Streams) *cobra.Command {
	c := source{streams: s, lists: true}
	var output string
	cmd := &cobra.Command{
		Use: "list", Short: "List the bases and the log of a continuous backup", Long: listHelp, Args: cobra.NoArgs,
		Example: "  quorate backup list --endpoints http://127.0.0.1:2379\n  quorate backup list --from s3://backups/prod",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != formats[0] && output != formats[1] {
				return command.Usagef("--output %q: choose %s", output, command.Alternatives(formats))
			}
			if err := c.open(cmd.Context()); err != nil {
				return err
			}
			defer c.store.Close()
			if c.clusters != nil {
				return c.clusters.print(c.streams.Out, output == formats[1])
			}
			return c.print(cmd.Context(), output == formats[1])
		},
	}
	c.addFlags(cmd)
	c.addClient()
	cmd.Flags().StringVarP(&output, "output", "o", formats[0], command.Alternatives(formats))
	return cmd
}

// listed is a list, for programs.
type listed struct {
	Cluster string      `json:"cluster"`
	Bases   []listedEnd `json:"bases"`
	Log     []run       `json:"log"`
	Gaps    []gap       `json:"gaps"`
	Removed *removed    `json:"removed,omitempty"`
	Forks   int         `json:"forks"`
	// Histories are the states with which histories end, if there is more than one, that of the newest state first.
	Histories []historyEnd `json:"histories,omitempty"`
	Newest    *listedEnd   `json:"newest,omitempty"`
	Foreign   int          `json:"foreign_objects"`
	// Sets are those of recipients that objects are encrypted to, oldest first.
	Sets []set `json:"recipients,omitempty"`
}

// historyEnd is one of several histories that a place has of a cluster.
type historyEnd struct {
	End  listedEnd `json:"end"`
	Name string    `json:"name"` // for --history
}

// historiesOf returns the histories, if there is more than one.
func (c *source) historiesOf(ctx context.Context) (all []historyEnd, err error) {
	ends, err := (&history.Search{Store: c.store, Open: c.reads, Catalog: c.catalog}).Ends(ctx)
	if err != nil {
		return nil, c.failed(ctx, err)
	}
	if len(ends) < 2 {
		return nil, nil
	}
	for i := range ends {
		all = append(all, historyEnd{endOf(ends[i]), backup.PointName(ends[i].Point)})
	}
	return all, nil
}

// run is a sequence of entries without a break.
type run struct {
	First    consensus.Index `json:"first_entry"`
	Last     listedEnd       `json:"last"`
	Segments int             `json:"segments"`
	Bytes    int64           `json:"bytes"`
}

type gap struct {
	After consensus.Index `json:"after_entry"`
	Until consensus.Index `json:"until_entry"`
	Time  string          `json:"time"`
	// Reason is why the entries between the two were left out; of a plan only.
	Reason string `json:"reason,omitempty"`
}

// removed is what retention has removed.
type removed struct {
	Until consensus.Index `json:"log_until_entry"`
	From  string          `json:"any_moment_since"`
	Time  string          `json:"time"`
}

func listOf(c *backup.Catalog) *listed {
	l := &listed{Cluster: c.Cluster.String(), Forks: c.Forks(), Foreign: c.Foreign}
	for i := range c.Bases {
		l.Bases = append(l.Bases, endOf(c.Bases[i].Head()))
	}
	for i := range c.Segments {
		s := &c.Segments[i]
		if n := len(l.Log); n == 0 || s.First > l.Log[n-1].Last.Entry+1 {
			l.Log = append(l.Log, run{First: s.First, Last: endOf(s.Head())})
		}
		r := &l.Log[len(l.Log)-1]
		if s.End.Index > r.Last.Entry {
			r.Last = endOf(s.Head())
		}
		r.Segments++
		r.Bytes += s.Size
	}
	for _, g := range c.Gaps {
		l.Gaps = append(l.Gaps, gap{After: g.After, Until: g.Until, Time: backup.Time(g.Time)})
	}
	if k := c.Kept; k != nil {
		l.Removed = &removed{k.Floor, backup.Time(k.From), backup.Time(k.Time)}
	}
	if newest, found := c.Newest(); found {
		end := endOf(newest)
		l.Newest = &end
	}
	return l
}

func (c *source) print(ctx context.Context, asJSON bool) error {
	l := listOf(c.catalog)
	var err error
	if l.Sets, err = c.sets(ctx); err != nil {
		return err
	}
	if l.Histories, err = c.historiesOf(ctx); err != nil {
		return err
	}
	if asJSON {
		return command.PrintJSON(c.streams.Out, l)
	}
	fmt.Fprintf(c.streams.Out, "cluster %s\n", l.Cluster)
	w := tabwriter.NewWriter(c.streams.Out, 0, 0, 2, ' ', 0)
	for _, b := range l.Bases {
		fmt.Fprintf(w, "base\tentry %d\trevision %d\t%s\n", b.Entry, b.Revision, b.Time)
	}
	for _, r := range l.Log {
		fmt.Fprintf(w, "log\tentries %d to %d\tto revision %d\tto %s\t%s, %s\n", r.First, r.Last.Entry, r.Last.Revision,
			r.Last.Time, plural.Of(r.Segments, "segment"), progress.Size(r.Bytes))
	}
	for _, g := range l.Gaps {
		fmt.Fprintf(w, "gap\tbetween entries %d and %d\t\tnoted %s\n", g.After, g.Until, g.Time)
	}
	if k := l.Removed; k != nil {
		fmt.Fprintf(w, "removed\tthe log to entry %d\t\tat %s\tany moment since %s is kept\n", k.Until, k.Time, k.From)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	c.printSets(l.Sets)
	switch {
	case len(l.Histories) > 0:
		fmt.Fprintln(c.streams.Out, "several histories: a recovery lost entries, or volumes were rolled back. The last epoch "+
			"is restored; of two in it --history chooses one:")
		for _, h := range l.Histories {
			fmt.Fprintf(c.streams.Out, "  epoch %d to entry %d, revision %d, %s  --history %s\n", h.End.Epoch, h.End.Entry,
				h.End.Revision, h.End.Time, h.Name)
		}
	case l.Forks > 0:
		fmt.Fprintf(c.streams.Out, "two states of %s: a member applied something else\n",
			plural.Of(l.Forks, "entry", "entries"))
	}
	return ctx.Err()
}
