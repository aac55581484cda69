package mirror

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/progress"
)

const help = `Copy a running etcd or Quorate into another one, follow it, and say when clients may be switched. Both sides are
reached through etcd's API alone, so that it works in both directions.

The target is made equal to the source, and then each revision of the source becomes one transaction there, in order. Leases
keep their ids and are renewed at the target for as long as they live at the source. The position is kept in the target,
with the data: end this command at any time, and the same command goes on where it was.

Begin with a target that was restored from a snapshot of the source (quorate snapshot restore, or etcdutl): then users with
their passwords are there, and all revisions are equal, so that clients which watch may go on where they were. Into an
empty target keys, values and leases are copied, but revisions are new, and users must be added by hand.

To switch: stop the clients that write, run the command with --cutover, and wait for its verdict. It compares everything
once the source has been quiet, and exits with 0 if clients may use the target. Nothing but the mirror may write to the
target before.`

const example = `  quorate mirror --from 10.0.0.1:2379 --to 10.0.1.1:2379
  quorate mirror --from https://10.0.0.1:2379 --from-cacert etcd-ca.pem --from-user root:PASSWORD --to 10.0.1.1:2379 \
    --to-user root:PASSWORD --cutover`

// Command makes `quorate mirror`.
func Command(s command.Streams) *cobra.Command {
	from, to := command.NewConnection(s), command.NewConnection(s)
	from.MostAnswer, to.MostAnswer = command.LargeAnswer, command.LargeAnswer
	options := Options{}
	var format string
	c := &cobra.Command{
		Use: "mirror --from ENDPOINTS --to ENDPOINTS", Short: "Copy a running cluster into another one, and say when to switch",
		Long: help, Example: example, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case format != "text" && format != "json":
				return command.Usagef("--output %q: choose text or json", format)
			case options.MaxTxnOps < 2:
				return command.Usagef("--max-txn-ops %d: give at least 2", options.MaxTxnOps)
			case options.Quiet <= 0:
				return command.Usagef("--quiet %v: give a time, such as 5s", options.Quiet)
			}
			return runMirror(cmd.Context(), s, from, to, options, format == "json")
		},
	}
	c.Flags().SortFlags = false
	from.AddSide(c, &command.Side{Endpoints: "from", User: "from-user", Password: "from-password", CACert: "from-cacert",
		Cert: "from-cert", Key: "from-key", SkipVerify: "from-insecure-skip-tls-verify"}, "the cluster to copy")
	to.AddSide(c, &command.Side{Endpoints: "to", User: "to-user", Password: "to-password", CACert: "to-cacert",
		Cert: "to-cert", Key: "to-key", SkipVerify: "to-insecure-skip-tls-verify"}, "the cluster to write")
	c.Flags().BoolVar(&options.Cutover, "cutover", false, "end with a verdict once the source does not change any more")
	c.Flags().DurationVar(&options.Quiet, "quiet", 5*time.Second, "with --cutover: for how long the source must not change")
	c.Flags().BoolVar(&options.Overwrite, "overwrite", false,
		"make a target equal that holds other keys: what the source does not have is deleted there")
	c.Flags().IntVar(&options.MaxTxnOps, "max-txn-ops", 128, "the target's --max-txn-ops")
	c.Flags().StringVarP(&format, "output", "o", "text", "text or json")
	return c
}

func runMirror(ctx context.Context, s command.Streams, from, to *command.Connection, options Options, asJSON bool) error {
	clients := make([]*clientv3.Client, 2)
	for i, side := range []*command.Connection{from, to} {
		client, err := side.Open(ctx)
		if err != nil {
			return err
		}
		defer client.Close()
		if err := reach(ctx, side, client); err != nil {
			return fmt.Errorf("%s: %w", [...]string{"--from", "--to"}[i], err)
		}
		clients[i] = client
	}
	options.Source, options.Target = clients[0], clients[1]
	out := &output{Streams: s, json: asJSON, quiet: options.Quiet}
	options.Report, options.Notice = out.show, out.warn
	verdict, err := New(ctx, options).Run(ctx)
	out.clear()
	switch {
	case ctx.Err() != nil:
		fmt.Fprintf(s.Err, "stopped at revision %d of the source; the same command goes on there\n", out.last.Revision)
		return ctx.Err()
	case err != nil:
		return command.Refused(err)
	}
	return out.conclude(verdict)
}

