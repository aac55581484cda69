package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/base/typed"
	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/recovery"
	"github.com/quorate/quorate/internal/server"
	"github.com/quorate/quorate/internal/storage/keysource"
	"github.com/quorate/quorate/internal/transport"
)

const (
	addressName  = "set-address"
	addressShort = "Tell a stopped member where others are, if it finds no leader because members moved"
)

const addressHelp = `This command is for members that do not find the others because members moved while some
were down. It tells the member whose data is in --data-dir where others are now.

See ` + "`quorate status`" + ` first. While a member leads, stop none of those that follow it. A member that has moved and is
started with its new --initial-advertise-peer-urls tells the others, and one that was down meanwhile asks those that it
finds: that takes some seconds. Only a member that still knows no leader after a minute is told, and it alone is stopped
for it. If nobody leads, because those that run look for the moved ones at their former peer URLs, they are told one
after the other.

1. Stop one member that knows no leader.
2. Run this command as the user that owns its data, with MEMBER=URL for each member that moved. The same line works on
   every member. Without MEMBER=URL the command shows which URLs the member dials, and changes nothing.
3. Start the member. If nobody leads then, do the same with the next one, until there is a leader.

The member then dials these URLs beside those of the configuration. Once there is a leader, the members change the
configuration by themselves, and what this command told is forgotten. The command writes one file beside the data, and
touches nothing that was voted or logged. To take it back, repeat it with MEMBER= and no URL.

A URL at which another process answers is refused. A URL that the configuration has for another member is taken if the
same line says where that member is now, or if the member that the line names answers there already. A URL of a
member that the data have is also taken if nothing answers there: the member may be started later.

A member that was added while this one was away is named by its id, as ` + "`quorate member list`" + ` at a member that serves
prints it, and must answer at its URL: for a member that finds none of those that its own data have.`

const addressExample = `  quorate set-address --data-dir /var/lib/quorate
  quorate set-address --data-dir /var/lib/quorate m1=http://10.0.9.1:2380 --dry-run
  quorate set-address --data-dir /var/lib/quorate m1=http://10.0.9.1:2380 m2=http://10.0.9.2:2380`

// addressing is one run of the command `quorate set-address`.
type addressing struct {
	dataDir, walDir string
	keys            keysource.Source
	dryRun, yes     bool
	peerFiles
	command.Streams

	member *recovery.Survivor
	told   recovery.Told
}

func setAddress(ctx context.Context, args []string, s command.Streams) int {
	a := addressing{Streams: s}
	c := &cobra.Command{
		Use: "quorate set-address --data-dir DIR MEMBER=URL[,URL]…", Short: addressShort, Long: addressHelp,
		Example: addressExample, SilenceErrors: true, SilenceUsage: true,
		RunE: func(c *cobra.Command, words []string) error {
			if a.dataDir == "" {
				return fmt.Errorf("%w: usage: quorate set-address --data-dir DIR MEMBER=URL…", errUsage)
			}
			return a.run(c.Context(), words)
		},
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.BoolP("help", "h", false, "print this text")
	flags.StringVar(&a.dataDir, "data-dir", "", "data directory of the stopped member, as given to the server")
	flags.StringVar(&a.walDir, "wal-dir", "", "its write-ahead log, if the server has --wal-dir")
	command.KeyFlags(flags, &a.keys)
	flags.BoolVar(&a.dryRun, "dry-run", false, "show what would be dialled, and change nothing")
	flags.BoolVar(&a.yes, "yes", false, "do it without asking")
	a.define(flags)
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return fmt.Errorf("%w: %w", errUsage, err) })
	c.SetArgs(args)
	c.SetOut(s.Out)
	c.SetErr(s.Err)
	return offlineStatus(addressName, c.ExecuteContext(ctx), s)
}

func (a *addressing) run(ctx context.Context, words []string) error {
	stopped, err := server.OpenStopped(ctx, a.dataDir, a.walDir, a.keys)
	if err != nil {
		return err
	}
	defer func() { _ = stopped.Close() }()
	if a.member, err = stopped.Inspect(); err != nil {
		return err
	}
	if a.member.Removed() {
		return errors.New("the cluster removed this member for ever: it dials nobody; nothing was changed")
	}
	if err := a.read(words); err != nil {
		return err
	}
	found, err := a.look(ctx)
	if err != nil {
		return err
	}
	a.show(found)
	switch {
	case len(words) == 0:
		line := a.line(a.dataDir, a.walDir, "MEMBER=URL")
		fmt.Fprintf(a.Out, "\nNothing was changed. To say where a member is:\n  %s\n", line)
		return nil
	case a.dryRun:
		fmt.Fprintln(a.Out, "\nThis was a dry run: nothing was changed.")
		return nil
	}
	if err := confirm(a.Streams, a.yes, a.name(), "tell"); err != nil {
		return err
	}
	if err := stopped.SetAddresses(a.told.All); err != nil {
		return fmt.Errorf("%w; the addresses were not written", err)
	}
	a.next(words)
	return nil
}

