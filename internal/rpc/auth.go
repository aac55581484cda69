package rpc

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// authService answers as a cluster does whose authentication was never enabled: the status says so, logging in and
// disabling fail or succeed as they do there, and whatever would make users or roles is refused in so many words.
// The refusals come from the embedded type's place, method by method, so that a new RPC does not go unnoticed.
type authService struct {
	pb.UnsafeAuthServer
	*shared
}

// errNoAuth is what every RPC answers that would change users, roles or permissions.
var errNoAuth = status.Error(codes.Unimplemented, "etcdserver: authentication is not supported by this server yet")

// AuthStatus says that authentication is disabled. Revision 1 is that of an auth store nobody wrote to.
func (a *authService) AuthStatus(context.Context, *pb.AuthStatusRequest) (*pb.AuthStatusResponse, error) {
	return &pb.AuthStatusResponse{Header: a.headerNow().Message(), Enabled: false, AuthRevision: 1}, nil
}

// AuthDisable does nothing, as there is nothing to disable.
func (a *authService) AuthDisable(context.Context, *pb.AuthDisableRequest) (*pb.AuthDisableResponse, error) {
	return &pb.AuthDisableResponse{Header: a.headerNow().Message()}, nil
}

// Authenticate fails: there is nothing to log in to.
func (a *authService) Authenticate(context.Context, *pb.AuthenticateRequest) (*pb.AuthenticateResponse, error) {
	return nil, rpctypes.ErrGRPCAuthNotEnabled
}

// UserList lists no users.
func (a *authService) UserList(context.Context, *pb.AuthUserListRequest) (*pb.AuthUserListResponse, error) {
	return &pb.AuthUserListResponse{Header: a.headerNow().Message()}, nil
}

// RoleList lists no roles.
func (a *authService) RoleList(context.Context, *pb.AuthRoleListRequest) (*pb.AuthRoleListResponse, error) {
	return &pb.AuthRoleListResponse{Header: a.headerNow().Message()}, nil
}

// UserGet finds no user.
func (a *authService) UserGet(context.Context, *pb.AuthUserGetRequest) (*pb.AuthUserGetResponse, error) {
	return nil, rpctypes.ErrGRPCUserNotFound
}

// RoleGet finds no role.
func (a *authService) RoleGet(context.Context, *pb.AuthRoleGetRequest) (*pb.AuthRoleGetResponse, error) {
	return nil, rpctypes.ErrGRPCRoleNotFound
}

// AuthEnable is refused.
func (a *authService) AuthEnable(context.Context, *pb.AuthEnableRequest) (*pb.AuthEnableResponse, error) {
	return nil, errNoAuth
}

// UserAdd is refused.
func (a *authService) UserAdd(context.Context, *pb.AuthUserAddRequest) (*pb.AuthUserAddResponse, error) {
	return nil, errNoAuth
}

// UserDelete finds no user.
func (a *authService) UserDelete(context.Context, *pb.AuthUserDeleteRequest) (*pb.AuthUserDeleteResponse, error) {
	return nil, rpctypes.ErrGRPCUserNotFound
}

// UserChangePassword finds no user.
func (a *authService) UserChangePassword(
	context.Context, *pb.AuthUserChangePasswordRequest,
) (*pb.AuthUserChangePasswordResponse, error) {
	return nil, rpctypes.ErrGRPCUserNotFound
}

// UserGrantRole finds no user.
func (a *authService) UserGrantRole(
	context.Context, *pb.AuthUserGrantRoleRequest,
) (*pb.AuthUserGrantRoleResponse, error) {
	return nil, rpctypes.ErrGRPCUserNotFound
}

// UserRevokeRole finds no user.
func (a *authService) UserRevokeRole(
	context.Context, *pb.AuthUserRevokeRoleRequest,
) (*pb.AuthUserRevokeRoleResponse, error) {
	return nil, rpctypes.ErrGRPCUserNotFound
}

// RoleAdd is refused.
func (a *authService) RoleAdd(context.Context, *pb.AuthRoleAddRequest) (*pb.AuthRoleAddResponse, error) {
	return nil, errNoAuth
}

// RoleDelete finds no role.
func (a *authService) RoleDelete(context.Context, *pb.AuthRoleDeleteRequest) (*pb.AuthRoleDeleteResponse, error) {
	return nil, rpctypes.ErrGRPCRoleNotFound
}

// RoleGrantPermission finds no role.
func (a *authService) RoleGrantPermission(
	context.Context, *pb.AuthRoleGrantPermissionRequest,
) (*pb.AuthRoleGrantPermissionResponse, error) {
	return nil, rpctypes.ErrGRPCRoleNotFound
}

// RoleRevokePermission finds no role.
func (a *authService) RoleRevokePermission(
	context.Context, *pb.AuthRoleRevokePermissionRequest,
) (*pb.AuthRoleRevokePermissionResponse, error) {
	return nil, rpctypes.ErrGRPCRoleNotFound
}
