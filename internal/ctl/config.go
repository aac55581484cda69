package ctl

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/ctl/command"
)

// Preview tells how a member would start with a configuration: lines about what --memory leaves of settings, and what is
// wrong with the files that it names.
type Preview func(c *config.Config) (inEffect []string, faults []error)

func newConfig(s command.Streams, preview Preview) *cobra.Command {
	show := &cobra.Command{
		Use:   "print [SERVER FLAGS]",
		Short: "Print the configuration that these flags, the environment and the file result in; status 1 if it is wrong",
		Long: "Print the configuration that these flags, the environment and the file result in; status 1 if it is wrong.\n\n" +
			"Comments behind it say what --memory leaves of settings. Files of certificates and keys are read as a start " +
			"would, " +
			"and what is wrong with them is said. Nothing is changed, and no port is opened.",
		Example:            "  quorate config print --config-file /etc/quorate/quorate.yaml",
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
			if err := c.WriteYAML(s.Out); err != nil || preview == nil {
				return err
			}
			return showPreview(s, preview, &c)
		},
	}
	return command.Group("config", "Work with the server's configuration", show)
}

func showPreview(s command.Streams, preview Preview, c *config.Config) error {
	inEffect, faults := preview(c)
	for i, line := range inEffect {
		if i == 0 {
			fmt.Fprintln(s.Out)
		}
		fmt.Fprintf(s.Out, "# %s\n", line)
	}
	if len(faults) > 0 {
		return command.Refused(fmt.Errorf("a member would not start, or serve badly: %w", errors.Join(faults...)))
	}
	return nil
}
