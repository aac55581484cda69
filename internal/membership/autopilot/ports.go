package autopilot

import (
	"context"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/transport"
)

// Cluster is the cluster as the member sees and changes it that leads. Elsewhere View and FreshView fail.
type Cluster interface {
	// View returns what the leader knows, and the term in which it leads.
	View(ctx context.Context) (membership.View, consensus.Term, error)
	// FreshView is a View after which Jobs shows everything that was acknowledged before the call.
	FreshView(ctx context.Context) (membership.View, consensus.Term, error)
	// Jobs returns the rows that are applied here, oldest first.
	Jobs() []Row
	// Write replaces a row. kv.ErrJobExists and kv.ErrJobConflict say that nothing was written.
	Write(ctx context.Context, w *Write) error
	// Change proposes a change of the configuration. A *membership.RefusedError says that it does not happen.
	Change(ctx context.Context, request *consensus.ChangeRequest) error
	// Transfer hands leadership to another voter and returns once it leads.
	Transfer(ctx context.Context, to consensus.MemberID) error
	// Sleep returns after d, or fails if ctx or the member ends before.
	Sleep(ctx context.Context, d time.Duration) error
}

// Finder looks for members. Any member has one.
type Finder interface {
	// Self is the member that looks.
	Self() consensus.MemberID
	// Config is the configuration that is applied here.
	Config() consensus.Config
	// Started reports whether a member has been up once, as far as is applied here.
	Started(id consensus.MemberID) bool
	// Find looks for a member at one peer URL. The error says more about transport.Unsure.
	Find(ctx context.Context, id consensus.MemberID, url string) (transport.Presence, error)
	// Describe returns the leader's View, wherever the leader is.
	Describe(ctx context.Context) (membership.View, error)
}
