package backup

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/keep"
	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/base/printable"
	"github.com/quorate/quorate/internal/base/typed"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/progress"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/objects/place"
)

const startHelp = `Let the cluster ship a continuous backup to URL, or change what it ships where. One member does, whom the
leader appoints; another one goes on when it is gone. Each member must be able to reach the place: a directory is one that all
members share. Without URL the backup goes on, or is changed, where it went last.

URL is as for "quorate backup check", without credentials=, ca= and profile=: each member must have been started with
--backup-places, a list of URLs that it may ship to, and takes these files from its own entry, or credentials from its
environment. The command compares the URL with what the member that is asked allows, and does not ask the place: wrong keys show
in "quorate backup status". So try the URL with the files first, by "quorate backup check" on each machine, as the user of the
member.

Without --recipient the backup is in the clear. With it only the holder of a recipient's secret key can read the backup: the
members cannot. age-keygen makes a key pair. Recipients replace those before, and a new base for them follows at once. Objects
that are at the place already stay as they are. Without --keep nothing is ever removed from the place: "quorate backup
retention" shows what a rule would remove. What is not given is as before.`

const keepUsage = "what stays at the place: 14d, or 48h,daily:30,weekly:12,monthly:12,yearly:5, or all"

// asking is a call of the Backup service.
type asking func(context.Context, quoratepb.BackupClient) (*quoratepb.BackupStatus, error)

// call asks the Backup service.
func call(ctx context.Context, c *command.Connection, ask asking) (answer *quoratepb.BackupStatus, err error) {
	err = c.Do(ctx, func(ctx context.Context, client *clientv3.Client) (err error) {
		answer, err = ask(ctx, quoratepb.NewBackupClient(client.ActiveConnection()))
		return err
	})
	return answer, err
}

func newStart(s command.Streams) *cobra.Command {
	c := command.NewObjectConnection(s)
	var baseEvery, sealAfter, verifyEvery time.Duration
	var to recipients
	var keeps string
	cmd := c.AddTo(&cobra.Command{
		Use: "start [URL]", Short: "Let the cluster ship a continuous backup to a directory or bucket", Long: startHelp,
		Args: cobra.MaximumNArgs(1), Example: "  quorate backup start s3://backups/prod --recipient age1… --keep 14d\n" +
			"  quorate backup start --keep 48h,daily:30,weekly:12,monthly:12",
		RunE: func(cmd *cobra.Command, args []string) error {
			if baseEvery%time.Second != 0 || sealAfter%time.Millisecond != 0 || verifyEvery%time.Second != 0 ||
				min(baseEvery, sealAfter, verifyEvery) < 0 {
				return command.Usagef("--base-every and --verify-every take whole seconds, --seal-after milliseconds, and no " +
					"number is negative")
			}
			if _, err := keep.Parse(keeps); err != nil {
				return command.Usagef("--keep %w", err)
			}
			r := &quoratepb.StartBackupRequest{BaseSeconds: int64(baseEvery / time.Second), SealMs: sealAfter.Milliseconds(),
				Keep: keeps}
			var err error
			if r.Recipients, err = to.read(); err != nil {
				return err
			}
			r.InTheClear = to.clear
			if cmd.Flags().Changed("verify-every") {
				r.VerifySeconds = new(int64(verifyEvery / time.Second))
			}
			if len(args) > 0 {
				if _, err := place.Parse(args[0]); err != nil {
					return command.Usagef("%w", err)
				}
				r.Place = args[0]
			}
			var before *quoratepb.BackupStatus
			err = show(cmd.Context(), c, func(ctx context.Context, api quoratepb.BackupClient) (*quoratepb.BackupStatus,
				error) {
				if r.GetPlace() != "" && before == nil {
					before, _ = api.Status(ctx, &quoratepb.BackupStatusRequest{}) // Start says what is wrong
				}
				return api.Start(ctx, r)
			})
			if line := movedFrom(before, r.GetPlace()); err == nil && line != "" && c.Tabular() {
				command.Say(s.Out, line)
			}
			return err
		},
	})
	cmd.Flags().StringVar(&keeps, "keep", "", keepUsage+"; empty: as before, or all")
	cmd.Flags().DurationVar(&baseEvery, "base-every", 0, "how often a base is made, 1m to 720h; 0: as before, or 6h")
	cmd.Flags().DurationVar(&sealAfter, "seal-after", 0,
		"after how long entries are written to the place, 100ms to 1h; 0: as before, or 1s")
	to.addFlags(cmd.Flags())
	cmd.Flags().DurationVar(&verifyEvery, "verify-every", 0,
		"how often a member proves the backup by a restore, 1m to 720h, or 0 for never (default as before, or 24h)")
	return cmd
}

func newStop(s command.Streams) *cobra.Command {
	c := command.NewObjectConnection(s)
	return c.AddTo(&cobra.Command{
		Use: "stop", Short: "End the cluster's continuous backup; what is at the place stays there", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return show(cmd.Context(), c, func(ctx context.Context, api quoratepb.BackupClient) (*quoratepb.BackupStatus,
				error) {
				return api.Stop(ctx, &quoratepb.StopBackupRequest{})
			})
		},
	})
}

func newStatus(s command.Streams) *cobra.Command {
	c := command.NewObjectConnection(s)
	return c.AddTo(&cobra.Command{
		Use: "status", Short: "Show where the cluster's continuous backup goes, who ships it, and until when it is restorable",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return show(cmd.Context(), c, func(ctx context.Context, api quoratepb.BackupClient) (*quoratepb.BackupStatus,
				error) {
				return api.Status(ctx, &quoratepb.BackupStatusRequest{})
			})
		},
	})
}

