package ctl

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/internal/ctl/command"
)

const rootUser = "root"

const enableAuthLong = `Turn authentication on, with a user root of the given password: for jobs, which may repeat it.

If authentication is off, the user root is made, or gets the password, is given the role root, and authentication is
turned on. If it is on, and root has this password, nothing is done. If root has another one, the command fails and
changes nothing. By hand: ` + "`etcdctl user add root`, `etcdctl user grant-role root root`, `etcdctl auth enable`" + `.`

func newEnableAuth(s command.Streams) *cobra.Command {
	c := command.NewConnection(s)
	return c.AddTo(&cobra.Command{
		Use:     "enable-auth",
		Short:   "Turn authentication on, with a user root of the given password",
		Long:    enableAuthLong,
		Example: "  QUORATE_PASSWORD=… quorate enable-auth --user root",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			user, password, err := c.Login()
			switch {
			case err != nil:
				return err
			case user != rootUser:
				return command.Usagef("give the password of root: --user root, and QUORATE_PASSWORD in the environment")
			}
			return c.Do(cmd.Context(), func(ctx context.Context, client *clientv3.Client) error {
				done, err := enableAuth(ctx, client, password)
				if err != nil {
					return err
				}
				if c.JSON() {
					return command.PrintJSON(s.Out, map[string]bool{"enabled": true, "changed": !done})
				}
				text := "authentication is on"
				if done {
					text += " already, and root has this password: nothing to do"
				}
				_, err = fmt.Fprintln(s.Out, text)
				return err
			})
		},
	})
}

// enableAuth turns authentication on. The client has logged in if it was on: then it was done before.
func enableAuth(ctx context.Context, client *clientv3.Client, password string) (done bool, err error) {
	status, err := client.AuthStatus(ctx)
	if err != nil || status.Enabled {
		return true, err
	}
	_, err = client.UserAdd(ctx, rootUser, password)
	if errors.Is(err, rpctypes.ErrUserAlreadyExist) {
		_, err = client.UserChangePassword(ctx, rootUser, password)
	}
	if err != nil {
		return false, fmt.Errorf("make the user root: %w", err)
	}
	if _, err := client.UserGrantRole(ctx, rootUser, rootUser); err != nil {
		return false, fmt.Errorf("give the user root the role root: %w", err)
	}
	_, err = client.AuthEnable(ctx)
	return false, err
}
