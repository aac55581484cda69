package users

import (
	"context"
	"fmt"

	"go.etcd.io/etcd/api/v3/authpb"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/console/page"
)

// path is that of the page.
const path = "/users"

// The names of the actions, as paths and links have them.
const (
	addUser          = "add-user"
	addRole          = "add-role"
	grantRole        = "grant-role"
	grantPermission  = "grant-permission"
	setPassword      = "set-password"
	deleteUser       = "delete-user"
	deleteRole       = "delete-role"
	revokeRole       = "revoke-role"
	revokePermission = "revoke-permission"
)

func actions() []page.Action {
	all := []page.Action{}
	for _, a := range []struct {
		name string
		do   func(ctx context.Context, c pb.AuthClient, r *page.Request) (said string, err error)
	}{
		{addUser, doAddUser}, {addRole, doAddRole}, {grantRole, doGrantRole}, {grantPermission, doGrantPermission},
		{setPassword, doSetPassword}, {deleteUser, doDeleteUser}, {deleteRole, doDeleteRole}, {revokeRole, doRevokeRole},
		{revokePermission, doRevokePermission},
	} {
		do := func(ctx context.Context, r *page.Request) (page.Outcome, error) {
			said, err := a.do(ctx, pb.NewAuthClient(r.Conn), r)
			return page.Outcome{To: path, Said: said}, err
		}
		all = append(all, page.Action{Path: path + "/" + a.name, Do: do})
	}
	return all
}

// addForms are the forms that add something, for a user who may, on a console that was started to administer.
func addForms(ctx context.Context, r *page.Request) (any, error) {
	if !r.Admin {
		return nil, page.ErrHidden
	}
	_, err := pb.NewAuthClient(r.Conn).RoleList(ctx, &pb.AuthRoleListRequest{})
	if status.Code(err) == codes.PermissionDenied {
		return nil, page.ErrHidden
	}
	return nil, err
}

// confirmed refuses a form whose reader did not type the name of what loses something.
func confirmed(r *page.Request, name string) error {
	if typed := r.Form.Get("typed"); typed != name && typed != shown(name) {
		return page.FormError("The name that was typed is not " + shown(name) + ". Nothing was changed.")
	}
	return nil
}

// password is the one that was typed twice. No error has any of it.
func password(r *page.Request) (string, error) {
	first := r.Form.Get("password")
	switch {
	case first == "":
		return "", page.FormError("No password was typed. Nothing was changed.")
	case first != r.Form.Get("again"):
		return "", page.FormError("The two passwords differ. Nothing was changed.")
	}
	return first, nil
}

// named refuses a form without a name.
func named(r *page.Request, fields ...string) error {
	for _, field := range fields {
		if r.Form.Get(field) == "" {
			return page.FormError("The name of the " + field + " is missing. Nothing was changed.")
		}
	}
	return nil
}

func doAddUser(ctx context.Context, c pb.AuthClient, r *page.Request) (string, error) {
	name := r.Form.Get("user")
	if err := named(r, "user"); err != nil {
		return "", err
	}
	ask := &pb.AuthUserAddRequest{Name: name, Options: &authpb.UserAddOptions{NoPassword: r.Form.Has("without")}}
	if !ask.Options.NoPassword {
		secret, err := password(r)
		if err != nil {
			return "", err
		}
		ask.Password = secret
	}
	_, err := c.UserAdd(ctx, ask)
	return fmt.Sprintf("The user %s was added. It has no role yet.", shown(name)), err
}

func doAddRole(ctx context.Context, c pb.AuthClient, r *page.Request) (string, error) {
	if err := named(r, "role"); err != nil {
		return "", err
	}
	_, err := c.RoleAdd(ctx, &pb.AuthRoleAddRequest{Name: r.Form.Get("role")})
	return fmt.Sprintf("The role %s was added. It permits nothing yet.", shown(r.Form.Get("role"))), err
}

