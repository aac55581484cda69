package ctl

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/ctl/command"
)

// newDocs is for those who make packages. It is not in the help.
func newDocs(s command.Streams) *cobra.Command {
	man := &cobra.Command{
		Use:   "man DIR",
		Short: "Write the manual pages of the member and of our commands into a directory",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := writeManual(c.Root(), args[0]); err != nil {
				return command.Refused(err)
			}
			return nil
		},
	}
	docs := command.Group("docs", "Write documents for packages", man)
	docs.Hidden = true
	return docs
}

// writeManual writes a page for the member and one for each command of ours. No page has a date: that of the build would make
// two builds of one commit differ, and the version stands on each page.
func writeManual(root *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	pages := map[string]*page{"quorate": memberPage(root)}
	for _, c := range root.Commands() {
		if ours(c) && c.Name() != "help" {
			pages["quorate-"+c.Name()] = commandPage(c)
		}
	}
	for name, p := range pages {
		if err := os.WriteFile(filepath.Join(dir, name+".1"), p.out.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// ours tells whether a command stands in the help as one of ours.
func ours(c *cobra.Command) bool { return c.GroupID != etcdctlName && !c.Hidden }

func memberPage(root *cobra.Command) *page {
	p := newPage("quorate", "a distributed key-value store that speaks etcd's API")
	p.section("SYNOPSIS")
	p.literal("quorate [FLAGS]              run a member\n" +
		"quorate COMMAND [ARGS]       see quorate-COMMAND(1), or quorate COMMAND --help")
	p.section("DESCRIPTION")
	p.text("With flags alone quorate runs a member of a cluster. Its flags are etcd's. With a command it is a client, a " +
		"tool, or a cluster for development. Every flag can also be set in the environment: --listen-client-urls is " +
		"ETCD_LISTEN_CLIENT_URLS. A flag beats the environment; a configuration file replaces both.")
	p.section("COMMANDS")
	var lines bytes.Buffer
	for _, c := range root.Commands() {
		if ours(c) {
			fmt.Fprintf(&lines, "%-11s %s\n", c.Name(), c.Short)
		}
	}
	p.literal(lines.String())
	p.text("The commands of etcdctl are there, too; a link of the name etcdctl to this program is all of it.")
	p.section("FLAGS OF A MEMBER")
	var flags bytes.Buffer
	config.WriteHelp(&flags)
	p.literal(flags.String())
	p.section("EXIT STATUS")
	p.literal("0    stopped by a signal\n1    ended by an error, which is the last line of standard error\n" +
		"2    the command line or the configuration file is wrong\n" +
		"4    the cluster removed this member for ever: do not start it again")
	return p
}

func commandPage(c *cobra.Command) *page {
	p := newPage("quorate-"+c.Name(), c.Short)
	p.section("SYNOPSIS")
	p.text(c.UseLine())
	p.describe(c)
	for _, sub := range c.Commands() {
		if sub.Hidden || sub.Name() == "help" {
			continue
		}
		p.section(sub.UseLine())
		p.text(sub.Short + ".")
		p.describe(sub)
	}
	return p
}

// page is a manual page in the macros of man(7).
type page struct{ out bytes.Buffer }

func newPage(name, short string) *page {
	p := &page{}
	fmt.Fprintf(&p.out, ".TH %s 1 \"\" \"Quorate %s\" \"Quorate\"\n", roff(strings.ToUpper(name)), roff(config.Build()))
	p.section("NAME")
	fmt.Fprintf(&p.out, "%s \\- %s\n", roff(name), roff(short))
	return p
}

func (p *page) section(title string) {
	fmt.Fprintf(&p.out, ".SH \"%s\"\n", roff(strings.ReplaceAll(title, `"`, "'")))
}

func (p *page) text(words string) { fmt.Fprintf(&p.out, "%s\n.PP\n", roff(words)) }

// literal keeps lines and columns as they are.
func (p *page) literal(text string) {
	fmt.Fprintf(&p.out, ".nf\n%s\n.fi\n.PP\n", roff(strings.TrimRight(text, "\n")))
}

// describe writes the text, the flags and the examples of a command.
func (p *page) describe(c *cobra.Command) {
	if c.Long != "" {
		for paragraph := range strings.SplitSeq(c.Long, "\n\n") {
			p.text(paragraph)
		}
	}
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		placeholder, usage := pflag.UnquoteUsage(f)
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" && f.DefValue != "0" && f.DefValue != "0s" {
			usage += " (default " + f.DefValue + ")"
		}
		fmt.Fprintf(&p.out, ".TP\n\\fB%s\\fP %s\n%s\n", roff(name), roff(placeholder), roff(usage))
	})
	if c.Example != "" {
		fmt.Fprintln(&p.out, ".PP")
		p.literal(c.Example)
	}
}

// roff keeps a text from being taken for requests and escapes.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
