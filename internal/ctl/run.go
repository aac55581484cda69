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
)

// Exit statuses, stable for scripts.
const (
	StatusOK          = 0
	StatusRefused     = 1
	StatusUsage       = 2
	StatusUnreachable = 3
	// StatusRemoved is how a member ends that the cluster has removed for ever: a supervisor should not start it again
	// (systemd: RestartPreventExitStatus=4).
	StatusRemoved     = 4
	statusInterrupted = 130
)

// Streams is what a command line is connected to.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	Environ  []string // as os.Environ
	Self     string   // how the person called this program
	Terminal bool     // Out is a terminal: tables may be refreshed in place
	Attended bool     // In is a terminal: there is somebody to answer questions
}

func (s Streams) env(key string) string {
	for _, pair := range s.Environ {
		if k, v, _ := strings.Cut(pair, "="); k == key {
			return v
		}
	}
	return ""
}

// failure is an error with the status that it ends the program with.
type failure struct {
	status int
	err    error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

func usageError(format string, args ...any) error {
	return &failure{StatusUsage, fmt.Errorf(format, args...)}
}

// Run executes a command line without the program's name, and returns the status to exit with.
func Run(ctx context.Context, args []string, s Streams) int {
	root := newRoot(s)
	root.SetArgs(args)
	var unknown error
	help := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, words []string) {
		if unknown = refuseUnknown(c); unknown == nil {
			help(c, words)
		}
	})
	err := cmp.Or(root.ExecuteContext(ctx), unknown)
	var f *failure
	switch {
	case err == nil:
		return StatusOK
	case errors.Is(err, errQuiet):
		return StatusRefused
	case errors.As(err, &f):
		fmt.Fprintf(s.Err, "quorate: %v\n", err)
		return f.status
	case ctx.Err() != nil:
		return statusInterrupted
	default: // what cobra itself reports: unknown flags, missing arguments
		fmt.Fprintf(s.Err, "quorate: %v\n", err)
		return StatusUsage
	}
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

// errQuiet ends a command with StatusRefused whose output has said everything already.
var errQuiet = errors.New("ctl: said already")

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

// Exists tells whether the words are a command, as far as they name one: arguments and flags may follow.
func Exists(words []string) bool {
	found, rest, err := newRoot(Streams{}).Find(words)
	return err == nil && found.HasParent() && (len(rest) == 0 || !found.HasSubCommands())
}

// Suggest returns the command that a mistyped word most probably meant, empty if none is near.
func Suggest(word string) string { return config.Nearest(word, names()) }

func names() []string {
	out := []string{"help", "completion"}
	for _, c := range newRoot(Streams{}).Commands() {
		out = append(out, c.Name())
	}
	return out
}

// WriteCommands prints one line for each command.
func WriteCommands(w io.Writer) {
	cobra.EnableCommandSorting = false
	for _, c := range newRoot(Streams{}).Commands() {
		fmt.Fprintf(w, "  %-10s %s\n", c.Name(), c.Short)
	}
}

func newRoot(s Streams) *cobra.Command {
	root := &cobra.Command{
		Use:           "quorate",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError("%w; see %s --help", err, c.CommandPath())
	})
	root.AddCommand(
		newDev(s),
		newPut(s), newGet(s), newDel(s), newWatch(s), newCompact(s),
		newStatus(s), newLatency(s), newMember(s), newLease(s), newSnapshot(s),
		newConfig(s), newVersion(s),
	)
	explainArguments(root)
	return root
}

// explainArguments lets commands answer a wrong number of arguments with the right ones.
func explainArguments(c *cobra.Command) {
	if check := c.Args; check != nil && !c.HasSubCommands() {
		c.Args = func(c *cobra.Command, args []string) error {
			if check(c, args) == nil {
				return nil
			}
			return usageError("write: %s %s", c.Parent().CommandPath(), c.Use)
		}
	}
	for _, sub := range c.Commands() {
		explainArguments(sub)
	}
}

// commandPath names a command without the program.
func commandPath(c *cobra.Command) string {
	_, path, _ := strings.Cut(c.CommandPath(), " ")
	return path
}

// nouns makes a command that only holds others.
func nouns(use, short string, verbs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: func(c *cobra.Command, args []string) error {
		var all []string
		for _, v := range c.Commands() {
			all = append(all, v.Name())
		}
		if len(args) == 0 {
			return usageError("%s what? One of: %s", commandPath(c), strings.Join(all, ", "))
		}
		hint := ""
		if near := config.Nearest(args[0], all); near != "" {
			hint = "; did you mean " + near + "?"
		}
		return usageError("%s has no %q%s", commandPath(c), args[0], hint)
	}, RunE: func(*cobra.Command, []string) error { return nil }}
	c.AddCommand(verbs...)
	return c
}
