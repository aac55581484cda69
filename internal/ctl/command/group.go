package command

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/config"
)

// commandPath names a command without the program.
func commandPath(c *cobra.Command) string {
	_, path, _ := strings.Cut(c.CommandPath(), " ")
	return path
}

// Group makes a command that only holds others.
func Group(use, short string, verbs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: func(c *cobra.Command, args []string) error {
		var all []string
		for _, v := range c.Commands() {
			all = append(all, v.Name())
		}
		if len(args) == 0 {
			return Usagef("%s what? One of: %s", commandPath(c), strings.Join(all, ", "))
		}
		hint := ""
		if near := config.Nearest(args[0], all); near != "" {
			hint = "; did you mean " + near + "?"
		}
		return Usagef("%s has no %q%s", commandPath(c), args[0], hint)
	}, RunE: func(*cobra.Command, []string) error { return nil }}
	c.AddCommand(verbs...)
	return c
}
