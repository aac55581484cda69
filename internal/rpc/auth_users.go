package rpc

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/quorate/quorate/internal/auth"
)

// UserAdd adds a user.
func (a *authService) UserAdd(ctx context.Context, r *pb.AuthUserAddRequest) (*pb.AuthUserAddResponse, error) {
	if err := a.access.Root(ctx); err != nil { // before a processor is busy with the password
		return nil, err
	}
	if r.Name == "" {
		return nil, auth.ErrUserEmpty
	}
	c := &auth.Change{Kind: auth.UserAdd, User: r.Name, NoPassword: r.Options.GetNoPassword()}
	if !c.NoPassword {
		hash, err := a.options.Login.Hash(ctx, r.Password)
		if err != nil {
			return nil, err
		}
		c.Hash = hash
	}
	header, err := a.change(ctx, c, "user added", "user", r.Name)
	if err != nil {
		return nil, err
	}
	return &pb.AuthUserAddResponse{Header: header}, nil
}

// UserDelete deletes a user.
func (a *authService) UserDelete(ctx context.Context, r *pb.AuthUserDeleteRequest) (*pb.AuthUserDeleteResponse, error) {
	header, err := a.change(ctx, &auth.Change{Kind: auth.UserDelete, User: r.Name}, "user deleted", "user", r.Name)
	if err != nil {
		return nil, err
	}
	return &pb.AuthUserDeleteResponse{Header: header}, nil
}

// UserChangePassword gives a user another password. An empty one, as in etcd, leaves the user without any.
func (a *authService) UserChangePassword(
	ctx context.Context, r *pb.AuthUserChangePasswordRequest,
) (*pb.AuthUserChangePasswordResponse, error) {
	if err := a.access.Root(ctx); err != nil {
		return nil, err
	}
	c := &auth.Change{Kind: auth.UserPassword, User: r.Name}
	if r.Password != "" {
		hash, err := a.options.Login.Hash(ctx, r.Password)
		if err != nil {
			return nil, err
		}
		c.Hash = hash
	}
	header, err := a.change(ctx, c, "password changed", "user", r.Name)
	if err != nil {
		return nil, err
	}
	return &pb.AuthUserChangePasswordResponse{Header: header}, nil
}

// UserGrantRole gives a user a role.
func (a *authService) UserGrantRole(
	ctx context.Context, r *pb.AuthUserGrantRoleRequest,
) (*pb.AuthUserGrantRoleResponse, error) {
	c := &auth.Change{Kind: auth.UserGrantRole, User: r.User, Role: r.Role}
	header, err := a.change(ctx, c, "role granted", "user", r.User, "role", r.Role)
	if err != nil {
		return nil, err
	}
	return &pb.AuthUserGrantRoleResponse{Header: header}, nil
}

// UserRevokeRole takes a role from a user.
func (a *authService) UserRevokeRole(
	ctx context.Context, r *pb.AuthUserRevokeRoleRequest,
) (*pb.AuthUserRevokeRoleResponse, error) {
	c := &auth.Change{Kind: auth.UserRevokeRole, User: r.Name, Role: r.Role}
	header, err := a.change(ctx, c, "role revoked", "user", r.Name, "role", r.Role)
	if err != nil {
		return nil, err
	}
	return &pb.AuthUserRevokeRoleResponse{Header: header}, nil
}

// UserGet shows the roles of a user to root and to the user.
func (a *authService) UserGet(ctx context.Context, r *pb.AuthUserGetRequest) (*pb.AuthUserGetResponse, error) {
	state, err := a.state(ctx)
	if err != nil {
		return nil, err
	}
	if err := a.rootOr(ctx, func(user string) bool { return user == r.Name }); err != nil {
		return nil, err
	}
	user, ok := state.User(r.Name)
	if !ok {
		return nil, auth.ErrUserNotFound
	}
	return &pb.AuthUserGetResponse{Header: a.headerNow().Message(), Roles: user.Roles}, nil
}

// UserList lists all users.
func (a *authService) UserList(ctx context.Context, _ *pb.AuthUserListRequest) (*pb.AuthUserListResponse, error) {
	state, err := a.state(ctx)
	if err == nil {
		err = a.access.Root(ctx)
	}
	if err != nil {
		return nil, err
	}
	return &pb.AuthUserListResponse{Header: a.headerNow().Message(), Users: state.Users()}, nil
}

// rootOr permits a call to root, and to a user that may is true of.
func (a *authService) rootOr(ctx context.Context, may func(user string) bool) error {
	refused := a.access.Root(ctx)
	if refused == nil {
		return nil
	}
	by, err := a.access.Caller(ctx)
	if err != nil {
		return err
	}
	check := a.access.State().Check(by)
	if check.User() == nil && by.User != "" && may(by.User) {
		return nil
	}
	return refused
}
