package transport

import (
	"context"

	"github.com/quorate/quorate/internal/consensus"
)

// Hail finds out whether a member of this cluster listens at a peer URL.
func (t *Transport) Hail(ctx context.Context, id consensus.MemberID, url string) (Presence, error) {
	return Hail(ctx, t.options, t.options.Cluster, id, url)
}
