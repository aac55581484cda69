package top

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/screen"
	"github.com/quorate/quorate/internal/ranking"
)

const long = `Show which prefixes of keys, or which clients, the members work for most.

Every member counts the calls that it gets itself, and the command adds what all of them answer. Small calls are
counted as a sample; CPU is an estimate, in processors. A prefix is a key up to its third slash; operations on it
have a row each. A client is a user and a host. On a terminal the table is refreshed until you press Ctrl-C.
With --through-member one member is asked, and asks the others: where only one client port is reached.

While authentication is enabled, only root may ask: prefixes, users and addresses are shown.`

const example = `  quorate top
  quorate top --by bytes --window 5m
  quorate top --clients --by cpu
  quorate top --once -o json --user root`

// ways to rank, as --by names them.
var ways = []string{ranking.ByOperations, ranking.ByBytes, ranking.ByProcessor, ranking.ByWatchers}

var windows = map[string]quoratepb.TopWindow{
	"10s": quoratepb.TopWindow_TOP_WINDOW_SHORT, "5m": quoratepb.TopWindow_TOP_WINDOW_LONG,
}

// view is one command line.
type view struct {
	*command.Connection
	ranking.View
	window  string
	once    bool
	through bool // one member asks the others
	rows    int
	every   time.Duration
}

const (
	defaultRows = 20
	mostRows    = 128
	leastEvery  = 500 * time.Millisecond // members make no answers more often
)

// New is the command `quorate top`.
func New(s command.Streams) *cobra.Command {
	v := &view{Connection: command.NewConnection(s)}
	cmd := v.AddTo(&cobra.Command{
		Use:     "top",
		Short:   "Show the busiest prefixes of keys, or clients: operations, bytes, CPU and watchers",
		Long:    long,
		Example: example,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return v.run(cmd.Context()) },
	})
	cmd.Flags().StringVar(&v.By, "by", ranking.ByOperations, "what to rank by: "+command.Alternatives(ways))
	cmd.Flags().StringVar(&v.window, "window", "10s", "the time to look back: 10s or 5m")
	cmd.Flags().BoolVar(&v.Clients, "clients", false, "show clients instead of prefixes")
	cmd.Flags().BoolVar(&v.once, "once", false, "print once; the default if the output is no terminal")
	cmd.Flags().BoolVar(&v.through, "through-member", false, "ask one member, which asks the others")
	cmd.Flags().IntVar(&v.rows, "rows", defaultRows, "how many rows to show")
	cmd.Flags().DurationVar(&v.every, "interval", 2*time.Second, "how often to refresh")
	return cmd
}

func (v *view) check() error {
	switch {
	case !slices.Contains(ways, v.By):
		return command.Usagef("--by %q: choose %s", v.By, command.Alternatives(ways))
	case v.window != "10s" && v.window != "5m":
		return command.Usagef("--window %q: choose 10s or 5m", v.window)
	case v.rows < 1 || v.rows > mostRows:
		return command.Usagef("--rows %d: choose 1 to %d", v.rows, mostRows)
	case v.every < leastEvery:
		return command.Usagef("--interval %v: at least %v", v.every, leastEvery)
	}
	return nil
}

func (v *view) run(ctx context.Context) error {
	if err := v.check(); err != nil {
		return err
	}
	r := newRound(v)
	defer r.close()
	if v.once || !v.Streams.Terminal || v.JSON() {
		found, err := r.ask(ctx)
		if err != nil {
			return err
		}
		if v.JSON() {
			return command.PrintJSON(v.Streams.Out, outputOf(found, v))
		}
		_, err = fmt.Fprintln(v.Streams.Out, strings.Join(lines(found, v, v.rows), "\n"))
		return err
	}
	return v.refresh(ctx, r)
}

// aroundTable is how many lines stand above and below the rows, at most, beside one for each member that does not answer.
const aroundTable = 8

// refresh draws the table until the context ends.
func (v *view) refresh(ctx context.Context, r *round) error {
	s := screen.Screen{Out: v.Streams.Out, Width: command.TerminalWidth}
	tick := time.NewTicker(v.every)
	defer tick.Stop()
	shown := false
	for {
		found, err := r.ask(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !shown:
			return err
		case err != nil:
			s.Draw([]string{err.Error()})
		default:
			rows := v.rows
			if height := command.TerminalHeight(); height > 0 {
				rows = max(1, min(rows, height-aroundTable-len(found.missing)))
			}
			s.Draw(lines(found, v, rows))
			shown = true
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}
