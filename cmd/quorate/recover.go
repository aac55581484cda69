package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/base/typed"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/recovery"
	"github.com/quorate/quorate/internal/server"
	"github.com/quorate/quorate/internal/storage/keysource"
	"github.com/quorate/quorate/internal/storage/wal"
	"github.com/quorate/quorate/internal/transport"
)

// recoverFlags are what the operator says to `quorate recover`.
type recoverFlags struct {
	dataDir, walDir string
	keys            keysource.Source // of all directories
	dryRun, yes     bool
	keep, lost      []string
	compare         []string
	forceBehind     bool
	logEnd          string
	peerFiles
}

const (
	recoverName  = "recover"
	recoverShort = "Make a survivor the only voter after the quorum was lost"
)

const recoverHelp = `Make the member whose data is in --data-dir the only voter of its cluster, when so many voters are lost for
ever that no quorum can be formed. The member must be stopped, and this must run as the user that owns its data.

Nobody can know what the lost members acknowledged that is not in this log: that is lost. Everything in the log stays,
and the member keeps its id, its cluster's id and its contents. All other members are removed for ever: none of them
may be started again. The cluster begins a new epoch: members of another one are neither obeyed nor served, and one
that was dropped serves nothing once it meets this member, unless it finds a quorum. Recover one survivor only: two that
are recovered apart are two clusters.

Where several members have survived, give the data directories of all others with --compare: the most advanced one must
be recovered. For a member with --wal-dir write --compare DIR,WAL-DIR: without its log nothing is known of it, and what it
acknowledged may be lost. Nothing is written while another voter answers at its peer URLs, or if the survivors are a
quorum, and not before you have named every member that is dropped with --members-are-lost: nobody can tell a member that
is gone from one that has moved. Without the names the command prints what it found, and the line to type.

Afterwards start the member with its usual flags, and add new members, each with an empty data directory. Keep what is
left of the directories of those that were dropped: they may hold acknowledged writes that this member lacks.`

const recoverExample = `  quorate recover --data-dir /var/lib/quorate --dry-run
  quorate recover --data-dir /var/lib/quorate --members-are-lost m2,m3
  quorate recover --data-dir /var/lib/quorate --compare /mnt/m2/quorate --members-are-lost m2,m3 --yes
  quorate recover --data-dir /var/lib/quorate --wal-dir /var/wal --compare /mnt/m2/quorate,/mnt/m2/wal --dry-run`

// recoverQuorum is the command `quorate recover`. It is not among ctl's, which know members only as clients do.
func recoverQuorum(ctx context.Context, args []string, s command.Streams) int {
	var f recoverFlags
	c := &cobra.Command{
		Use: "quorate recover --data-dir DIR", Short: recoverShort, Long: recoverHelp,
		Example: recoverExample, SilenceErrors: true, SilenceUsage: true,
		RunE: func(c *cobra.Command, rest []string) error {
			if len(rest) > 0 || f.dataDir == "" {
				return fmt.Errorf("%w: usage: quorate recover --data-dir DIR [FLAGS]", errUsage)
			}
			r := &recovering{recoverFlags: f, Streams: s}
			for _, text := range f.compare {
				at, err := parsePlace(text)
				if err != nil {
					return err
				}
				r.places = append(r.places, at)
			}
			return r.run(c.Context())
		},
	}
	f.define(c)
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return fmt.Errorf("%w: %w", errUsage, err) })
	c.SetArgs(args)
	c.SetOut(s.Out)
	c.SetErr(s.Err)
	// The line to type stands by itself.
	return offlineStatus(recoverName, explainRecovery(f.dataDir, c.ExecuteContext(ctx)), s)
}

func (f *recoverFlags) define(c *cobra.Command) {
	flags := c.Flags()
	flags.SortFlags = false
	flags.BoolP("help", "h", false, "print this text")
	flags.StringVar(&f.dataDir, "data-dir", "", "data directory of the survivor, as given to the server")
	flags.StringVar(&f.walDir, "wal-dir", "", "its write-ahead log, if the server has --wal-dir")
	command.KeyFlags(flags, &f.keys)
	flags.BoolVar(&f.dryRun, "dry-run", false, "show what would be done and lost, and change nothing")
	flags.BoolVar(&f.yes, "yes", false, "do it without asking")
	flags.StringArrayVar(&f.compare, "compare", nil,
		"DIR or DIR,WAL-DIR: data directory of another survivor, or of a learner, and its log if it has --wal-dir; only read, "+
			"but for a learner with --keep")
	flags.BoolVar(&f.forceBehind, "force-behind", false, "recover a member although another survivor is more advanced")
	flags.StringVar(&f.logEnd, "log-ends-at", "",
		"TERM:INDEX: change nothing unless the last entry of the log is this one, as it was when the loss was judged")
	flags.StringSliceVar(&f.keep, "keep", nil, "learner, by name or id, that may stay; needs its data with --compare")
	flags.StringSliceVar(&f.lost, "members-are-lost", nil,
		"all other members, by name or id: none will ever run again; one that answers all the same is believed")
	f.peerFiles.define(flags)
}

