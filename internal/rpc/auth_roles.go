package rpc

import (
	"context"

	"go.etcd.io/etcd/api/v3/authpb"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/quorate/quorate/internal/auth"
)

// RoleAdd adds a role that permits nothing yet.
func (a *authService) RoleAdd(ctx context.Context, r *pb.AuthRoleAddRequest) (*pb.AuthRoleAddResponse, error) {
	header, err := a.change(ctx, &auth.Change{Kind: auth.RoleAdd, Role: r.Name}, "role added", "role", r.Name)
	if err != nil {
		return nil, err
	}
	return &pb.AuthRoleAddResponse{Header: header}, nil
}

// RoleDelete deletes a role, and takes it from all users.
func (a *authService) RoleDelete(ctx context.Context, r *pb.AuthRoleDeleteRequest) (*pb.AuthRoleDeleteResponse, error) {
	header, err := a.change(ctx, &auth.Change{Kind: auth.RoleDelete, Role: r.Role}, "role deleted", "role", r.Role)
	if err != nil {
		return nil, err
	}
	return &pb.AuthRoleDeleteResponse{Header: header}, nil
}

// RoleGrantPermission lets a role read or write a range.
func (a *authService) RoleGrantPermission(
	ctx context.Context, r *pb.AuthRoleGrantPermissionRequest,
) (*pb.AuthRoleGrantPermissionResponse, error) {
	if r.Perm == nil {
		return nil, auth.ErrPermissionNotGiven
	}
	if r.Perm.PermType < authpb.READ || r.Perm.PermType > authpb.READWRITE {
		return nil, auth.ErrInvalidManagement
	}
	c := &auth.Change{Kind: auth.GrantPermission, Role: r.Name, Permission: auth.Permission{
		Access: auth.Access(r.Perm.PermType), Key: r.Perm.Key, End: r.Perm.RangeEnd,
	}}
	header, err := a.change(ctx, c, "permission granted", "role", r.Name, "permission", r.Perm.PermType.String())
	if err != nil {
		return nil, err
	}
	return &pb.AuthRoleGrantPermissionResponse{Header: header}, nil
}

// RoleRevokePermission takes a range from a role.
func (a *authService) RoleRevokePermission(
	ctx context.Context, r *pb.AuthRoleRevokePermissionRequest,
) (*pb.AuthRoleRevokePermissionResponse, error) {
	c := &auth.Change{Kind: auth.RevokePermission, Role: r.Role,
		Permission: auth.Permission{Key: r.Key, End: r.RangeEnd}}
	header, err := a.change(ctx, c, "permission revoked", "role", r.Role)
	if err != nil {
		return nil, err
	}
	return &pb.AuthRoleRevokePermissionResponse{Header: header}, nil
}

// RoleGet shows the permissions of a role to root and to the users that have it. Of the role root it shows all keys, as in
// etcd.
func (a *authService) RoleGet(ctx context.Context, r *pb.AuthRoleGetRequest) (*pb.AuthRoleGetResponse, error) {
	state, err := a.state(ctx)
	if err != nil {
		return nil, err
	}
	if err := a.rootOr(ctx, func(user string) bool { return state.HasRole(user, r.Role) }); err != nil {
		return nil, err
	}
	role, ok := state.Role(r.Role)
	if !ok {
		return nil, auth.ErrRoleNotFound
	}
	response := &pb.AuthRoleGetResponse{Header: a.headerNow().Message(), Perm: role.Message().KeyPermission}
	if r.Role == auth.RootRole {
		response.Perm = []*authpb.Permission{{PermType: authpb.READWRITE, RangeEnd: []byte{0}}}
	}
	return response, nil
}

// RoleList lists all roles.
func (a *authService) RoleList(ctx context.Context, _ *pb.AuthRoleListRequest) (*pb.AuthRoleListResponse, error) {
	state, err := a.state(ctx)
	if err == nil {
		err = a.access.Root(ctx)
	}
	if err != nil {
		return nil, err
	}
	return &pb.AuthRoleListResponse{Header: a.headerNow().Message(), Roles: state.Roles()}, nil
}
