package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/datadir"
	"github.com/quorate/quorate/internal/recovery"
	"github.com/quorate/quorate/internal/server"
	"github.com/quorate/quorate/internal/transport"
)

const (
	addressName  = "set-address"
	addressShort = "Tell a stopped member where others are, if there is no leader because members moved"
)

const addressHelp = `Tell the member whose data is in --data-dir where others of its cluster are. It is for a cluster that has
no leader because a member changed its address while others were down: those that run look for it where it was. While there
is a leader nothing of this is needed: a member that is started with other --initial-advertise-peer-urls tells them itself.

The member must be stopped, and this must run as the user that owns its data. It dials the given URLs beside those of the
configuration, until the configuration, which the members change once they have a leader, has the member somewhere else.
Nothing that was voted or logged is touched: one file is written beside the data. To take it back, give the URLs of the
configuration. Without MEMBER=URL the command shows what this member dials.

Do it for each member that does not find the others, also for one that was down while they moved; the same line works for
all. A URL at which somebody else answers is refused. What does not answer may be started later.`

const addressExample = `  quorate set-address --data-dir /var/lib/quorate
  quorate set-address --data-dir /var/lib/quorate m1=http://10.0.9.1:2380 --dry-run
  quorate set-address --data-dir /var/lib/quorate m1=http://10.0.9.1:2380 m2=http://10.0.9.2:2380`

// addressing is one run of the command `quorate set-address`.
type addressing struct {
	dataDir, walDir string
	dryRun, yes     bool
	peerFiles
	command.Streams

	member *recovery.Survivor
	told   []datadir.Address // as it is to be
	news   []datadir.Address // of these, what the line says
}

