package command

import (
	"strings"

	"github.com/spf13/cobra"
)

// Side names the flags with which a command that reaches two clusters reaches one of them. All but the first begin with the
// first and a hyphen.
type Side struct {
	Endpoints, User, Password, CACert, Cert, Key, SkipVerify string
}

// AddSide gives a command the flags of one side.
func (c *Connection) AddSide(cmd *cobra.Command, side *Side, about string) {
	cmd.Flags().StringVar(&c.endpoints, side.Endpoints, "", "members of "+about+", separated by commas")
	i := &c.identity
	i.ask = c.Streams.Secret
	i.side = side.Endpoints + "-"
	text := func(into *string, flag, about string) {
		variableName := "QUORATE_" + strings.ReplaceAll(strings.ToUpper(flag), "-", "_")
		cmd.Flags().StringVar(into, flag, "", about+" (or "+variableName+")")
		if v := c.Streams.Env(variableName); v != "" {
			*into = v // not as a default, which help texts show
		}
	}
	text(&i.user, side.User, "user there, as NAME or NAME:PASSWORD")
	text(&i.password, side.Password, "password of that user")
	text(&i.trusted, side.CACert, "file of certificates that may sign those of its members")
	text(&i.certificate, side.Cert, "file of the certificate to show there")
	text(&i.key, side.Key, "file of its key")
	cmd.Flags().BoolVar(&i.trustAny, side.SkipVerify, false, "do not check the certificates there; for tests")
	c.Timeout, c.Output = defaultTimeout, c.formats[0]
}
