package ctl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/ctl/audit"
	"github.com/quorate/quorate/internal/ctl/backup"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/doctor"
	"github.com/quorate/quorate/internal/ctl/etcdctl"
	"github.com/quorate/quorate/internal/ctl/etcdutl"
	"github.com/quorate/quorate/internal/ctl/history"
	"github.com/quorate/quorate/internal/ctl/key"
	"github.com/quorate/quorate/internal/ctl/limit"
	"github.com/quorate/quorate/internal/ctl/member"
	"github.com/quorate/quorate/internal/ctl/mirror"
	"github.com/quorate/quorate/internal/ctl/snapshot"
	"github.com/quorate/quorate/internal/ctl/top"
	"github.com/quorate/quorate/internal/ctl/undelete"
	"github.com/quorate/quorate/internal/ctl/upgrade"
)

// Run executes a command line without the program's name, and returns the status to exit with. If the line is etcdctl's, it may
// end the process instead.
func Run(ctx context.Context, args []string, s command.Streams) int {
	return RunWith(ctx, args, s, Tools{})
}

// RunWith is Run with the tools of a program.
func RunWith(ctx context.Context, args []string, s command.Streams, t Tools) int {
	if IsEtcdctls(args, s) {
		return etcdctl.Run(calledEtcdctl, args)
	}
	root := newRoot(s, t)
	root.SetArgs(args)
	checkHelp(root)
	var unknown error
	help := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, words []string) {
		if unknown = refuseUnknown(c); unknown == nil {
			help(c, words)
		}
	})
	err := cmp.Or(root.ExecuteContext(ctx), unknown)
	var f *command.Failure
	var e ended
	switch {
	case err == nil:
		return command.StatusOK
	case errors.As(err, &e):
		return int(e)
	case errors.As(err, &f) && errors.Is(f, command.ErrQuiet):
		return f.Status
	case errors.Is(err, command.ErrQuiet):
		return command.StatusRefused
	case errors.As(err, &f):
		command.Say(s.Err, "quorate: "+err.Error())
		return f.Status
	case ctx.Err() != nil:
		return command.StatusInterrupted
	default: // what cobra itself reports: unknown flags, missing arguments
		command.Say(s.Err, "quorate: "+err.Error())
		return command.StatusUsage
	}
}

// IsEtcdctls tells whether a line, without the program's name, is for etcdctl's commands although it does not begin with one
// that only etcdctl has: it begins with flags, or one of our commands of that name does not understand it.
func IsEtcdctls(args []string, s command.Streams) bool {
	if len(args) == 0 {
		return false
	}
	if strings.HasPrefix(args[0], "-") {
		return etcdctl.Leads(args)
	}
	return !understood(newRoot(s, Tools{}), args, s) && etcdctl.Accepts(args)
}

// RunsEtcdctl tells whether a line, without the program's name, ends in etcdctl's code: that knows no dialer of the context and
// may end the process.
func RunsEtcdctl(args []string, s command.Streams) bool {
	if IsEtcdctls(args, s) {
		return true
	}
	found, _, err := newRoot(s, Tools{}).Find(args)
	return err == nil && found.GroupID == etcdctlName
}

// refuseUnknown returns an error if the words after a group name none of its commands: cobra would print the help of the
// group.
func refuseUnknown(c *cobra.Command) error {
	words := c.Flags().Args()
	if len(words) == 0 || !c.HasParent() || !c.HasSubCommands() {
		return nil
	}
	return c.ValidateArgs(words)
}

// checkHelp lets `quorate help` refuse words that name no command, as the group would that they were meant for.
func checkHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, _ := root.Find([]string{"help"})
	help.Args = func(_ *cobra.Command, words []string) error {
		found, rest, err := root.Find(words)
		switch {
		case err != nil:
			hint := ""
			if near := Suggest(words[0]); near != "" {
				hint = "; did you mean " + near + "?"
			}
			return command.Usagef("unknown command %q%s", words[0], hint)
		case len(rest) > 0 && found.HasSubCommands():
			return found.ValidateArgs(rest)
		}
		return nil
	}
}

// Known tells whether a word is a command, rather than an argument of the server.
func Known(word string) bool {
	if strings.HasPrefix(word, "__complete") {
		return true
	}
	for _, name := range names() {
		if word == name {
			return true
		}
	}
	return false
}

