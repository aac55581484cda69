package ctl

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/dev"
)

func newDev(s command.Streams) *cobra.Command {
	o := dev.Options{Self: s.Self, Environ: s.Environ, Out: s.Out, Terminal: s.Terminal}
	cmd := &cobra.Command{
		Use:   "dev [-- SERVER FLAGS]",
		Short: "Run a cluster on this machine to develop against",
		Long: "Run a cluster on this machine to develop against. The members are processes of their own; they stop " +
			"with this command,\ntheir data stays in the directory, and the next start goes on with it. Flags after " +
			"-- are passed to every member.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.Program == "" {
				var err error
				if o.Program, err = os.Executable(); err != nil {
					return command.Refused(fmt.Errorf("find this program: %w", err))
				}
				o.Console = true
			}
			if len(args) > 0 && cmd.ArgsLenAtDash() != 0 {
				return command.Usagef("dev takes no arguments; write server flags after --")
			}
			o.Args = args
			o.Width = command.TerminalWidth
			if err := dev.Run(cmd.Context(), o); err != nil {
				return command.Refused(err)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&o.Dir, "dir", "quorate-dev", "directory of data and logs")
	cmd.Flags().IntVar(&o.Members, "members", 0, "how many members, 1 to 7 (default: as before, or 3; 5 with --geo regions)")
	cmd.Flags().StringVar(&o.Program, "program", "", "server to run instead of this one, such as an older build")
	cmd.Flags().IntVar(&o.BasePort, "base-port", 0,
		"client port of the first member; every further member is 10 above, peers are 1 above, the console 2\n"+
			"(default: as before, or 2379)")
	cmd.Flags().StringVar(&o.Geo, "geo", "", "simulate distance between the members: the round trip between any two, such "+
		"as 50ms; 'regions' for\nfive sites around the world (us-east, us-west, eu, ap, sa), after which new members are "+
		"named;\nor 'off' (default: as before, or off)")
	return cmd
}
