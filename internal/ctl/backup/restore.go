package backup

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/backup/history"
	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/base/printable"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/progress"
	"github.com/quorate/quorate/internal/ctl/snapshot"
)

const restoreHelp = `Make the data directory of a new member from a continuous backup, as of a time, a revision or an entry.

The newest base before it is downloaded, the segments after that are applied as members apply them, and after each entry the
sum of the chain must be the one that the cluster had: a state that differs is not restored. If an object is missing or damaged,
it is named, and an older base is tried for the same state. The result is the data directory of a member of a new cluster, with
another id: with keys, leases, users, roles, limits and the policy of the audit, and without members, jobs and the backup's own
policy, so that the new cluster does not write to the place of the former one: start its backup again.

This is for a cluster that is lost, or stopped: no member of it may serve. Do it once for each member of the new cluster, with
the same --initial-cluster. The first restore draws an --initial-cluster-token, so that each try makes a cluster with an id of
its own, and prints it with the entry that it proved: give both to the others, since only members that were restored to the same
entry with the same token meet. Then start all, with the flags that the members had, but without --initial-cluster.

--plan shows what would be read, and what is left out, and changes nothing.`

// bump is what clusters hardly write in a day: clients that watch begin anew.
const bump = 1_000_000_000

// The word that keeps restores apart: its letters have 80 bits.
const (
	tokenFlag    = "initial-cluster-token"
	tokenLetters = 16
)

// NewRestore is the command `quorate restore`.
func NewRestore(s command.Streams, restore snapshot.Restorer) *cobra.Command {
	c := source{streams: s}
	var r snapshot.Request
	var at, output string
	var planOnly, skip bool
	cmd := &cobra.Command{
		Use: "restore --from URL --data-dir DIR", Short: "Begin a new cluster with a past state of a continuous backup",
		Long: restoreHelp,
		Example: "  quorate restore --from s3://backups/prod --at 2026-11-30T12:00:00Z --plan\n" +
			"  quorate restore --from s3://backups/prod --at 2026-11-30T12:00:00Z --name m1 --data-dir /var/lib/quorate \\\n" +
			"    --initial-cluster m1=http://10.0.0.1:2380,m2=http://10.0.0.2:2380,m3=http://10.0.0.3:2380 \\\n" +
			"    --initial-advertise-peer-urls http://10.0.0.1:2380\n" +
			"  quorate restore --from s3://backups/prod --at entry:4711 --name m2 --data-dir /var/lib/quorate \\\n" +
			"    --initial-cluster m1=http://10.0.0.1:2380,m2=http://10.0.0.2:2380,m3=http://10.0.0.3:2380 \\\n" +
			"    --initial-advertise-peer-urls http://10.0.0.2:2380 --initial-cluster-token restored-k3v9x2m5q7ad4c6f",
		Args: cobra.NoArgs,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	c.addFlags(cmd)
	c.addHistory(cmd.Flags())
	flags.StringVar(&at, "at", "", "the state: latest, "+command.WhenHelp+", a revision, or entry:INDEX")
	flags.BoolVar(&planOnly, "plan", false, "show what would be read and what is left out; change nothing")
	member := r.AddFlags(flags)
	flags.BoolVar(&skip, "skip-existing", false, "change nothing, and succeed, if --data-dir holds a member already: for "+
		"what runs before each start of one")
	flags.Uint64Var(&r.BumpRevision, "bump-revision", bump, "raise the revision by so much, and forget all history, so that "+
		"every client which watches begins anew; 0 keeps both")
	flags.StringVarP(&output, "output", "o", "text", "text or json")
	c.addClient()
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case at == "":
			return command.Usagef("say which state: --at latest, a time, a revision, or entry:INDEX")
		case output != "text" && output != "json":
			return command.Usagef("--output %q: choose text or json", output)
		case restore == nil && !planOnly:
			return command.Refused(errors.New("this program restores nothing"))
		case skip && r.DataDir == "":
			return command.Usagef("--skip-existing needs --data-dir")
		}
		if skip {
			if there, err := holdsMember(r.DataDir); err != nil || there {
				return err
			}
		}
		wanted, err := target(at)
		if err != nil {
			return err
		}
		if err := c.open(cmd.Context()); err != nil {
			return err
		}
		defer c.store.Close()
		if err := c.plan(cmd.Context(), wanted, planOnly, output == "json"); err != nil || planOnly {
			return err
		}
		member()
		if !flags.Changed(tokenFlag) {
			r.Token = "restored-" + strings.ToLower(rand.Text()[:tokenLetters])
			r.Member = append(r.Member, "--"+tokenFlag+"="+r.Token)
		}
		r.Backup = &snapshot.Backup{Store: c.store, Catalog: c.catalog, Target: wanted, Place: c.at.String(),
			Damaged: c.damaged, Open: c.reads}
		return snapshot.Restore(cmd.Context(), s, &r, restore, output == "json")
	}
	return cmd
}