// movedFrom says where a backup went before it was started at a place; it is empty if it went nowhere else.
func movedFrom(before *quoratepb.BackupStatus, to string) string {
	former := before.GetPlace()
	if before.GetGeneration() == 0 || former == "" || place.SameURL(former, to) {
		return ""
	}
	end := "" // it may have more than was told since the last start
	if p := before.GetRestorable(); p != nil {
		end = fmt.Sprintf(", up to about revision %d", p.GetRevision())
	}
	former = typed.Word(placeText(former))
	return fmt.Sprintf("the former place, %s, keeps what is there%s: `quorate backup start %s` goes back to it", former, end,
		former)
}

// show asks, and prints the answer.
func show(ctx context.Context, c *command.Connection, ask asking) error {
	answer, err := call(ctx, c, ask)
	if err != nil {
		return err
	}
	if !c.Tabular() {
		return c.PrintObject(answer)
	}
	for _, line := range Sentences(answer) {
		command.Say(c.Streams.Out, line)
	}
	return nil
}

// mostTrouble bounds what a member says of a place, in characters.
const mostTrouble = 400

// placeText is the URL of a place, whole: an operator copies it into a command.
func placeText(url string) string { return printable.Text(url, kv.MaxBackupPlaceBytes) }

// Sentences say where the backup goes, who ships it, how far it is, and what is wrong with it. None begins with a name:
// the console begins each with a capital letter.
func Sentences(b *quoratepb.BackupStatus) []string {
	place := placeText(b.GetPlace())
	switch {
	case b.GetGeneration() == 0:
		return []string{"there is no continuous backup: `quorate backup start URL` begins one"}
	case !b.GetOn():
		stopped := fmt.Sprintf("the backup to %s is stopped: `quorate backup start` goes on with it", place)
		return append([]string{stopped}, reached(b)...)
	}
	lines := []string{fmt.Sprintf("the backup goes to %s: entries after %s, a base every %s", place,
		progress.Duration(time.Duration(b.GetSealMs())*time.Millisecond),
		progress.Duration(time.Duration(b.GetBaseSeconds())*time.Second)), encrypted(b)}
	switch {
	case b.GetMember() == 0:
		lines = append(lines, "nobody ships it yet: the leader appoints a member that has caught up")
	default:
		lines = append(lines, "it is shipped by "+printable.Text(b.GetMemberName(), mostTrouble))
	}
	if at := b.GetReportedMs(); at != 0 {
		lines[len(lines)-1] += ", and a member reported " + ago(b, at)
	} else {
		lines[len(lines)-1] += "; nothing was reported yet"
	}
	lines = append(append(lines, reached(b)...), retained(b)...)
	if why := b.GetTrouble(); why != "" {
		lines = append(lines, "the place takes nothing: "+printable.Text(why, mostTrouble),
			fmt.Sprintf("`quorate backup check %s`, on the machine of the member that ships, and as its user, says what to "+
				"do; add ca=, credentials= and profile= of its --backup-places to the URL, if they are there",
				typed.Word(place)))
	}
	return lines
}

// reached says how far a backup got.
func reached(b *quoratepb.BackupStatus) (lines []string) {
	if p := b.GetRestorable(); p != nil {
		lines = append(lines, fmt.Sprintf("a restore reaches revision %d, as of %s", p.GetRevision(), ago(b, p.GetTimeMs())))
	} else {
		lines = append(lines, "nothing can be restored yet: the first base is not complete")
	}
	if p := b.GetBase(); p != nil {
		lines = append(lines, fmt.Sprintf("the newest base is of revision %d, as of %s", p.GetRevision(),
			ago(b, p.GetTimeMs())))
	}
	if n := b.GetGaps(); n > 0 {
		line := fmt.Sprintf("%s: states within cannot be restored", plural.Of(int(min(n, 1<<30)), "gap"))
		if g := b.GetGap(); g != nil {
			line += fmt.Sprintf("; the last one is after entry %d, until entry %d, noted %s", g.GetAfter(), g.GetUntil(),
				ago(b, g.GetTimeMs()))
		}
		lines = append(lines, line)
	}
	return append(lines, proofs(b)...)
}

// retained says what stays at the place, and what the last round of retention did.
func retained(b *quoratepb.BackupStatus) []string {
	rule, err := keep.Parse(b.GetKeep())
	if err != nil { // of a later build
		return []string{"rule " + printable.Text(b.GetKeep(), mostTrouble)}
	}
	lines := []string{"rule " + rule.String() + ": " + rule.Sentence()}
	r := b.GetRetention()
	if r.GetTimeMs() != 0 {
		line := fmt.Sprintf("retention removed %s, %s, %s", plural.Of(int(min(r.GetRemoved(), 1<<30)), "object"),
			progress.Size(int64(min(r.GetBytes(), 1<<62))), ago(b, r.GetTimeMs()))
		line += "; it keeps "
		if r.GetFromMs() != 0 {
			line += "any moment since " + backup.Time(r.GetFromMs()) + ", and "
		}
		lines = append(lines, line+plural.Of(int(min(r.GetBases(), 1<<30)), "base"))
	}
	if why := r.GetWhy(); why != "" {
		lines = append(lines, "retention removes less than the rule lets it: "+printable.Text(why, mostTrouble))
	}
	return lines
}

// ago says how long a time is ago, by the clock of the member that answered.
func ago(b *quoratepb.BackupStatus, at int64) string {
	return progress.Duration(max(0, time.Duration(b.GetNowMs()-at)*time.Millisecond)) + " ago"
}
