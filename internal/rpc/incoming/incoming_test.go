package incoming_test

import (
	"context"
	"testing"

	"google.golang.org/grpc/metadata"

	"github.com/quorate/quorate/internal/rpc/incoming"
)

// Ensure that a field is found alike in a context of this package, in one derived from it, and in one of gRPC's, and that gRPC finds
// it, too.
func TestFirst(t *testing.T) {
	type other struct{}
	fields := metadata.MD{"token": {"a", "b"}, "empty": {}}
	ours := incoming.NewContext(context.WithValue(t.Context(), other{}, 7), fields)
	derived, cancel := context.WithCancel(ours)
	defer cancel()
	for name, ctx := range map[string]context.Context{
		"ours": ours, "derived": derived, "gRPC's": metadata.NewIncomingContext(t.Context(), metadata.MD{"Token": {"a", "b"}}),
	} {
		if got, found := incoming.First(ctx, "token"); got != "a" || !found {
			t.Errorf("%s: got %q, %t", name, got, found)
		}
		for _, absent := range []string{"empty", "none"} {
			if got, found := incoming.First(ctx, absent); got != "" || found {
				t.Errorf("%s: field %s is %q", name, absent, got)
			}
		}
		if got := metadata.ValueFromIncomingContext(ctx, "token"); len(got) != 2 || got[1] != "b" {
			t.Errorf("%s: gRPC finds %q", name, got)
		}
	}
	if ours.Value(other{}) != 7 {
		t.Error("a value below is lost")
	}
	if got, found := incoming.First(t.Context(), "token"); found {
		t.Errorf("no call: got %q", got)
	}
}
