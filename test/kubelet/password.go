package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	rootKey      = "etcd-root-password"
	nextPassword = `n3w/pa"ss\word`
	appUser      = "app"
	appPath      = "/app/"
	// typesPassword is the line of the page at which somebody types the password.
	typesPassword = "printf 'new password, without spaces: '; read -rs new; echo"
)

// rotation is what is typed to give root another password.
func (c *cluster) rotation() procedure {
	return procedure{heading: "### Root's password of a release", names: []string{"-n prod db ",
		"-n " + c.namespace + " " + chartName + " ", typesPassword, "new='" + nextPassword + "'"}}
}

// chartPassword gives root another password. Clients that are root write again once they have it from the Secret, and those of
// another user never notice. The former one is refused, also by the chart. A later upgrade adds members, by a job that logs in.
func chartPassword(ctx context.Context, c *cluster) error {
	app, err := c.addApp(ctx)
	if err != nil {
		return err
	}
	err = c.changePassword(ctx)
	tally, stopped := app.stop(ctx)
	if err := errors.Join(err, stopped); err != nil {
		return err
	}
	if tally.acked < someWrites || tally.failed > 0 || tally.lost > 0 {
		return fmt.Errorf("of the clients of another user %d writes failed, %d were acknowledged, and %d of these are lost",
			tally.failed, tally.acked, tally.lost)
	}
	c.say("clients of another user: %d writes acknowledged, none failed, the longest pause took %v", tally.acked, tally.pause)
	return nil
}

func (c *cluster) changePassword(ctx context.Context) error {
	if err := c.progress(ctx, someWrites); err != nil {
		return err
	}
	former := c.access
	said, err := c.follow(ctx, c.rotation())
	if err != nil {
		return err
	}
	if err := says(said, "root"); err != nil {
		return err
	}
	if err := c.readPassword(ctx, c.rootSecret, rootKey); err != nil {
		return err
	}
	if c.access.password != nextPassword {
		return fmt.Errorf("the Secret has %q", c.access.password)
	}
	c.writer.login(c.access)
	if err := c.progress(ctx, someWrites); err != nil {
		return err
	}
	if client, err := former.connect(); err == nil || !errors.Is(rpctypes.Error(err), rpctypes.ErrAuthFailed) {
		if err == nil {
			client.Close()
		}
		return fmt.Errorf("who logs in with the former password is told: %w", err)
	}
	err = c.upgrade(ctx, "auth.rbac.rootPassword="+former.password)
	if err == nil || !strings.Contains(err.Error(), "has another password") {
		return fmt.Errorf("the chart takes the former password: %w", err)
	}
	if err := c.upgrade(ctx, "replicaCount=5"); err != nil {
		return err
	}
	return errors.Join(c.voters(ctx, 5), c.progress(ctx, someWrites))
}

// addApp makes a user who may write below a path, and lets clients of that user write.
func (c *cluster) addApp(ctx context.Context) (*writer, error) {
	client, err := c.access.connect()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	call, cancel := context.WithTimeout(ctx, putTime)
	defer cancel()
	if _, err := client.RoleAdd(call, appUser); err != nil {
		return nil, err
	}
	if _, err := client.RoleGrantPermission(call, appUser, appPath, clientv3.GetPrefixRangeEnd(appPath),
		clientv3.PermissionType(clientv3.PermReadWrite)); err != nil {
		return nil, err
	}
	if _, err := client.UserAdd(call, appUser, appUser); err != nil {
		return nil, err
	}
	if _, err := client.UserGrantRole(call, appUser, appUser); err != nil {
		return nil, err
	}
	as := c.access
	as.user, as.password = appUser, appUser
	return startWriter(as, appPath)
}
