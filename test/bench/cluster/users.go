package cluster

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// The users of a cluster with users: the administrator, and the clients, whose role may read and write every key.
const (
	rootUser   = "root"
	clientUser = "client"
	password   = "password"
)

// enableUsers makes the users, enables authentication, and lets Control log in as root.
func (c *Cluster) enableUsers(ctx context.Context, endpoints []string) error {
	everything := clientv3.PermissionType(clientv3.PermReadWrite)
	steps := []func() error{
		func() error { _, err := c.Control.UserAdd(ctx, rootUser, password); return err },
		func() error { _, err := c.Control.UserGrantRole(ctx, rootUser, rootUser); return err },
		func() error { _, err := c.Control.UserAdd(ctx, clientUser, password); return err },
		func() error { _, err := c.Control.RoleAdd(ctx, clientUser); return err },
		func() error {
			_, err := c.Control.RoleGrantPermission(ctx, clientUser, "\x00", "\x00", everything)
			return err
		},
		func() error { _, err := c.Control.UserGrantRole(ctx, clientUser, clientUser); return err },
		func() error { _, err := c.Control.AuthEnable(ctx); return err },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	client, err := login(rootUser, endpoints)
	if err == nil {
		err = c.Control.Close()
		c.Control = client
	}
	return err
}

// Connect opens a connection as the clients of this cluster do: with users, one that has logged in.
func (c *Cluster) Connect(endpoints ...string) (*clientv3.Client, error) {
	if !c.Server.Users {
		return Connect(endpoints...)
	}
	return login(clientUser, endpoints)
}

func login(user string, endpoints []string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: endpoints, DialTimeout: 5 * time.Second, Username: user, Password: password})
}
