package backup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/backup/keep"
	"github.com/quorate/quorate/internal/backup/prune"
	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/progress"
	"github.com/quorate/quorate/internal/kv"
)

const retentionHelp = `Show what a rule keeps of a continuous backup, why and until when, and what would be removed now. The
command reads the manifests of all bases, and removes nothing: the member that ships does, once "quorate backup start --keep
RULE" has set the rule. With --endpoints of the running cluster it goes by what that knows, as the member does: which bases
members made, so that those of others replace none of them. Without, whatever lies at the place is believed.

A rule begins with the time for which any moment can be restored (h, d, w). After it, daily:N keeps the last base of each of
the last N days that have one, by UTC, without the log after it; weekly:N, monthly:N and yearly:N do so for weeks, months and
years. Without --keep the rule is that of the cluster, or the one by which something was removed last.

Exit status: 0; 1 something stands in the way, which is told; 3 the place cannot be reached.`

func newRetention(s command.Streams) *cobra.Command {
	c := source{streams: s}
	var word, output string
	cmd := &cobra.Command{
		Use: "retention --from URL", Short: "Show what a rule keeps of a continuous backup, and what it would remove",
		Long: retentionHelp, Args: cobra.NoArgs,
		Example: "  quorate backup retention --from s3://backups/prod --keep 48h,daily:30,weekly:12,monthly:12",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != formats[0] && output != formats[1] {
				return command.Usagef("--output %q: choose %s", output, command.Alternatives(formats))
			}
			rule, err := keep.Parse(word)
			if err != nil {
				return command.Usagef("--keep %w", err)
			}
			if err := c.open(cmd.Context()); err != nil {
				return err
			}
			defer c.store.Close()
			job, err := c.job(cmd.Context())
			switch {
			case err != nil:
				return err
			case word == "" && job.rule.Window > 0:
				rule = job.rule
			case word == "":
				if rule, err = c.lastRule(cmd.Context()); err != nil {
					return err
				}
			}
			return c.retention(cmd.Context(), rule, job.made, output == formats[1])
		},
	}
	c.addFlags(cmd)
	cmd.Flags().StringVar(&word, "keep", "", keepUsage)
	cmd.Flags().StringVarP(&output, "output", "o", formats[0], command.Alternatives(formats))
	c.addClient()
	return cmd
}

// job is what the running cluster knows that ships the backup.
type job struct {
	rule keep.Rule       // that it has; no window: none
	made []kv.BackupBase // that members reported, the newest one last; none: nothing is known of them
}

// job asks the cluster at --endpoints, if there is one and the backup is its own.
func (c *source) job(ctx context.Context) (j job, err error) {
	if !c.conn.Asked(c.cmd) {
		command.Say(c.streams.Err, "quorate: without --endpoints of the cluster it is not known which bases its members made: "+
			"all count as theirs, and the member that ships may remove less")
		return j, nil
	}
	var said *quoratepb.BackupStatus
	var of uint64
	err = c.conn.Do(ctx, func(ctx context.Context, client *clientv3.Client) error {
		members, err := client.MemberList(ctx)
		if err != nil {
			return err
		}
		of = members.Header.GetClusterId()
		said, err = quoratepb.NewBackupClient(client.ActiveConnection()).Status(ctx, &quoratepb.BackupStatusRequest{})
		return err
	})
	if err != nil {
		return j, err
	}
	if consensus.ClusterID(of) != c.catalog.Cluster {
		return j, command.Usagef("the cluster at --endpoints is %v, and the backup is that of %v: leave out --endpoints, or "+
			"--cluster", consensus.ClusterID(of), c.catalog.Cluster)
	}
	if said.GetKeep() != keep.All {
		if j.rule, err = keep.Parse(said.GetKeep()); err != nil {
			return j, command.Refused(fmt.Errorf("this program does not know the rule of the cluster: %w", err))
		}
	}
	for _, b := range said.GetMade() {
		base := kv.BackupBase{Index: b.GetIndex()}
		if copy(base.Hash[:], b.GetSha256()) != len(b.GetSha256()) || len(b.GetSha256()) != len(base.Hash) {
			return j, command.Refused(fmt.Errorf("the cluster says that members made a base of entry %d with a sum of %d "+
				"bytes, and sums have %d", base.Index, len(b.GetSha256()), len(base.Hash)))
		}
		j.made = append(j.made, base)
	}
	return j, nil
}

// newest returns the entry of the newest base that members made, and the epoch in which it was; zeros: none is known.
func (c *source) newest(made []kv.BackupBase) (index consensus.Index, epoch uint64) {
	for i := range made {
		index = max(index, consensus.Index(made[i].Index))
	}
	for i := range c.catalog.Bases {
		b := &c.catalog.Bases[i]
		if b.Index == index && slices.Contains(made, kv.BackupBase{Index: uint64(index), Hash: b.Hash}) {
			epoch = b.Epoch
		}
	}
	return index, epoch
}

