package ctl

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/etcdctl"
)

// ADR 0029: of the commands that etcdctl has, too, ours runs if it understands the line, else etcdctl's.

// etcdctlName is the command under which all of etcdctl is found.
const etcdctlName = "etcdctl"

// ended is how a command ended that has said everything already.
type ended int

func (e ended) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// newEtcdctl are the commands that only etcdctl has, and the one under which all of its commands are found.
func newEtcdctl(ours []*cobra.Command) []*cobra.Command {
	all := delegate(etcdctlName, "Run a command of etcdctl, exactly as etcdctl does", nil)
	var commands []*cobra.Command
	for _, theirs := range etcdctl.Commands() {
		name := theirs.Name()
		same := func(c *cobra.Command) bool { return c.Name() == name }
		if name == "completion" || name == "options" || slices.ContainsFunc(ours, same) {
			continue
		}
		short, _, _ := strings.Cut(theirs.Short, ". Use `")
		commands = append(commands, delegate(name, short, []string{name}))
	}
	return append(commands, all)
}

// delegate is a command that hands its line to etcdctl's, behind the words that name that.
func delegate(name, short string, words []string) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: short, DisableFlagParsing: true, GroupID: etcdctlName,
		RunE: func(_ *cobra.Command, args []string) error {
			if status := etcdctl.Run(calledEtcdctl, slices.Concat(words, args)); status != command.StatusOK {
				return ended(status)
			}
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, last string) ([]string, cobra.ShellCompDirective) {
			return etcdctl.Complete(slices.Concat(words, args), last)
		},
	}
}

// calledEtcdctl is how the help of etcdctl's commands calls this program.
const calledEtcdctl = "quorate etcdctl"

// understood tells whether one of our own commands is meant, which is so unless it lacks a flag or a subcommand on the line.
func understood(root *cobra.Command, args []string, s command.Streams) bool {
	found, rest, err := root.Find(args)
	if err != nil || !found.HasParent() {
		return false
	}
	if found.DisableFlagParsing {
		return true
	}
	found.InitDefaultHelpFlag()
	if found.ParseFlags(rest) != nil {
		return false
	}
	if help, _ := found.Flags().GetBool("help"); help {
		return true
	}
	words := found.Flags().Args()
	switch {
	case found.HasSubCommands():
		return len(words) == 0
	case s.Env("ETCDCTL_WRITE_OUT") != "":
		return false
	case found.Name() == "watch": // a program to run for each event, or a key from the environment
		return found.Flags().ArgsLenAtDash() <= 0 && s.Env("ETCDCTL_WATCH_KEY") == ""
	}
	return true
}
