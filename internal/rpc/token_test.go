package rpc_test

import (
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
)

// Ensure that only root makes, lists and ends join tokens, and that invalid requests are refused.
func TestTokens(t *testing.T) {
	_, root, alice, nobody := secured(t)
	ctx := waitContext(t)
	as := func(c *clientv3.Client) quoratepb.TokensClient {
		if _, err := c.AuthStatus(ctx); err != nil {
			t.Fatal(err)
		}
		return quoratepb.NewTokensClient(c.ActiveConnection())
	}
	hour := &quoratepb.CreateTokenRequest{TtlSeconds: 3600}
	for name, client := range map[string]*clientv3.Client{"alice": alice, "nobody": nobody} {
		if _, err := as(client).CreateToken(ctx, hour); err == nil {
			t.Errorf("%s made a token", name)
		}
		if _, err := as(client).ListTokens(ctx, &quoratepb.ListTokensRequest{}); err == nil {
			t.Errorf("%s saw the tokens", name)
		}
	}
	tokens := as(root)
	for _, wrong := range []*quoratepb.CreateTokenRequest{
		{}, {TtlSeconds: -1}, {TtlSeconds: 1 << 62}, {TtlSeconds: 31 * 86400}, {TtlSeconds: 1, Uses: 101},
	} {
		if _, err := tokens.CreateToken(ctx, wrong); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%v: %v", wrong, err)
		}
	}
	made, err := tokens.CreateToken(ctx, hour)
	if err != nil || made.NotNeeded || made.Info.Owner != "root" || made.Info.Uses != 1 || len(made.Token) != 41 {
		t.Fatalf("made %v, %v", made, err)
	}
	if left := time.Until(time.UnixMilli(made.Info.ExpiresUnixMillis)); left < 59*time.Minute || left > time.Hour {
		t.Errorf("it expires in %v", left)
	}
	listed, err := tokens.ListTokens(ctx, &quoratepb.ListTokensRequest{})
	if err != nil || len(listed.Tokens) != 1 || listed.Tokens[0].Id != made.Info.Id || listed.Tokens[0].Used != 0 {
		t.Errorf("listed %v, %v", listed, err)
	}
	end := &quoratepb.DeleteTokenRequest{Id: made.Info.Id}
	if _, err := tokens.DeleteToken(ctx, end); err != nil {
		t.Error(err)
	}
	if _, err := tokens.DeleteToken(ctx, end); status.Code(err) != codes.NotFound {
		t.Errorf("ended twice: %v", err)
	}
}