// lastRule is the rule of the last note of what was removed.
func (c *source) lastRule(ctx context.Context) (keep.Rule, error) {
	name := c.catalog.Kept
	if name == nil {
		return keep.Rule{}, command.Usagef("nothing was removed by a rule here yet: say which one to try, with --keep")
	}
	content, err := fetch.Object(ctx, c.store, name.String(), name.Hash, backup.MaxKeptBytes)
	if err != nil {
		return keep.Rule{}, c.failed(ctx, err)
	}
	note, err := backup.DecodeKept(name, content)
	if err != nil {
		return keep.Rule{}, c.failed(ctx, err)
	}
	return keep.Parse(note.Rule)
}

// retainedPlan is a plan, for programs.
type retainedPlan struct {
	Rule    string          `json:"rule"`
	Bases   []retainedBase  `json:"bases"`
	Floor   consensus.Index `json:"log_after_entry"` // 0: all
	From    string          `json:"any_moment_since,omitempty"`
	Objects int             `json:"objects_to_remove"`
	Bytes   int64           `json:"bytes_to_remove"`
	Trouble string          `json:"trouble,omitempty"`
}

type retainedBase struct {
	listedEnd
	Kept  bool     `json:"kept"`
	Log   bool     `json:"with_log"`
	State string   `json:"state"`
	Why   []string `json:"why,omitempty"`
	Until string   `json:"until,omitempty"`
}

var states = map[keep.State]string{keep.Whole: "whole", keep.Lacking: "lacks files", keep.Unreadable: "unreadable",
	keep.Strange: "made by no member", keep.Late: "put late"}

func (c *source) retention(ctx context.Context, rule keep.Rule, made []kv.BackupBase, asJSON bool) error {
	newest, epoch := c.newest(made)
	p := prune.New(prune.Config{Cluster: c.catalog.Cluster, Epoch: epoch, Rule: rule, DryRun: true, MostBytes: readMemory})
	p.Begin(time.Now().UnixMilli(), newest, made...)
	for ops := p.Take(); len(ops) > 0; ops = p.Take() {
		for i := range ops {
			p.Done(ops[i].ID, fetch.Prune(ctx, c.store, &ops[i]))
		}
	}
	r := p.Report()
	if !r.Done || r.Plan == nil {
		return c.failed(ctx, errors.New(r.Why))
	}
	out := retainedPlan{Rule: rule.String(), Floor: r.Plan.Floor, Objects: r.Removed, Bytes: r.Bytes, Trouble: r.Why}
	if r.Plan.From > 0 {
		out.From = backup.Time(r.Plan.From)
	}
	for i := range r.Plan.Fates {
		f := &r.Plan.Fates[i]
		b := retainedBase{listedEnd: endOf(f.Head()), Kept: f.Kept, Log: f.Log, State: states[f.State], Why: f.Why}
		if f.Until > 0 {
			b.Until = backup.Time(f.Until)
		}
		out.Bases = append(out.Bases, b)
	}
	var err error
	if asJSON {
		err = command.PrintJSON(c.streams.Out, &out)
	} else {
		err = c.printRetention(rule, &out)
	}
	if err == nil && out.Trouble != "" {
		return command.Refused(errors.New(out.Trouble))
	}
	return err
}

func (c *source) printRetention(rule keep.Rule, out *retainedPlan) error {
	fmt.Fprintf(c.streams.Out, "rule %s: %s\n", out.Rule, rule.Sentence())
	w := tabwriter.NewWriter(c.streams.Out, 0, 0, 2, ' ', 0)
	for i := range out.Bases {
		b := &out.Bases[i]
		fate := "goes now"
		if b.Kept {
			fate = "stays: " + strings.Join(b.Why, ", ")
		}
		if b.State != states[keep.Whole] {
			fate += " (" + b.State + ")"
		}
		until := ""
		if b.Until != "" {
			until = "until about " + b.Until[:len("2026-11-30")]
		}
		fmt.Fprintf(w, "base\tentry %d\t%s\t%s\t%s\n", b.Entry, b.Time, until, fate)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if out.From != "" {
		fmt.Fprintf(c.streams.Out, "the log stays from entry %d on: any moment since %s can be restored, but for gaps\n",
			out.Floor+1, out.From)
	}
	_, err := fmt.Fprintf(c.streams.Out, "would remove %s now, %s; files that only these bases have follow with a later base\n",
		plural.Of(out.Objects, "object"), progress.Size(out.Bytes))
	return err
}
