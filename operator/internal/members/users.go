package members

import (
	"context"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/authpb"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// Users is who may log in.
type Users struct {
	RootPassword string
	Users        []User
}

// User is one of them, with a role of its name.
type User struct {
	Name        string
	Password    string // empty: it comes with a certificate
	Permissions []Permission
}

// Permission is what may be done to the keys with a prefix.
type Permission struct {
	Prefix      string
	Read, Write bool
}

// Users adds users and roles, sets passwords and permissions, root's last, and enables authentication. Users and roles of other
// names are left alone. It may be repeated.
func (g *Group) Users(ctx context.Context, u Users) error {
	return g.any(ctx, func(ctx context.Context, conn *grpc.ClientConn) error {
		auth := etcdserverpb.NewAuthClient(conn)
		for _, one := range u.Users {
			if err := role(ctx, auth, one); err != nil {
				return fmt.Errorf("the role of %s: %w", one.Name, err)
			}
			if err := user(ctx, auth, one, one.Name); err != nil {
				return fmt.Errorf("the user %s: %w", one.Name, err)
			}
		}
		switch g.login.counts() {
		case u.RootPassword:
			return nil
		case "":
		default: // logins end with the password: nothing can be asked behind that
			request := &etcdserverpb.AuthUserChangePasswordRequest{Name: root, Password: u.RootPassword}
			_, err := auth.UserChangePassword(ctx, request)
			return err
		}
		if err := user(ctx, auth, User{Name: root, Password: u.RootPassword}, root); err != nil {
			return fmt.Errorf("root: %w", err)
		}
		status, err := auth.AuthStatus(ctx, &etcdserverpb.AuthStatusRequest{})
		if err != nil || status.Enabled {
			return err
		}
		_, err = auth.AuthEnable(ctx, &etcdserverpb.AuthEnableRequest{})
		return err
	})
}

func user(ctx context.Context, auth etcdserverpb.AuthClient, u User, role string) error {
	_, err := auth.UserAdd(ctx, &etcdserverpb.AuthUserAddRequest{Name: u.Name, Password: u.Password,
		Options: &authpb.UserAddOptions{NoPassword: u.Password == ""}})
	if is(err, rpctypes.ErrGRPCUserAlreadyExist) {
		err = nil
		if u.Password != "" {
			_, err = auth.UserChangePassword(ctx, &etcdserverpb.AuthUserChangePasswordRequest{Name: u.Name,
				Password: u.Password})
		}
	}
	if err != nil {
		return err
	}
	if role == root {
		if _, err := auth.RoleAdd(ctx, &etcdserverpb.AuthRoleAddRequest{Name: root}); err != nil && !is(err,
			rpctypes.ErrGRPCRoleAlreadyExist) {
			return err
		}
	}
	_, err = auth.UserGrantRole(ctx, &etcdserverpb.AuthUserGrantRoleRequest{User: u.Name, Role: role})
	return err
}

// role gives a role exactly the permissions of the user.
func role(ctx context.Context, auth etcdserverpb.AuthClient, u User) error {
	if _, err := auth.RoleAdd(ctx, &etcdserverpb.AuthRoleAddRequest{Name: u.Name}); err != nil && !is(err,
		rpctypes.ErrGRPCRoleAlreadyExist) {
		return err
	}
	there, err := auth.RoleGet(ctx, &etcdserverpb.AuthRoleGetRequest{Role: u.Name})
	if err != nil {
		return err
	}
	wanted := make([]*authpb.Permission, 0, len(u.Permissions))
	for _, p := range u.Permissions {
		wanted = append(wanted, permission(p))
	}
	equal := func(a, b *authpb.Permission) bool {
		return string(a.Key) == string(b.Key) && string(a.RangeEnd) == string(b.RangeEnd)
	}
	for _, p := range there.Perm {
		if !slices.ContainsFunc(wanted, func(w *authpb.Permission) bool { return equal(p, w) }) {
			_, err := auth.RoleRevokePermission(ctx, &etcdserverpb.AuthRoleRevokePermissionRequest{Role: u.Name, Key: p.Key,
				RangeEnd: p.RangeEnd})
			if err != nil {
				return err
			}
		}
	}
	for _, w := range wanted {
		if slices.ContainsFunc(there.Perm, func(p *authpb.Permission) bool { return equal(p, w) && p.PermType == w.PermType }) {
			continue
		}
		if _, err := auth.RoleGrantPermission(ctx, &etcdserverpb.AuthRoleGrantPermissionRequest{Name: u.Name,
			Perm: w}); err != nil {
			return err
		}
	}
	return nil
}

func permission(p Permission) *authpb.Permission {
	out := &authpb.Permission{PermType: authpb.Permission_READWRITE, Key: []byte(p.Prefix)}
	switch {
	case !p.Write:
		out.PermType = authpb.Permission_READ
	case !p.Read:
		out.PermType = authpb.Permission_WRITE
	}
	out.RangeEnd = []byte(clientv3.GetPrefixRangeEnd(p.Prefix))
	if p.Prefix == "" {
		out.Key, out.RangeEnd = []byte{0}, []byte{0}
	}
	return out
}