func doGrantRole(ctx context.Context, c pb.AuthClient, r *page.Request) (string, error) {
	if err := named(r, "user", "role"); err != nil {
		return "", err
	}
	_, err := c.UserGrantRole(ctx, &pb.AuthUserGrantRoleRequest{User: r.Form.Get("user"), Role: r.Form.Get("role")})
	return fmt.Sprintf("The user %s has the role %s.", shown(r.Form.Get("user")), shown(r.Form.Get("role"))), err
}

// accesses are the choices of a form.
var accesses = map[string]authpb.Permission_Type{"read": authpb.READ, "write": authpb.WRITE, "readwrite": authpb.READWRITE}

func doGrantPermission(ctx context.Context, c pb.AuthClient, r *page.Request) (string, error) {
	if err := named(r, "role"); err != nil {
		return "", err
	}
	access, ok := accesses[r.Form.Get("access")]
	if !ok {
		return "", page.FormError("Choose read, write, or both. Nothing was changed.")
	}
	key, end, err := typedRange(r.Form.Get("kind"), r.Form.Get("key"), r.Form.Get("end"))
	if err != nil {
		return "", err
	}
	_, err = c.RoleGrantPermission(ctx, &pb.AuthRoleGrantPermissionRequest{Name: r.Form.Get("role"),
		Perm: &authpb.Permission{PermType: access, Key: key, RangeEnd: end}})
	return fmt.Sprintf("The role %s may %s %s.", shown(r.Form.Get("role")), accessOf(access), keysOf(key, end)), err
}

func doSetPassword(ctx context.Context, c pb.AuthClient, r *page.Request) (string, error) {
	name := r.Form.Get("user")
	if err := confirmed(r, name); err != nil {
		return "", err
	}
	secret, err := password(r)
	if err != nil {
		return "", err
	}
	_, err = c.UserChangePassword(ctx, &pb.AuthUserChangePasswordRequest{Name: name, Password: secret})
	return fmt.Sprintf("The user %s has a new password, and must log in again.", shown(name)), err
}

func doDeleteUser(ctx context.Context, c pb.AuthClient, r *page.Request) (string, error) {
	name := r.Form.Get("user")
	if err := confirmed(r, name); err != nil {
		return "", err
	}
	_, err := c.UserDelete(ctx, &pb.AuthUserDeleteRequest{Name: name})
	return fmt.Sprintf("The user %s was deleted.", shown(name)), err
}

func doDeleteRole(ctx context.Context, c pb.AuthClient, r *page.Request) (string, error) {
	name := r.Form.Get("role")
	if err := confirmed(r, name); err != nil {
		return "", err
	}
	_, err := c.RoleDelete(ctx, &pb.AuthRoleDeleteRequest{Role: name})
	return fmt.Sprintf("The role %s was deleted.", shown(name)), err
}

func doRevokeRole(ctx context.Context, c pb.AuthClient, r *page.Request) (string, error) {
	name, role := r.Form.Get("user"), r.Form.Get("role")
	if err := confirmed(r, name); err != nil {
		return "", err
	}
	_, err := c.UserRevokeRole(ctx, &pb.AuthUserRevokeRoleRequest{Name: name, Role: role})
	return fmt.Sprintf("The user %s does not have the role %s any more.", shown(name), shown(role)), err
}

func doRevokePermission(ctx context.Context, c pb.AuthClient, r *page.Request) (string, error) {
	role := r.Form.Get("role")
	if err := confirmed(r, role); err != nil {
		return "", err
	}
	key, ok := unpacked(r.Form.Get("key"))
	end, good := unpacked(r.Form.Get("end"))
	if !ok || !good {
		return "", page.FormError("The form does not say which permission is meant. Nothing was changed.")
	}
	_, err := c.RoleRevokePermission(ctx, &pb.AuthRoleRevokePermissionRequest{Role: role, Key: key, RangeEnd: end})
	return fmt.Sprintf("The role %s lost its permission for %s.", shown(role), keysOf(key, end)), err
}
