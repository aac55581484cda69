package ctl

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/ctl/command"
)

func newConfig(s command.Streams) *cobra.Command {
	show := &cobra.Command{
		Use:                "print [SERVER FLAGS]",
		Short:              "Print the configuration that these flags, the environment and the file result in",
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := config.Load(args, s.Environ)
			var usage *config.UsageError
			switch {
			case errors.Is(err, config.ErrHelp), errors.Is(err, config.ErrVersion):
				return cmd.Help()
			case errors.As(err, &usage):
				return command.Usagef("%w", err)
			case err != nil:
				return command.Refused(err)
			}
			for _, w := range c.Warnings {
				fmt.Fprintf(s.Err, "warning: %s\n", w)
			}
			return c.WriteYAML(s.Out)
		},
	}
	return command.Group("config", "Work with the server's configuration", show)
}

func newVersion(s command.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		Run:   func(*cobra.Command, []string) { config.WriteVersion(s.Out) },
	}
}
