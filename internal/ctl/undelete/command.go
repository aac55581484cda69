package undelete

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/ctl/backup"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/snapshot"
	"github.com/quorate/quorate/internal/undelete"
)

const long = `Restore keys that begin with PREFIX, were deleted, and are still in the history that the cluster keeps.

The plan is shown first, and asked about. Each key gets the value that its last deletion took, or, with --at, the one
that it had at that revision, or at that time. A key that exists is never written, so the command may be given
again, by two operators, and while clients write. Leases are not restored: keys that had one, such as locks, are left
out unless --leased or --exact is given.

With a time, the revision is the last one that was certainly there by the clocks that noted the time, about every 10
seconds: what was written in the seconds before the time may be left out. The plan names the revision.

The history goes back to the last compaction. Before it, --from-backup URL takes the keys from a state of a continuous
backup: the one of --at (latest, a time, a revision, or entry:INDEX), which is restored into a scratch directory and proved
first. It is the backup of this cluster unless --cluster names another one: a restored cluster has another id than the one
whose backup it was restored from, so keys from that backup need --cluster. An empty PREFIX ('') means all keys.`

const example = `  quorate undelete /app/ --dry-run
  quorate undelete /app/
  quorate undelete /app/config --exact --yes
  quorate undelete /app/ --at 4711
  quorate undelete /app/ --at '2026-11-30 12:03:10' --dry-run
  quorate undelete /app/ --from-backup s3://backups/prod --at 2026-11-29T12:00:00Z --dry-run`

// New is the command `quorate undelete`.
func New(s command.Streams, read backup.Reader) *cobra.Command {
	w := &work{Connection: command.NewConnection(s), past: backup.NewPast(s, read, "from-backup")}
	w.MostAnswer = command.LargeAnswer
	cmd := w.AddTo(&cobra.Command{
		Use:     "undelete PREFIX",
		Short:   "Restore keys that were deleted, from the history that is kept; shows a plan first",
		Long:    long,
		Example: example,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			w.prefix = args[0]
			if err := w.check(cmd.Flags().Changed("at"), time.Now()); err != nil {
				return err
			}
			return w.run(cmd.Context())
		},
	})
	flags := cmd.Flags()
	flags.StringVar(&w.atText, "at", "", "restore keys as of this revision, or "+command.WhenHelp+
		", not as each deletion found them")
	flags.BoolVar(&w.exact, "exact", false, "only the key that is PREFIX itself")
	flags.BoolVar(&w.leased, "leased", false, "restore keys that had a lease, too; they are written without, and do not expire")
	flags.StringVar(&w.from, "from", "", "leave out the keys before this one")
	flags.IntVar(&w.limit, "limit", defaultKeys, fmt.Sprintf("how many keys to restore at most, up to %d", undelete.MostKeys))
	flags.IntVar(&w.rows, "rows", defaultRows, "how many keys to print; -o json has all")
	flags.BoolVarP(&w.yes, "yes", "y", false, "do not ask; needed where there is no terminal to ask on")
	flags.BoolVar(&w.dryRun, "dry-run", false, "print the plan and change nothing")
	w.past.AddFlags(flags)
	return cmd
}