func setAddress(ctx context.Context, args []string, s command.Streams) int {
	a := addressing{Streams: s}
	c := &cobra.Command{
		Use: "quorate set-address --data-dir DIR MEMBER=URL[,URL]…", Short: addressShort, Long: addressHelp,
		Example: addressExample, SilenceErrors: true, SilenceUsage: true,
		RunE: func(c *cobra.Command, words []string) error {
			if a.dataDir == "" {
				return fmt.Errorf("%w: write: quorate set-address --data-dir DIR MEMBER=URL…", errUsage)
			}
			return a.run(c.Context(), words)
		},
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.BoolP("help", "h", false, "print this text")
	flags.StringVar(&a.dataDir, "data-dir", "", "data directory of the stopped member, as given to the server")
	flags.StringVar(&a.walDir, "wal-dir", "", "its write-ahead log, if the server has --wal-dir")
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
	stopped, err := server.OpenStopped(a.dataDir, a.walDir)
	if err != nil {
		return err
	}
	defer func() { _ = stopped.Close() }()
	if a.member, err = stopped.Inspect(); err != nil {
		return err
	}
	if a.member.Removed {
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
		fmt.Fprintf(a.Out, "\nNothing was changed. To say where a member is:\n  %s\n", a.line("MEMBER=URL"))
		return nil
	case a.dryRun:
		fmt.Fprintln(a.Out, "\nThis was a dry run: nothing was changed.")
		return nil
	}
	if err := confirm(a.Streams, a.yes, a.name(), "tell"); err != nil {
		return err
	}
	if err := stopped.SetAddresses(a.told); err != nil {
		return fmt.Errorf("%w; the addresses were not written", err)
	}
	a.next(words)
	return nil
}

func (a *addressing) name() string { return a.member.NameOf(a.member.Identity.Member) }

// line is this command for another directory.
func (a *addressing) line(words ...string) string {
	return quoted(append([]string{"quorate", addressName, "--data-dir", a.dataDir}, words...))
}

// read makes of MEMBER=URL what is to be told.
func (a *addressing) read(words []string) error {
	a.told = slices.Clone(a.member.Told)
	places := map[consensus.MemberID][]string{} // by the line
	for _, word := range words {
		name, text, ok := strings.Cut(word, "=")
		if !ok || name == "" || text == "" {
			return fmt.Errorf("%w: %q is not MEMBER=URL", errUsage, word)
		}
		id, err := a.member.Find(name)
		if err != nil {
			return err
		}
		urls, err := config.ParseURLs(text)
		if err != nil {
			return fmt.Errorf("%w: %s: %w", errUsage, name, err)
		}
		if places[id] != nil {
			return fmt.Errorf("%w: %s is named twice: write %s=URL,URL", errUsage, name, name)
		}
		for _, url := range urls {
			places[id] = append(places[id], url.String())
		}
		if id != a.member.Identity.Member { // the same line works for all
			a.tell(id, places[id])
		}
	}
	return a.checkPlaces(places)
}

// tell replaces what was told of a member. Where the configuration has it there is nothing to tell.
func (a *addressing) tell(id consensus.MemberID, urls []string) {
	known, _ := a.member.Config.Member(id)
	row := datadir.Address{Member: id, URLs: urls, Config: a.member.ConfigID, Instead: known.PeerURLs}
	a.told = slices.DeleteFunc(a.told, func(t datadir.Address) bool { return t.Member == id })
	if !slices.Equal(row.URLs, known.PeerURLs) {
		a.told = append(a.told, row)
		a.news = append(a.news, row)
	}
}

// checkPlaces wants no two members at one URL. One may be told to be where another one was, if the line says
// where that one is now.
func (a *addressing) checkPlaces(places map[consensus.MemberID][]string) error {
	owners := map[string]consensus.MemberID{}
	for i := range a.member.Config.Members {
		m := &a.member.Config.Members[i]
		urls := m.PeerURLs
		if at := slices.IndexFunc(a.told, func(t datadir.Address) bool { return t.Member == m.ID }); at >= 0 {
			urls = a.told[at].URLs
		} else if places[m.ID] != nil {
			urls = places[m.ID]
		}
		for _, url := range urls {
			if other, taken := owners[url]; taken {
				return fmt.Errorf("%s and %s cannot both be at %s: correct it, or say where the other one is now, "+
					"too; nothing was changed", a.member.NameOf(other), a.member.NameOf(m.ID), url)
			}
			owners[url] = m.ID
		}
	}
	return nil
}

// look asks at the new URLs who is there. The usual typo, a client port for a peer port, must not be taken.
func (a *addressing) look(ctx context.Context) (map[string]string, error) {
	tls, err := a.dialTLS()
	if err != nil {
		return nil, err
	}
	words := map[string]string{}
	for i := range a.news {
		row := &a.news[i]
		name := a.member.NameOf(row.Member)
		for _, url := range row.URLs {
			presence, err := a.member.Seek(ctx, transport.Options{TLS: transport.TLS{Client: tls}}, row.Member, url)
			switch presence {
			case transport.Another:
				return nil, fmt.Errorf("%s=%s: another process answers there, which is not %s of this cluster; nothing "+
					"was changed", name, url, name)
			case transport.NoPeerPort:
				return nil, fmt.Errorf("%s=%s is a wrong URL: %w; nothing was changed", name, url, err)
			case transport.Present:
				words[url] = "answers"
			case transport.Unsure:
				words[url] = fmt.Sprintf("not known: %v", err)
			default:
				words[url] = "does not answer yet"
			}
		}
	}
	return words, nil
}

// show prints the plan.
func (a *addressing) show(found map[string]string) {
	s := a.member
	fmt.Fprintf(a.Out, "%s (%v) of cluster %v, in %s\nIts configuration %v and what it is told:\n\n", a.name(),
		s.Identity.Member, s.Identity.Cluster, a.dataDir, s.ConfigID)
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  MEMBER\tID\tCONFIGURATION\tDIALLED")
	dialled := datadir.Dialled(&s.Config, s.ConfigID, a.told)
	for i := range s.Config.Members {
		m := &s.Config.Members[i]
		var urls []string
		for _, url := range dialled[i].PeerURLs {
			if found[url] != "" {
				url += " (" + found[url] + ")"
			}
			urls = append(urls, url)
		}
		text := strings.Join(urls, ", ")
		if m.ID == s.Identity.Member {
			text = "(itself)"
		}
		fmt.Fprintf(w, "  %s\t%v\t%s\t%s\n", s.NameOf(m.ID), m.ID, strings.Join(m.PeerURLs, ", "), text)
	}
	_ = w.Flush()
}

// next says what remains to be done.
func (a *addressing) next(words []string) {
	fmt.Fprintf(a.Out, `
%s was told. Now:
  1. Stop each other member that runs without a leader, and tell it the same, and each that was down meanwhile:
       quorate %s --data-dir ITS-DIR %s
  2. Start all of them with their usual flags, and those that moved with their new --initial-advertise-peer-urls.
Once there is a leader, those that moved tell it where they are, and the configuration says so: quorate member list
`, a.name(), addressName, quoted(slices.Clone(words)))
}
