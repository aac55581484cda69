package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/doctor"
)

// StatusUrgent is the status of a verdict by which writes stop, or would at the next failure. Usage and members that cannot be
// reached have the statuses that they have everywhere.
const StatusUrgent = 5

const long = `Say what is wrong with the cluster, why, and which command cures it.

All members are asked at once what they observe of themselves and of each other; nothing is changed, and no member scans
anything. The worst comes first, and a finding stands behind the one that explains it. docs/doctor.md has all codes.

Severities: cannot write (writes stop), next failure (writes stop at the next failure, or soon by themselves), impaired
(something is slower, or less, than it should be), advice.

Status 0: nothing above advice; 1: something is impaired; 5: writes stop, or would at the next failure; 2: wrong usage;
3: no member can be reached.

With --through-member one member is asked, and asks the others over the links between members: for a machine that reaches
one client port only. What that member does not reach may be down or cut off, and the verdict says so.

With a FILE the same verdict is given on a bundle that --bundle wrote. With --offline the arguments are data directories
of stopped members, DIR or DIR,WAL-DIR, and the verdict is which of them to recover from.`

const example = `  quorate doctor
  quorate doctor -o json
  quorate doctor --bundle ./cluster.tgz
  quorate doctor ./cluster.tgz
  quorate doctor --through-member --endpoints 10.0.0.1:2379
  quorate doctor mute DISK_SLOW --for 24h --member m2
  quorate doctor --offline /var/lib/quorate /mnt/m2/quorate`

// New is the command `quorate doctor`.
func New(s command.Streams, inspect Inspector) *cobra.Command {
	p := &patient{Connection: command.NewConnection(s), inspect: inspect}
	cmd := p.AddTo(&cobra.Command{
		Use:     "doctor [FILE]",
		Short:   "Say what is wrong, why, and what cures it; status 1 or 5 if something is",
		Long:    long,
		Example: example,
		Args:    cobra.ArbitraryArgs,
		RunE:    func(cmd *cobra.Command, words []string) error { return p.run(cmd.Context(), words) },
	})
	cmd.Flags().StringVar(&p.bundle, "bundle", "", "write what was collected to this FILE, without keys, values and secrets")
	cmd.Flags().BoolVar(&p.through, "through-member", false, "ask one member, which asks the others; their client ports are "+
		"not looked at")
	cmd.Flags().BoolVar(&p.offline, "offline", false, "judge data directories of stopped members")
	command.KeyFlags(cmd.Flags(), &p.keys)
	p.addMutesTo(cmd)
	cmd.AddCommand(newMute(s), newUnmute(s), newMutes(s), newCodes(s))
	return cmd
}

func (p *patient) run(ctx context.Context, words []string) error {
	switch {
	case p.through && (p.offline || len(words) > 0):
		return command.Usagef("--through-member asks a member that runs: drop it, or what else is to be judged")
	case p.offline && p.bundle != "":
		return command.Usagef("--bundle collects from members that run, and --offline reads those that do not: drop one")
	case p.offline:
		return p.judgeStopped(ctx, words)
	case len(words) > 1:
		return command.Usagef("usage: quorate doctor [FILE]; data directories need --offline")
	case len(words) == 1 && p.bundle != "":
		return command.Usagef("%s is judged, or the members are asked for --bundle: drop one", words[0])
	}
	var collected *quoratepb.Collected
	var err error
	if len(words) == 1 {
		collected, err = readBundle(words[0])
	} else {
		collected, err = p.collect(ctx)
	}
	if err != nil {
		return err
	}
	if p.bundle != "" {
		if err := writeBundle(p.bundle, collected); err != nil {
			return err
		}
		fmt.Fprintf(p.Streams.Err, "wrote %s; its manifest says what was left out\n", p.bundle)
	}
	return p.tell(collected)
}

// tell prints the verdict, and returns the error with its status.
func (p *patient) tell(collected *quoratepb.Collected) error {
	mutes, err := readMutes(p.mutes)
	if err != nil {
		return err
	}
	found := doctor.Judge(collected)
	loud, muted := doctor.Silence(found, mutes, clusterOf(collected), time.Now().UnixMilli())
	if p.JSON() {
		err = command.PrintJSON(p.Streams.Out, verdictOf(collected, loud, muted))
	} else {
		p.print(collected, loud, muted)
	}
	return errors.Join(err, statusOf(loud))
}

// statusOf is the error that ends the command with the status of a verdict.
func statusOf(loud []doctor.Finding) error {
	switch doctor.Worst(loud) {
	case doctor.CannotWrite, doctor.NextFailure:
		return &command.Failure{Status: StatusUrgent, Err: command.ErrQuiet}
	case doctor.SlowerThanIs:
		return command.ErrQuiet
	}
	return nil
}
