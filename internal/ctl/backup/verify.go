package backup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/progress"
	"github.com/quorate/quorate/internal/ctl/snapshot"
)

// latest is the state that --at names if it is not given.
const latest = "latest"

// Verifier restores a state of a backup and drops it. The server is one.
type Verifier func(ctx context.Context, b *snapshot.Backup, progress func(done, total int64)) (*snapshot.Proof, error)

const verifyHelp = `Prove a continuous backup by a restore: download the newest base and the segments after it into a scratch
directory, apply all entries, and compare the sum of the chain after each of them with the one that the cluster had there.
Nothing is changed at the place, and the scratch directory is removed.

With --report the cluster at --endpoints is told how that ended, in the name of the user: only root may while users are on. The
cluster's backup must go to that place.

Exit status: 0 the state was restored, and has the cluster's sums; 1 objects are missing or damaged (they are named, also if
others replace them), or the sums differ; 3 the place cannot be reached.`

func newVerify(s command.Streams, verify Verifier) *cobra.Command {
	c := source{streams: s}
	var at, scratch, output string
	var tell bool
	cmd := &cobra.Command{
		Use: "verify", Short: "Prove a continuous backup by a restore into a scratch directory",
		Long: verifyHelp, Args: cobra.NoArgs, Example: "  quorate backup verify --from s3://backups/prod",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != formats[0] && output != formats[1] {
				return command.Usagef("--output %q: choose %s", output, command.Alternatives(formats))
			}
			if tell && at != latest {
				return command.Usagef("--report tells of the latest state: leave out --at")
			}
			wanted, err := target(at)
			if err != nil {
				return err
			}
			if verify == nil {
				return command.Refused(errors.New("this program restores nothing"))
			}
			if tell {
				if err := c.own(cmd.Context()); err != nil {
					return err
				}
			}
			if err := c.open(cmd.Context()); err != nil {
				return err
			}
			defer c.store.Close()
			begun := time.Now()
			p, err := verify(cmd.Context(), &snapshot.Backup{Store: c.store, Catalog: c.catalog, Target: wanted,
				Place: c.at.String(), Scratch: scratch, Damaged: c.damaged, Open: c.reads}, c.shown())
			told := error(nil)
			if tell && cmd.Context().Err() == nil {
				told = report(cmd.Context(), c.conn, &c, time.Since(begun), p, err)
			}
			return cmp.Or(c.verified(cmd.Context(), p, err, output == formats[1]), told)
		},
	}
	c.addFlags(cmd)
	c.addHistory(cmd.Flags())
	cmd.Flags().BoolVar(&tell, "report", false, "tell the cluster at --endpoints how it ended")
	cmd.Flags().StringVar(&at, "at", latest, "the state to prove: latest, "+command.WhenHelp+", a revision, or entry:INDEX")
	cmd.Flags().StringVar(&scratch, "scratch", "", "where the scratch directory is made (default that for temporary files)")
	cmd.Flags().StringVarP(&output, "output", "o", formats[0], command.Alternatives(formats))
	c.addClient()
	return cmd
}

// own says that the backup is that of the cluster at --endpoints. If it cannot be asked, the place says which one is meant,
// where it has one only: how the backup is stays worth knowing.
func (c *source) own(ctx context.Context) error {
	given := c.cluster
	c.cluster = ""
	err := c.conn.Do(ctx, c.Identify)
	c.cluster = given
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		command.Say(c.streams.Err, "quorate: the cluster does not say which backup is its own, and may not take the report: "+
			err.Error())
		return nil
	}
	if n, err := strconv.ParseUint(given, 16, 64); err == nil && consensus.ClusterID(n) != c.running {
		return command.Usagef("--cluster %s: --report tells the cluster at --endpoints of its own backup, and that is cluster "+
			"%v", given, c.running)
	}
	return nil
}

// damaged tells of an object that others may replace.
func (c *source) damaged(err error) {
	command.Say(c.streams.Err, "quorate: "+err.Error()+"; trying without it")
}

// verified prints how a verification ended.
func (c *source) verified(ctx context.Context, p *snapshot.Proof, err error, asJSON bool) error {
	switch {
	case err != nil:
		return c.failed(ctx, err)
	case asJSON:
		err = command.PrintJSON(c.streams.Out, p)
	default:
		_, err = fmt.Fprintf(c.streams.Out, "proved: entry %d, revision %d, of %s, from the base of entry %d and %s (%s); the "+
			"chain has the cluster's sum %s\n", p.Entry, p.Revision, p.Time, p.BaseEntry, plural.Of(p.Segments, "segment"),
			plural.Of(p.Entries, "entry", "entries"), p.Sum)
	}
	if err == nil && len(p.Damaged) > 0 {
		return command.ErrQuiet // each was told
	}
	return err
}

// shown returns what shows the progress on a terminal.
func (c *source) shown() func(done, total int64) {
	if !c.streams.Terminal {
		return nil
	}
	var last time.Time
	return func(done, total int64) {
		if time.Since(last) > time.Second/2 && done < total {
			last = time.Now()
			fmt.Fprintf(c.streams.Err, "\rread %s of %s\x1b[K", progress.Size(done), progress.Size(total))
		} else if done >= total {
			fmt.Fprint(c.streams.Err, "\r\x1b[K")
		}
	}
}