// holdsMember tells whether a directory has a member: a restore gives it that name once it is complete.
func holdsMember(dir string) (bool, error) {
	_, err := os.Stat(filepath.Join(dir, "member"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, command.Refused(fmt.Errorf("--data-dir %s: %w", dir, err))
	}
	return err == nil, nil
}

// planned is a plan, for programs.
type planned struct {
	Base      listedEnd `json:"base"`
	BaseFiles int       `json:"base_files"`
	BaseBytes int64     `json:"base_bytes"`
	Segments  int       `json:"segments"`
	Entries   uint64    `json:"entries"` // at most
	LogBytes  int64     `json:"log_bytes"`
	Newest    listedEnd `json:"newest"`
	Rivals    int       `json:"rivals"` // segments that have another state there: see printPlan
	// Short is set if the time that was asked for is after all that the place has.
	Short bool  `json:"short"`
	Gaps  []gap `json:"gaps,omitempty"` // after the base
}

// plan prints the plan for a state.
func (c *source) plan(ctx context.Context, wanted backup.Target, only, asJSON bool) error {
	search := &history.Search{Store: c.store, Open: c.reads, Catalog: c.catalog, Target: wanted, OneHistory: true}
	var p *backup.Plan
	var rivals []history.Rival
	var err error
	if only {
		p, rivals, err = search.Compared(ctx)
	} else {
		p, err = search.Plan(ctx)
	}
	if err != nil {
		return c.failed(ctx, err)
	}
	out := planned{Rivals: len(rivals), Base: endOf(p.Base.Head()),
		Segments: len(p.Segments), Entries: uint64(p.End.Index - p.Base.Index),
		LogBytes: p.LogBytes(), Newest: endOf(p.Newest), Short: p.Short}
	for _, g := range c.catalog.Gaps {
		if g.Until > p.Base.Index {
			out.Gaps = append(out.Gaps, gap{g.After, g.Until, backup.Time(g.Time), c.reason(ctx, &g)})
		}
	}
	content, err := fetch.Object(ctx, c.store, p.Base.String(), p.Base.Hash, backup.MaxManifestBytes)
	if err == nil {
		var needs []backup.Object
		needs, err = backup.ObjectsOf(&p.Base.BaseName, content)
		out.BaseFiles = len(needs)
		for i := range needs {
			out.BaseBytes += needs[i].Size
		}
	}
	if err == nil && !only && c.reads == nil && !slices.ContainsFunc(c.catalog.Bases, inClear) {
		err = fmt.Errorf("object %s: %w", p.Base.String(), backup.ErrSealed)
		only = true
	}
	if err != nil && only { // a restore tells other errors, and tries another base
		return c.failed(ctx, err)
	}
	if asJSON {
		if !only { // one document: the result
			return nil
		}
		return command.PrintJSON(c.streams.Out, &out)
	}
	return c.printPlan(wanted, p, &out)
}

func inClear(b backup.Base) bool { return b.Set == 0 }

// reason is why a member left out entries, as it noted.
func (c *source) reason(ctx context.Context, name *backup.GapName) string {
	content, err := fetch.Object(ctx, c.store, name.String(), name.Hash, backup.MaxGapBytes)
	if err != nil {
		return "the note cannot be read: " + err.Error()
	}
	note, err := backup.OpenGap(name, content, c.reads)
	if err != nil {
		return "the note cannot be read: " + err.Error()
	}
	return printable.Text(note.Reason, 200)
}

func (c *source) printPlan(wanted backup.Target, p *backup.Plan, out *planned) error {
	w := c.streams.Out
	fmt.Fprintf(w, "plan for %v, cluster %v, from %s\n", wanted, c.catalog.Cluster, c.at)
	fmt.Fprintf(w, "  base      entry %d, revision %d, of %s; %s, %s\n", out.Base.Entry, out.Base.Revision, out.Base.Time,
		plural.Of(out.BaseFiles, "file"), progress.Size(out.BaseBytes))
	fmt.Fprintf(w, "  log       %s, %s; at most %s\n", plural.Of(out.Segments, "segment"), progress.Size(out.LogBytes),
		plural.Of(int(out.Entries), "entry", "entries"))
	fmt.Fprintf(w, "  newest    entry %d, revision %d, of %s is the last state at the place\n", out.Newest.Entry,
		out.Newest.Revision, out.Newest.Time)
	switch {
	case p.Short:
		fmt.Fprintf(w, "  left out  what was written after %s is not at the place\n", out.Newest.Time)
	case wanted == backup.Target{}:
		fmt.Fprint(w, "  left out  what was written since, and did not reach the place\n")
	default:
		fmt.Fprintf(w, "  left out  all that was written after %v\n", wanted)
	}
	if out.Rivals > 0 {
		fmt.Fprintf(w, "  not sure  %s at the place %s another state there. A restore finds out by a replay which one is the "+
			"cluster's, or refuses; `quorate backup verify` with the same --from and --at says that before\n",
			plural.Of(out.Rivals, "segment"), plural.Word(out.Rivals, "has", "have"))
	}
	for _, g := range out.Gaps {
		fmt.Fprintf(w, "  gap       no state between entries %d and %d can be restored: %s\n", g.After, g.Until, g.Reason)
	}
	return nil
}