// reach finds out at once whether a side can be reached: later failures are waited for.
func reach(ctx context.Context, side *command.Connection, client *clientv3.Client) error {
	bounded, cancel := context.WithTimeout(ctx, side.Timeout)
	defer cancel()
	bounded, release := command.CancelIfRefused(bounded, client.Endpoints())
	defer release()
	_, err := client.Get(bounded, positionKey)
	return side.Explain(ctx, err, client.Endpoints())
}

// output prints.
type output struct {
	command.Streams
	json   bool
	quiet  time.Duration // of the options
	last   Progress
	said   string // the last notice
	saidAt time.Time
	shown  time.Time
}

// progressPause is between two lines where no operator watches a terminal.
const progressPause = 10 * time.Second

func (o *output) show(p Progress) {
	changed := o.last.Stage != p.Stage || p.Changes && !o.last.Changes
	o.last = p
	if o.json {
		_ = command.PrintJSON(o.Out, p) // a broken pipe ends the program elsewhere
		return
	}
	line := fmt.Sprintf("%s: revision %d, %d behind (%s), %s, %s written", p.Stage, p.Revision, p.Behind,
		progress.Duration(p.Lag), plural.Of(p.Leases, "lease"), plural.Of(p.Written, "change"))
	if p.SameRevs {
		line += ", same revisions"
	}
	if p.Changes {
		line += fmt.Sprintf("; the source still changes, and --cutover waits until nobody has written there for %v: stop "+
			"the clients that write", o.quiet)
	}
	switch {
	case o.Terminal:
		fmt.Fprintf(o.Err, "\r\x1b[K%s", line)
	case changed || time.Since(o.shown) >= progressPause:
		o.shown = time.Now()
		fmt.Fprintln(o.Err, line)
	}
}

func (o *output) clear() {
	if o.Terminal && !o.json {
		fmt.Fprint(o.Err, "\r\x1b[K")
	}
}

func (o *output) warn(err error) {
	text := command.PlainText(err)
	if text == o.said && time.Since(o.saidAt) < progressPause {
		return
	}
	o.said, o.saidAt = text, time.Now()
	o.clear()
	command.Say(o.Err, fmt.Sprintf("%v; trying again", err))
}

func (o *output) conclude(v *Verdict) error {
	if o.json {
		if err := command.PrintJSON(o.Out, v); err != nil {
			return err
		}
	} else {
		printVerdict(o.Streams, v)
	}
	if !v.Safe {
		return command.ErrQuiet
	}
	return nil
}

func printVerdict(s command.Streams, v *Verdict) {
	fmt.Fprintf(s.Out, "compared %s and %s at revision %d of the source\n", plural.Of(v.Keys, "key"),
		plural.Of(v.Leases, "lease"), v.SourceRevision)
	fmt.Fprintf(s.Out, "users and roles: %s\n", v.Users)
	if v.SameRevisions {
		fmt.Fprintln(s.Out, "revisions: equal; clients may watch on from the revision that they have seen")
	} else {
		fmt.Fprintln(s.Out, "revisions: new; clients that watch must list again")
	}
	for _, example := range v.Examples {
		fmt.Fprintf(s.Out, "  %s\n", example)
	}
	if v.Safe {
		fmt.Fprintln(s.Out, "SAFE: the target has all that the source has; clients may be switched. Do not let any write to "+
			"the source again")
		return
	}
	fmt.Fprintf(s.Out, "NOT SAFE: %s; clients must stay at the source\n", plural.Of(v.Differences, "difference"))
}
