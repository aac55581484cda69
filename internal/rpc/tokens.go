package rpc

import (
	"context"
	"crypto/rand"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/kv"
)

// maxTokenTTL is how long a token may live: a person who finds an old one could add members.
const maxTokenTTL = 30 * 24 * time.Hour

// tokenService is the native Tokens service: making, listing and deleting join tokens. Package auth says what a token is, and
// what becomes of one that is shown; package member, at the leader, decides which process must show one.
//
// Invariants:
//  1. The secret of a token is in one answer, to the caller that made it. It is not in the replicated log, and in no log of a
//     member.
//  2. Only root makes, lists or deletes tokens while authentication is enabled: the gate asks, and the state machine again.
//  3. A list is as new as the changes that were acknowledged before the call.
type tokenService struct {
	quoratepb.UnsafeTokensServer
	*shared
}

// CreateToken makes a token.
func (t *tokenService) CreateToken(
	ctx context.Context, r *quoratepb.CreateTokenRequest,
) (*quoratepb.CreateTokenResponse, error) {
	ttl := time.Duration(r.GetTtlSeconds()) * time.Second
	uses := max(r.GetUses(), 1)
	switch {
	case r.GetTtlSeconds() < 1 || r.GetTtlSeconds() > int64(maxTokenTTL/time.Second):
		return nil, status.Errorf(codes.InvalidArgument, "a join token lives for 1 to %d seconds, not %d",
			int64(maxTokenTTL/time.Second), r.GetTtlSeconds())
	case uses > auth.MaxTokenUses:
		return nil, status.Errorf(codes.InvalidArgument, "a join token admits 1 to %d members, not %d", auth.MaxTokenUses, uses)
	}
	by, err := t.access.Caller(ctx)
	if err != nil {
		return nil, err
	}
	token, text := auth.NewToken(func(b []byte) { _, _ = rand.Read(b) }) // which does not fail
	now := t.options.Clock.Now()
	token.Expires, token.Uses, token.Owner = now.Add(ttl).UnixMilli(), int(uses), by.User
	if err := t.change(ctx, auth.JoinTokenAdd, &token, "join token created"); err != nil {
		return nil, err
	}
	return &quoratepb.CreateTokenResponse{
		Token: text, Info: tokenMessage(&token), NotNeeded: !t.access.State().Enabled(),
	}, nil
}

// ListTokens returns the tokens that have not expired.
func (t *tokenService) ListTokens(ctx context.Context, _ *quoratepb.ListTokensRequest) (*quoratepb.ListTokensResponse, error) {
	if err := t.readIndex(ctx); err != nil {
		return nil, err
	}
	answer := new(quoratepb.ListTokensResponse)
	for _, token := range t.access.State().JoinTokens(t.options.Clock.Now().UnixMilli()) {
		answer.Tokens = append(answer.Tokens, tokenMessage(token))
	}
	return answer, nil
}

// DeleteToken ends a token.
func (t *tokenService) DeleteToken(
	ctx context.Context, r *quoratepb.DeleteTokenRequest,
) (*quoratepb.DeleteTokenResponse, error) {
	token := &auth.JoinToken{ID: r.GetId()}
	if err := t.change(ctx, auth.JoinTokenDelete, token, "join token deleted"); err != nil {
		return nil, err
	}
	return new(quoratepb.DeleteTokenResponse), nil
}

// change proposes a change and says in the log what was done.
func (t *tokenService) change(ctx context.Context, kind auth.Kind, token *auth.JoinToken, done string) error {
	change := &auth.Change{Kind: kind, Token: token, Now: t.options.Clock.Now().UnixMilli()}
	if _, err := t.proposeUsers(ctx, &kv.Command{Auth: change}); err != nil {
		return err
	}
	t.options.Logger.InfoContext(ctx, done, "token", token.ID, "user", token.Owner)
	return nil
}

func tokenMessage(t *auth.JoinToken) *quoratepb.JoinToken {
	return &quoratepb.JoinToken{
		Id: t.ID, ExpiresUnixMillis: t.Expires, Uses: uint32(t.Uses), Used: uint32(len(t.UsedBy)), Owner: t.Owner,
	}
}
