package etcdctl

import (
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Run executes a command line of etcdctl, without the program's name, on the standard streams, and returns the status to exit
// with. name is how help texts call the program.
func Run(name string, args []string) int {
	signal.Reset(os.Interrupt, syscall.SIGTERM) // they end etcdctl, and its commands that do more listen themselves
	setEnvironment(args)
	if plain, asked := withoutReadable(args, os.Getenv(theirPrefix+"WRITE_OUT")); asked {
		return runReadable(plain)
	}
	cobra.EnablePrefixMatching = true // as in etcdctl: lease keep is lease keep-alive
	root := newRoot(name)
	root.SetArgs(append([]string{}, args...)) // nil would mean those of the process
	if root.Execute() != nil {                // it has printed why
		return 1
	}
	return 0
}

// setEnvironment gives etcdctl's code what our own variables say, and hides variables from it whose flag is on the line: it
// would end the process over both.
func setEnvironment(args []string) {
	for _, name := range adopted {
		if value := os.Getenv(ourPrefix + name); value != "" {
			_ = os.Setenv(theirPrefix+name, value)
		}
	}
	found, rest, err := newRoot("etcdctl").Find(args)
	if err != nil || found.ParseFlags(rest) != nil {
		return
	}
	found.Flags().Visit(func(f *pflag.Flag) {
		_ = os.Unsetenv(theirPrefix + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_")))
	})
}

// adopted are our variables of the environment that etcdctl has, too.
var adopted = []string{"ENDPOINTS", "USER", "PASSWORD", "CACERT", "CERT", "KEY"}

// Commands returns etcdctl's commands.
func Commands() []*cobra.Command { return newRoot("etcdctl").Commands() }

// Accepts tells whether a line is one of etcdctl's: it names a command, and has no flag that this command lacks.
func Accepts(args []string) bool {
	found, rest, err := newRoot("etcdctl").Find(args)
	if err != nil || !found.HasParent() {
		return false
	}
	if found.ParseFlags(rest) != nil {
		return false
	}
	return !found.HasSubCommands() || len(found.Flags().Args()) == 0
}

// Leads tells whether a line begins with a flag of etcdctl, which other programs take after the command.
func Leads(args []string) bool {
	if len(args) == 0 || !strings.HasPrefix(args[0], "-") {
		return false
	}
	flags := newRoot("etcdctl").PersistentFlags()
	name, _, _ := strings.Cut(strings.TrimLeft(args[0], "-"), "=")
	if strings.HasPrefix(args[0], "--") {
		return flags.Lookup(name) != nil && Accepts(args)
	}
	return name != "" && flags.ShorthandLookup(name[:1]) != nil && Accepts(args)
}
