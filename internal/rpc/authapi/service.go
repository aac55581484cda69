package authapi

import (
	"context"
	"errors"
	"log/slog"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/auth/login"
	"github.com/quorate/quorate/internal/kv"
)

// Control is what the service asks about its callers: *access.Control.
type Control interface {
	State() *auth.State
	Root(ctx context.Context) error
	Caller(ctx context.Context) (auth.Credentials, error)
}

// Login knows passwords: *login.Login.
type Login interface {
	Hash(ctx context.Context, password string) ([]byte, error)
	Login(ctx context.Context, state *auth.State, user, password string) (token string, err error)
}

// Options of New.
type Options struct {
	Control Control
	Login   Login
	Propose func(ctx context.Context, command *kv.Command) (kv.Result, error)
	// Replicate is Propose in no user's name.
	Replicate func(ctx context.Context, command *kv.Command) (kv.Result, error)
	CatchUp   func(ctx context.Context) error
	// Header is that of an answer at a revision of the store; zero: now.
	Header func(revision kv.Revision) *pb.ResponseHeader
	Logger *slog.Logger
}

// Service is etcd's Auth service.
type Service struct {
	pb.UnsafeAuthServer
	options Options
}

// New makes the service.
func New(options Options) *Service { return &Service{options: options} }

// change proposes a change and says in the log what was done.
func (s *Service) change(ctx context.Context, c *auth.Change, done string, what ...any) (*pb.ResponseHeader, error) {
	result, err := s.options.Propose(ctx, &kv.Command{Auth: c})
	if err != nil {
		return nil, err
	}
	s.options.Logger.InfoContext(ctx, done, what...)
	return s.options.Header(result.Revision), nil
}

// state returns users and roles as of now.
func (s *Service) state(ctx context.Context) (*auth.State, error) {
	if err := s.options.CatchUp(ctx); err != nil {
		return nil, err
	}
	return s.options.Control.State(), nil
}

// AuthEnable makes every request from now on come in some user's name.
func (s *Service) AuthEnable(ctx context.Context, _ *pb.AuthEnableRequest) (*pb.AuthEnableResponse, error) {
	header, err := s.change(ctx, &auth.Change{Kind: auth.Enable, Secret: login.NewSecret()}, "authentication is enabled")
	if err != nil {
		return nil, err
	}
	return &pb.AuthEnableResponse{Header: header}, nil
}

// AuthDisable lets every caller do everything.
func (s *Service) AuthDisable(ctx context.Context, _ *pb.AuthDisableRequest) (*pb.AuthDisableResponse, error) {
	header, err := s.change(ctx, &auth.Change{Kind: auth.Disable}, "authentication is disabled")
	if err != nil {
		return nil, err
	}
	return &pb.AuthDisableResponse{Header: header}, nil
}

// AuthStatus tells every caller whether authentication is enabled.
func (s *Service) AuthStatus(ctx context.Context, _ *pb.AuthStatusRequest) (*pb.AuthStatusResponse, error) {
	state, err := s.state(ctx)
	if err != nil {
		return nil, err
	}
	return &pb.AuthStatusResponse{
		Header: s.options.Header(0), Enabled: state.Enabled(), AuthRevision: state.Revision(),
	}, nil
}

// Authenticate gives a token to a caller that knows a user's password.
func (s *Service) Authenticate(ctx context.Context, r *pb.AuthenticateRequest) (*pb.AuthenticateResponse, error) {
	state, err := s.state(ctx)
	if err != nil {
		return nil, err
	}
	token, err := s.options.Login.Login(ctx, state, r.Name, r.Password)
	if errors.Is(err, login.ErrNoSecret) {
		// The cluster was restored from a backup, which has no secret. Only who knows a password comes so far.
		secret := &kv.Command{Auth: &auth.Change{Kind: auth.Enable, Secret: login.NewSecret()}}
		if _, err := s.options.Replicate(ctx, secret); err != nil {
			return nil, err
		}
		token, err = s.options.Login.Login(ctx, s.options.Control.State(), r.Name, r.Password)
	}
	if err != nil {
		return nil, err
	}
	return &pb.AuthenticateResponse{Header: s.options.Header(0), Token: token}, nil
}