// TakesValue tells whether a flag, as written without a value, has one in the command of a line.
func TakesValue(line []string, flag string) bool {
	found, _, err := newRoot(command.Streams{}, Tools{}).Find(line)
	if err != nil {
		return false
	}
	known := found.Flags().Lookup(strings.TrimLeft(flag, "-"))
	if name := strings.TrimPrefix(flag, "-"); known == nil && len(name) == 1 {
		known = found.Flags().ShorthandLookup(name)
	}
	return known != nil && known.NoOptDefVal == ""
}

// Exists tells whether the words are a command, as far as they name one: arguments and flags may follow.
func Exists(words []string) bool {
	found, rest, err := newRoot(command.Streams{}, Tools{}).Find(words)
	return err == nil && found.HasParent() && (len(rest) == 0 || !found.HasSubCommands()) || etcdctl.Accepts(words)
}

// Suggest returns the command that a mistyped word most probably meant, empty if none is near.
func Suggest(word string) string { return config.Nearest(word, names()) }

func names() []string {
	out := []string{"help", "completion"}
	for _, c := range newRoot(command.Streams{}, Tools{}).Commands() {
		out = append(out, c.Name())
	}
	return out
}

// WriteCommands prints one line for each command that is ours.
func WriteCommands(w io.Writer) {
	cobra.EnableCommandSorting = false
	for _, c := range newRoot(command.Streams{}, Tools{}).Commands() {
		if ours(c) {
			fmt.Fprintf(w, "  %-11s %s\n", c.Name(), c.Short)
		}
	}
}

// WriteEtcdctl prints the names of etcdctl's commands that are not ours.
func WriteEtcdctl(w io.Writer) {
	const indent, width = "  ", 100
	line := indent
	for _, c := range newRoot(command.Streams{}, Tools{}).Commands() {
		if c.GroupID != etcdctlName {
			continue
		}
		if len(line)+len(c.Name()) > width {
			fmt.Fprintln(w, strings.TrimRight(line, " "))
			line = indent
		}
		line += c.Name() + " "
	}
	fmt.Fprintln(w, strings.TrimRight(line, " "))
}

// Tools are what a program adds to the commands: parts of the server, which they do not know.
type Tools struct {
	Restore   snapshot.Restorer
	Verify    backup.Verifier
	Past      backup.Reader
	Inspect   doctor.Inspector
	GRPCProxy ProxyRunner
	Preview   Preview
}

func newRoot(s command.Streams, tools Tools) *cobra.Command {
	root := &cobra.Command{
		Use:           "quorate",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return command.Usagef("%w; see %s --help", err, c.CommandPath())
	})
	root.AddCommand(
		newDev(s),
		newPut(s), newGet(s), newDel(s), history.New(s), undelete.New(s, tools.Past), newWatch(s), newCompact(s),
		newStatus(s), doctor.New(s, tools.Inspect), top.New(s), newLatency(s), member.New(s), newLease(s),
		withDiff(snapshot.New(s, tools.Restore), backup.NewDiff(s, tools.Past)),
		backup.New(s, tools.Verify), backup.NewRestore(s, tools.Restore), mirror.Command(s),
		upgrade.New(s), audit.New(s), newToken(s), newEnableAuth(s),
		key.New(s), limit.New(s),
		etcdutl.New(s, snapshot.New(s, tools.Restore)),
		newGateway(s), newGRPCProxy(s, tools.GRPCProxy), newLog(s), newConfig(s, tools.Preview), newVersion(s), newDocs(s),
	)
	explainArguments(root)
	root.AddGroup(&cobra.Group{ID: etcdctlName, Title: "Commands of etcdctl:"})
	root.AddCommand(newEtcdctl(root.Commands())...)
	return root
}

// explainArguments lets commands answer a wrong number of arguments with the right ones.
func explainArguments(c *cobra.Command) {
	if check := c.Args; check != nil && !c.HasSubCommands() {
		c.Args = func(c *cobra.Command, args []string) error {
			if check(c, args) == nil {
				return nil
			}
			return command.Usagef("usage: %s %s", c.Parent().CommandPath(), c.Use)
		}
	}
	for _, sub := range c.Commands() {
		explainArguments(sub)
	}
}

// withDiff adds a command to a group of another package.
func withDiff(group, diff *cobra.Command) *cobra.Command {
	group.AddCommand(diff)
	return group
}