func (w *work) run(ctx context.Context) error {
	client, err := w.Open(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	if w.past.Given() {
		if err := w.identify(ctx, client); err != nil {
			return err
		}
		return w.past.Use(ctx, func(past undelete.Past, of *snapshot.Proof) error {
			w.of = of
			return w.restore(ctx, client, past)
		})
	}
	if err := w.resolve(ctx, client); err != nil {
		return err
	}
	return w.restore(ctx, client, nil)
}

// identify makes the backup that of the cluster at --endpoints, unless --cluster names one.
func (w *work) identify(ctx context.Context, client *clientv3.Client) error {
	bounded, cancel := context.WithTimeout(ctx, w.Timeout)
	defer cancel()
	bounded, release := command.CancelIfRefused(bounded, client.Endpoints())
	defer release()
	return w.Explain(ctx, w.past.Identify(bounded, client), client.Endpoints())
}

// restore plans, asks and restores: from a state of a backup, or from the cluster's history if past is nil.
func (w *work) restore(ctx context.Context, client *clientv3.Client, past undelete.Past) error {
	plan, err := w.plan(ctx, client, past)
	if err != nil {
		return err
	}
	if len(plan.Items) == 0 {
		return w.nothing(ctx, client, plan)
	}
	if err := w.printPlan(plan); err != nil || w.dryRun {
		return err
	}
	if !w.yes {
		if err := w.Streams.Confirm(ctx); err != nil {
			return err
		}
	}
	return w.apply(ctx, client, plan)
}

// plan asks for the plan.
func (w *work) plan(ctx context.Context, client *clientv3.Client, past undelete.Past) (*undelete.Plan, error) {
	reachable, release := command.CancelIfRefused(ctx, client.Endpoints())
	defer release()
	p := newProgress(w.Connection)
	defer p.end()
	cluster := undelete.Cluster{Conn: client.ActiveConnection(), Timeout: w.Timeout, Patience: w.Timeout}
	told := func(keys int, looked int64) { p.say("looking: %d keys found, %d rows looked at", keys, looked) }
	var plan *undelete.Plan
	var err error
	if past != nil {
		plan, err = cluster.PlanFrom(reachable, past, w.request(), told)
	} else {
		plan, err = cluster.Plan(reachable, w.request(), told)
	}
	if err == nil {
		return plan, nil
	}
	return nil, w.explain(ctx, err, client)
}

// resolve finds the revision of the time that was asked for.
func (w *work) resolve(ctx context.Context, client *clientv3.Client) error {
	if w.when.IsZero() {
		return nil
	}
	reachable, release := command.CancelIfRefused(ctx, client.Endpoints())
	defer release()
	cluster := undelete.Cluster{Conn: client.ActiveConnection(), Timeout: w.Timeout, Patience: w.Timeout}
	answer, err := cluster.RevisionAt(reachable, w.when)
	if err != nil {
		return w.explain(ctx, err, client)
	}
	w.at, w.told = answer.GetAtLeast(), answer
	return nil
}

func (w *work) explain(ctx context.Context, err error, client *clientv3.Client) error {
	if refused, ok := errors.AsType[*undelete.RevisionError](err); ok {
		return command.Refused(refused)
	}
	if refused, ok := errors.AsType[*undelete.TimeError](err); ok {
		return command.Refused(refused)
	}
	if status.Code(err) == codes.Unimplemented && !w.when.IsZero() {
		return command.Refused(errors.New("this server does not know times of revisions: it is an etcd, or an earlier build " +
			"of Quorate; give --at a revision"))
	}
	if status.Code(err) == codes.Unimplemented && strings.Contains(command.PlainText(err), "unknown service") {
		return command.Refused(errors.New("this server does not tell which keys were deleted: it is an etcd, or an earlier " +
			"build of Quorate"))
	}
	return w.Explain(ctx, err, client.Endpoints())
}

// nothing ends a command that has nothing to write. It is well if all keys that are meant exist.
func (w *work) nothing(ctx context.Context, client *clientv3.Client, plan *undelete.Plan) error {
	exist := plan.Kept.Same + plan.Kept.Other
	if exist > 0 || w.JSON() {
		if err := w.printPlan(plan); err != nil || exist > 0 {
			return err
		}
	}
	if w.of != nil {
		return command.Refused(fmt.Errorf("nothing to restore: %s in the backup's state of revision %d%s",
			w.none("did not exist", "existed"), w.of.Revision, leftOutWords(plan.LeftOut)))
	}
	if w.at == 0 {
		return command.Refused(fmt.Errorf("nothing to restore: %s since revision %d, where the history that is kept begins",
			w.none("was not deleted", "was deleted"), plan.First))
	}
	r, count := w.request(), int64(0)
	err := w.Do(ctx, func(ctx context.Context, client *clientv3.Client) error {
		opts := []clientv3.OpOption{clientv3.WithRev(w.at), clientv3.WithCountOnly()}
		if len(r.End) > 0 {
			opts = append(opts, clientv3.WithRange(string(r.End)))
		}
		answer, err := client.Get(ctx, string(r.Key), opts...)
		if err == nil {
			count = answer.Count
		}
		return err
	})
	switch {
	case err != nil:
		return w.explain(ctx, err, client)
	case count == 0:
		return command.Refused(fmt.Errorf("nothing to restore: %s at revision %d", w.none("did not exist", "existed"), w.at))
	case w.JSON():
		return nil
	}
	_, err = fmt.Fprintf(w.Streams.Out, "nothing to restore: what existed at revision %d is unchanged\n", w.at)
	return err
}

// apply does what the plan says.
func (w *work) apply(ctx context.Context, client *clientv3.Client, plan *undelete.Plan) error {
	p := newProgress(w.Connection)
	cluster := undelete.Cluster{Conn: client.ActiveConnection(), Timeout: w.Timeout}
	result, err := cluster.Apply(ctx, plan, func(r *undelete.Result) {
		p.say("%d of %d keys, %s restored", r.Settled(), len(plan.Items), sizeText(r.Bytes))
	})
	p.end()
	if printErr := w.printResult(plan, result); printErr != nil {
		return printErr
	}
	if err != nil {
		fmt.Fprintf(w.Streams.Err, "%d of %d keys were not reached; the same command goes on\n",
			len(plan.Items)-result.Settled(), len(plan.Items))
		return w.explain(ctx, err, client)
	}
	if missing := len(result.Gone) + len(result.TooLarge); missing > 0 {
		return command.Refused(fmt.Errorf("%d of %d keys could not be restored", missing, len(plan.Items)))
	}
	return nil
}

func leftOutWords(leased int) string {
	if leased == 0 {
		return ""
	}
	return fmt.Sprintf(", but for %s that had a lease (--leased)", plural.Of(leased, "key"))
}
