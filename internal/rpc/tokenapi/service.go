package tokenapi

import (
	"context"
	"crypto/rand"
	"log/slog"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/kv"
)

// maxTTL is how long a token may live: a person who finds an old one could add members.
const maxTTL = 30 * 24 * time.Hour

// Control is what the service asks about users: *access.Control.
type Control interface {
	State() *auth.State
	Caller(ctx context.Context) (auth.Credentials, error)
}

// Options of New.
type Options struct {
	Control Control
	Propose func(ctx context.Context, command *kv.Command) (kv.Result, error)
	CatchUp func(ctx context.Context) error
	Clock   env.Clock
	Logger  *slog.Logger
}

// Service is the native Tokens service.
type Service struct {
	quoratepb.UnsafeTokensServer
	options Options
}

// New makes the service.
func New(options Options) *Service { return &Service{options: options} }

// CreateToken makes a token.
func (s *Service) CreateToken(
	ctx context.Context, r *quoratepb.CreateTokenRequest,
) (*quoratepb.CreateTokenResponse, error) {
	ttl := time.Duration(r.GetTtlSeconds()) * time.Second
	uses := max(r.GetUses(), 1)
	switch {
	case r.GetTtlSeconds() < 1 || r.GetTtlSeconds() > int64(maxTTL/time.Second):
		return nil, status.Errorf(codes.InvalidArgument, "a join token lives for 1 to %d seconds, not %d",
			int64(maxTTL/time.Second), r.GetTtlSeconds())
	case uses > auth.MaxTokenUses:
		return nil, status.Errorf(codes.InvalidArgument, "a join token admits 1 to %d members, not %d", auth.MaxTokenUses, uses)
	}
	by, err := s.options.Control.Caller(ctx)
	if err != nil {
		return nil, err
	}
	token, text := auth.NewToken(func(b []byte) { _, _ = rand.Read(b) }) // which does not fail
	now := s.options.Clock.Now()
	token.Expires, token.Uses, token.Owner = now.Add(ttl).UnixMilli(), int(uses), by.User
	if err := s.change(ctx, auth.JoinTokenAdd, &token, "join token created"); err != nil {
		return nil, err
	}
	return &quoratepb.CreateTokenResponse{
		Token: text, Info: message(&token), NotNeeded: !s.options.Control.State().Enabled(),
	}, nil
}

// ListTokens returns the tokens that have not expired.
func (s *Service) ListTokens(ctx context.Context, _ *quoratepb.ListTokensRequest) (*quoratepb.ListTokensResponse, error) {
	if err := s.options.CatchUp(ctx); err != nil {
		return nil, err
	}
	answer := new(quoratepb.ListTokensResponse)
	for _, token := range s.options.Control.State().JoinTokens(s.options.Clock.Now().UnixMilli()) {
		answer.Tokens = append(answer.Tokens, message(token))
	}
	return answer, nil
}

// DeleteToken ends a token.
func (s *Service) DeleteToken(
	ctx context.Context, r *quoratepb.DeleteTokenRequest,
) (*quoratepb.DeleteTokenResponse, error) {
	token := &auth.JoinToken{ID: r.GetId()}
	if err := s.change(ctx, auth.JoinTokenDelete, token, "join token deleted"); err != nil {
		return nil, err
	}
	return new(quoratepb.DeleteTokenResponse), nil
}

// change proposes a change and says in the log what was done.
func (s *Service) change(ctx context.Context, kind auth.Kind, token *auth.JoinToken, done string) error {
	change := &auth.Change{Kind: kind, Token: token, Now: s.options.Clock.Now().UnixMilli()}
	if _, err := s.options.Propose(ctx, &kv.Command{Auth: change}); err != nil {
		return err
	}
	s.options.Logger.InfoContext(ctx, done, "token", token.ID, "user", token.Owner)
	return nil
}

func message(t *auth.JoinToken) *quoratepb.JoinToken {
	return &quoratepb.JoinToken{
		Id: t.ID, ExpiresUnixMillis: t.Expires, Uses: uint32(t.Uses), Used: uint32(len(t.UsedBy)), Owner: t.Owner,
	}
}