// explainRecovery adds what can be done about a disk, in the words of this command.
func explainRecovery(dir string, err error) error {
	switch {
	case errors.Is(err, wal.ErrNoSpace):
		return fmt.Errorf("%w; the recovery was not written", err)
	case errors.Is(err, wal.ErrNoLog):
		return fmt.Errorf("%w. Give --wal-dir as the member's unit has it. Recover no other survivor before this log is "+
			"found: it may hold acknowledged writes that the others lack", err)
	case datadir.Damaged(err):
		return fmt.Errorf("%w. Keep this directory: it may hold acknowledged writes that the others lack. Look first whether "+
			"--data-dir, --wal-dir and --compare are right, and the disk is mounted and can be read. Recover another "+
			"survivor only if this one can not be had: what it alone holds is lost then. Never put a file back from a copy: "+
			"writes that this member acknowledged would be lost", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w; run this as the user that owns %s", err, dir)
	}
	return err
}

// recovering is one run of the command.
type recovering struct {
	recoverFlags
	command.Streams

	survivor *recovery.Survivor
	places   []place
	others   []*recovery.Survivor // at places
	lostIDs  []consensus.MemberID
}

func (r *recovering) run(ctx context.Context) error {
	stopped, err := server.OpenStopped(ctx, r.dataDir, r.walDir, r.keys)
	if err != nil {
		return err
	}
	defer func() { _ = stopped.Close() }()
	if r.survivor, err = stopped.Inspect(); err != nil {
		return err
	}
	if r.others, err = readOthers(ctx, r.places, r.dataDir, r.keys, r.survivor.Identity); err != nil {
		return err
	}
	r.showSurvivor()
	if r.survivor.Alone() {
		fmt.Fprintf(r.Out, "\n%s. Nothing was changed.\n", capital(recovery.ErrOnlyVoter.Error()))
		return nil
	}
	if err := checkLogEnd(r.logEnd, r.name(), r.survivor.Last); err != nil {
		return err
	}
	plan, err := r.plan()
	if err != nil {
		return err
	}
	r.showPlan(plan)
	if err = r.checkLost(ctx); err == nil {
		err = r.checkNames(plan)
	}
	if r.dryRun {
		fmt.Fprintln(r.Out, "\nThis was a dry run: nothing was changed.")
		if err != nil {
			fmt.Fprintf(r.Out, "Without it: %v\n", err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	if err := confirm(r.Streams, r.yes, r.name(), "recover"); err != nil {
		return err
	}
	if err := r.advanceLearners(ctx, plan); err != nil {
		return err
	}
	if err := stopped.Recover(plan); err != nil {
		return err
	}
	fmt.Fprintf(r.Out, "\n%s is recovered. Start it with its usual flags, then add new members, each with an empty data "+
		"directory:\n  quorate --join %s --data-dir DIR …\n", r.name(), r.ownURL())
	return nil
}

// advanceLearners brings those that stay into the new epoch, before the survivor: if this breaks off, the same command
// begins once more.
func (r *recovering) advanceLearners(ctx context.Context, plan *recovery.Plan) error {
	for i, other := range r.others {
		if !slices.Contains(plan.Config.Learners, other.Identity.Member) {
			continue
		}
		stopped, err := server.OpenStopped(ctx, r.places[i].dataDir, r.places[i].walDir, r.keys)
		if err == nil {
			err = errors.Join(stopped.AdvanceLearner(plan, other), stopped.Close())
		}
		if err != nil {
			return fmt.Errorf("--keep %s: %w; repeat the command", r.survivor.NameOf(other.Identity.Member), err)
		}
	}
	return nil
}

func (r *recovering) name() string { return r.survivor.NameOf(r.survivor.Identity.Member) }

func (r *recovering) ownURL() string {
	m, _ := r.survivor.Config.Member(r.survivor.Identity.Member)
	if len(m.PeerURLs) == 0 {
		return "URL"
	}
	return m.PeerURLs[0]
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// plan refuses what would lose more than it must.
func (r *recovering) plan() (*recovery.Plan, error) {
	var err error
	if r.lostIDs, err = r.find("--members-are-lost", r.lost); err != nil {
		return nil, err
	}
	keep, err := r.find("--keep", r.keep)
	if err != nil {
		return nil, err
	}
	if err := r.checkOthers(); err != nil {
		return nil, err
	}
	plan, err := r.survivor.Plan(keep, r.others...)
	if err != nil {
		return nil, err
	}
	return plan, r.checkKept(plan, keep)
}

// checkOthers looks at the survivors whose data was shown: enough of them need no recovery, and the most advanced one is
// the one to recover.
func (r *recovering) checkOthers() error {
	s := r.survivor
	votes := []consensus.MemberID{s.Identity.Member}
	for _, other := range r.others {
		if !slices.Contains(r.lostIDs, other.Identity.Member) {
			votes = append(votes, other.Identity.Member)
		}
	}
	if s.Quorum(votes) {
		return errors.New("the members whose data is here are a quorum: start them with their usual flags, look at " +
			"`quorate status`, and then replace those that are gone with `quorate member replace`. If one of them will never " +
			"run again, say so with --members-are-lost")
	}
	for _, other := range r.others {
		id, epoch := other.Identity.Member, other.Identity.Epoch
		if epoch.Number > s.Identity.Epoch.Number && !s.Config.IsLearner(id) && !r.forceBehind {
			return fmt.Errorf("%s was recovered already, without this member: its data is of epoch %v, this one of epoch "+
				"%v; go on with that one, or give it up with --force-behind", s.NameOf(id), epoch, s.Identity.Epoch)
		}
		if s.Behind(other) && !r.forceBehind {
			return fmt.Errorf("%s is more advanced: its log ends at entry %d of term %d, this one at entry %d of term %d; "+
				"recover that one, or give up what it has more with --force-behind", s.NameOf(other.Identity.Member),
				other.Last.Index, other.Last.Term, s.Last.Index, s.Last.Term)
		}
	}
	return nil
}

func (r *recovering) find(flag string, names []string) ([]consensus.MemberID, error) {
	var found []consensus.MemberID
	for _, name := range names {
		id, err := r.survivor.Find(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
		found = append(found, id)
	}
	return found, nil
}

// checkKept wants to see that what a learner has is part of what is kept: it would serve the rest for ever.
func (r *recovering) checkKept(plan *recovery.Plan, keep []consensus.MemberID) error {
	for _, id := range keep {
		at := slices.IndexFunc(r.others, func(o *recovery.Survivor) bool { return o.Identity.Member == id })
		name := r.survivor.NameOf(id)
		switch {
		case at < 0:
			return fmt.Errorf("--keep %s: give its data directory, or a copy of it, with --compare (DIR,WAL-DIR if it has "+
				"--wal-dir): a learner may only stay if it holds nothing that this member lacks; else add it again with an "+
				"empty one", name)
		case !plan.Covers(r.survivor, r.others[at]):
			return fmt.Errorf("--keep %s: it holds entries that this member lacks: it cannot stay; add it again with an "+
				"empty data directory", name)
		}
	}
	return nil
}

// checkLost looks for the other voters.
func (r *recovering) checkLost(ctx context.Context) error {
	config, err := r.dialTLS()
	if err != nil {
		return err
	}
	found := r.survivor.FindVoters(ctx, r.survivor.FinderOver(transport.Options{TLS: transport.TLS{Client: config}}), r.lostIDs)
	r.showFound(found)
	err = r.survivor.CheckVoters(found)
	var present *recovery.QuorumError
	switch {
	case !errors.As(err, &present):
		return err
	case present.Unsure():
		return fmt.Errorf("%w; nothing was changed. If the network is broken, repair it first: members that still serve would "+
			"go on without this one. If its peers use TLS, give the --peer-* files. Name with --members-are-lost only "+
			"members whose machine is gone or switched off for ever", err)
	case present.Enough:
		return fmt.Errorf("%w; start this member, then replace those that are gone with `quorate member replace`", err)
	}
	return fmt.Errorf("%w; it is no quorum, but it may hold acknowledged writes that this member lacks: stop it, and "+
		"show its data directory with --compare DIR, or --compare DIR,WAL-DIR if it has --wal-dir", err)
}

// checkNames wants the operator's word for each member that is dropped: no look at the network can tell a member that is gone
// from one that has moved.
func (r *recovering) checkNames(plan *recovery.Plan) error {
	err := r.survivor.CheckNames(plan, r.lostIDs)
	var unnamed *recovery.UnnamedError
	if !errors.As(err, &unnamed) {
		return err
	}
	line := r.commandLine(append(slices.Clone(r.lost), unnamed.Names...))
	return fmt.Errorf("%w. Nothing was changed. Ask the machines, or whoever runs them. If each of these members is gone for "+
		"ever, and will never be started again, type:\n  %s", err, line)
}

// commandLine is this command with the names of all that are lost.
func (r *recovering) commandLine(lost []string) string {
	words := append([]string{"quorate", recoverName}, given("--data-dir", r.dataDir, "--wal-dir", r.walDir)...)
	for _, text := range r.compare {
		words = append(words, "--compare", text)
	}
	words = append(words, given("--keep", strings.Join(r.keep, ","), "--log-ends-at", r.logEnd)...)
	words = append(words, r.peerFiles.line()...)
	if r.forceBehind {
		words = append(words, "--force-behind")
	}
	return typed.Line(append(words, given("--members-are-lost", strings.Join(lost, ","))...)...)
}
