package rpc

import (
	"context"
	"errors"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/auth/login"
	"github.com/quorate/quorate/internal/kv"
)

// authService is etcd's Auth service: logging in, and the management of users, roles and permissions.
//
// Passwords are hashed and compared before anything is proposed, after the caller has shown that it may ask at all. Neither a
// password nor a token reaches the log of a member or the replicated log.
//
// Invariants:
//  1. Only root changes or lists users and roles, while authentication is enabled. Others see themselves and their own roles.
//  2. Users and roles that are read here are as new as the changes that were acknowledged before the call.
type authService struct {
	pb.UnsafeAuthServer
	*shared
}

// change proposes a change and says in the log what was done.
func (a *authService) change(ctx context.Context, c *auth.Change, done string, what ...any) (*pb.ResponseHeader, error) {
	result, err := a.proposeUsers(ctx, &kv.Command{Auth: c})
	if err != nil {
		return nil, err
	}
	a.options.Logger.InfoContext(ctx, done, what...)
	if result.Revision == 0 {
		return a.headerNow().Message(), nil
	}
	return a.headerAt(result.Revision).Message(), nil
}

// state returns users and roles as of now.
func (a *authService) state(ctx context.Context) (*auth.State, error) {
	if err := a.readIndex(ctx); err != nil {
		return nil, err
	}
	return a.access.State(), nil
}

// AuthEnable makes every request from now on come in some user's name.
func (a *authService) AuthEnable(ctx context.Context, _ *pb.AuthEnableRequest) (*pb.AuthEnableResponse, error) {
	header, err := a.change(ctx, &auth.Change{Kind: auth.Enable, Secret: login.NewSecret()}, "authentication is enabled")
	if err != nil {
		return nil, err
	}
	return &pb.AuthEnableResponse{Header: header}, nil
}

// AuthDisable lets every caller do everything.
func (a *authService) AuthDisable(ctx context.Context, _ *pb.AuthDisableRequest) (*pb.AuthDisableResponse, error) {
	header, err := a.change(ctx, &auth.Change{Kind: auth.Disable}, "authentication is disabled")
	if err != nil {
		return nil, err
	}
	return &pb.AuthDisableResponse{Header: header}, nil
}

// AuthStatus tells every caller whether authentication is enabled.
func (a *authService) AuthStatus(ctx context.Context, _ *pb.AuthStatusRequest) (*pb.AuthStatusResponse, error) {
	state, err := a.state(ctx)
	if err != nil {
		return nil, err
	}
	return &pb.AuthStatusResponse{
		Header: a.headerNow().Message(), Enabled: state.Enabled(), AuthRevision: state.Revision(),
	}, nil
}

// Authenticate gives a token to a caller that knows a user's password.
func (a *authService) Authenticate(ctx context.Context, r *pb.AuthenticateRequest) (*pb.AuthenticateResponse, error) {
	state, err := a.state(ctx)
	if err != nil {
		return nil, err
	}
	token, err := a.options.Login.Login(ctx, state, r.Name, r.Password)
	if errors.Is(err, login.ErrNoSecret) {
		// The cluster was restored from a backup, which has no secret. Only who knows a password comes so far.
		secret := &kv.Command{Auth: &auth.Change{Kind: auth.Enable, Secret: login.NewSecret()}}
		if _, err := a.replicate(ctx, secret); err != nil {
			return nil, err
		}
		token, err = a.options.Login.Login(ctx, a.access.State(), r.Name, r.Password)
	}
	if err != nil {
		return nil, err
	}
	return &pb.AuthenticateResponse{Header: a.headerNow().Message(), Token: token}, nil
}