func (a *addressing) name() string { return a.member.NameOf(a.member.Identity.Member) }

// line is this command for other words, with the data in other directories.
func (a *addressing) line(dataDir, walDir string, words ...string) string {
	line := append([]string{"quorate", addressName}, given("--data-dir", dataDir, "--wal-dir", walDir,
		"--"+keysource.KeyFileFlag, a.keys.KeyFile, "--"+keysource.KMSFlag, a.keys.KMS)...)
	return typed.Line(slices.Concat(line, a.peerFiles.line(), words)...)
}

// read makes of MEMBER=URL what is to be told.
func (a *addressing) read(words []string) error {
	places := map[consensus.MemberID][]string{} // by the line
	for _, word := range words {
		name, text, ok := strings.Cut(word, "=")
		if !ok || name == "" {
			return fmt.Errorf("%w: %q is not MEMBER=URL", errUsage, word)
		}
		id, err := a.member.FindAny(name)
		if err != nil {
			return err
		}
		if places[id] != nil {
			return fmt.Errorf("%w: %s is named twice: write %s=URL,URL", errUsage, name, name)
		}
		if places[id], err = urls(strings.TrimSpace(text)); err != nil {
			return fmt.Errorf("%w: %s: %w", errUsage, name, err)
		}
	}
	var err error
	a.told, err = a.member.Tell(places)
	return err
}

// urls reads URL,URL. None takes back what was told of a member.
func urls(text string) ([]string, error) {
	all := []string{}
	if text == "" {
		return all, nil
	}
	parsed, err := config.ParseURLs(text)
	for _, url := range parsed {
		all = append(all, url.String())
	}
	return all, err
}

// look asks at the new URLs who is there. The usual typo, a client port for a peer port, must not be taken.
func (a *addressing) look(ctx context.Context) (map[recovery.Place]string, error) {
	tls, err := a.dialTLS()
	if err != nil {
		return nil, err
	}
	return a.told.Look(ctx, a.member, a.member.FinderOver(transport.Options{TLS: transport.TLS{Client: tls}}))
}

// show prints the plan.
func (a *addressing) show(found map[recovery.Place]string) {
	s := a.member
	fmt.Fprintf(a.Out, "%s (%v) of cluster %v, in %s\nIts configuration %v and what it is told:\n\n", a.name(),
		s.Identity.Member, s.Identity.Cluster, a.dataDir, s.ConfigID)
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  MEMBER\tID\tCONFIGURATION\tDIALLED")
	known := consensus.Config{Members: s.Known()}
	for _, m := range datadir.Dialled(&known, s.ConfigID, a.told.All) {
		at := "(not in it)"
		if i := slices.IndexFunc(known.Members, func(known consensus.Member) bool { return known.ID == m.ID }); i >= 0 {
			at = strings.Join(known.Members[i].PeerURLs, ", ")
		}
		var urls []string
		for _, url := range m.PeerURLs {
			urls = append(urls, url+a.foundAt(found, m.ID, url))
		}
		text := strings.Join(urls, ", ")
		if m.ID == s.Identity.Member {
			text = "(itself)"
		}
		fmt.Fprintf(w, "  %s\t%v\t%s\t%s\n", s.NameOf(m.ID), m.ID, at, text)
	}
	_ = w.Flush()
	for _, t := range s.Told {
		if !slices.ContainsFunc(a.told.All, func(left datadir.Address) bool { return left.Member == t.Member }) {
			fmt.Fprintf(a.Out, "Taken back: what was told of %s, %s\n", s.NameOf(t.Member), strings.Join(t.URLs, ", "))
		}
	}
}

// foundAt says in brackets who was found at a URL that this member dials for another one.
func (a *addressing) foundAt(found map[recovery.Place]string, id consensus.MemberID, url string) string {
	if words := found[recovery.Place{Member: id, URL: url}]; words != "" {
		return " (" + words + ")"
	}
	for place, words := range found {
		if place.URL == url {
			return fmt.Sprintf(" (%s: %s)", a.member.NameOf(place.Member), words)
		}
	}
	return ""
}

// next says what remains to be done.
func (a *addressing) next(words []string) {
	itsLog, where := "", ", and --wal-dir, if it has that"
	if a.walDir != "" {
		itsLog, where = "ITS-WAL-DIR", " and --wal-dir; drop that if it has none"
	}
	fmt.Fprintf(a.Out, `
%s was told. Now start it with its usual flags, and, if it has moved, with its new --initial-advertise-peer-urls.
Then see `+"`quorate status`"+`. As long as nobody leads, do the same, one member after the other, for each other member that
knows no leader. Once one leads, stop none of those that follow it: a member that was down meanwhile asks them.
  1. Stop it.
  2. %s
     (with its own --data-dir%s)
  3. Start it again, before you stop the next one.
Once there is a leader, those that moved tell it where they are, and the configuration says so: quorate member list
`, a.name(), a.line("ITS-DIR", itsLog, words...), where)
}
