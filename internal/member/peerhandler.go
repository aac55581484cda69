package member

import (
	"context"
	"io"
	"log/slog"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/epoch"
	"github.com/quorate/quorate/internal/member/lanes"
	"github.com/quorate/quorate/internal/member/peercall"
	"github.com/quorate/quorate/internal/member/snapshots"
	"github.com/quorate/quorate/internal/transport"
)

// PeerHandler is the handler of the member's transport: it handles the messages, calls and snapshots of other processes.
type PeerHandler struct {
	inbox    *lanes.Inbox
	epochs   *epoch.Monitor
	received *snapshots.Receiver
	calls    *peercall.Table
	greeter  *greeter
	data     *datadir.Data
	life     *lifecycle
	logger   *slog.Logger
	refused  sync.Once // the first refusal by a peer that this member obeys
}

var _ transport.Handler = (*PeerHandler)(nil)

// Receive takes messages from another member. It blocks while too many messages of that member wait. All senders outside the
// configuration count as one, because one process can give itself many ids.
func (h *PeerHandler) Receive(messages []consensus.Message) {
	if messages = h.epochs.State().Admit(messages); len(messages) == 0 {
		return
	}
	from := messages[0].From
	if config := h.greeter.config.now(); !config.Contains(from) {
		from = consensus.NoMember
	}
	h.inbox.PutPaced(from, messages)
}

// admit queues for the core the messages that a member in this state may handle, and returns their number. It does not block:
// only the loop makes room, and messages of the loop to itself come this way.
func (h *PeerHandler) admit(messages []consensus.Message) int {
	messages = h.epochs.State().Admit(messages)
	h.inbox.PutMessages(messages)
	return len(messages)
}

// PeerLost reports to the core that a connection broke: evidence that the peer died.
func (h *PeerHandler) PeerLost(peer consensus.MemberID) { h.inbox.Put(raft.Unreachable{Member: peer}) }

// ReceiveSnapshot verifies and keeps a snapshot that the leader streams.
func (h *PeerHandler) ReceiveSnapshot(from consensus.MemberID, meta consensus.SnapshotMeta, r io.Reader) error {
	return h.received.Receive(from, meta, r)
}

// Call answers a call of another process.
func (h *PeerHandler) Call(ctx context.Context, method string, body []byte) ([]byte, error) {
	switch method {
	case MethodGreet:
		return h.greeter.greet(ctx)
	case methodJoin.Name:
		if transport.CallerClaim(ctx).Cluster == 0 {
			return nil, status.Error(codes.FailedPrecondition, (&identity.Refusal{Reason: identity.Anonymous,
				Text: "a process that joins must name the cluster: join with --join"}).Error())
		}
	}
	answer, known, err := h.calls.Answer(ctx, method, body)
	if !known {
		return nil, status.Errorf(codes.Unimplemented, "member: unknown request %q: is this member older?", method)
	}
	return answer, err
}

// Refused handles the refusal of this member by a peer, and reports whether the member obeys: then it stops for good.
func (h *PeerHandler) Refused(by consensus.MemberID, refusal *identity.Refusal) (obeys bool) {
	own, applied := claimOf(h.data), h.greeter.config.now()
	own.Storage = h.data.Identity.Storage
	if !identity.Obey(refusal.Reason, &own, &applied, identity.Rules{}) {
		return false
	}
	h.refused.Do(func() {
		lost := &datadir.LostError{
			Reason: refusal.Reason, Text: "member " + h.greeter.config.nameOf(by) + " refused this member: " + refusal.Text,
		}
		// Of two processes on copies of one directory, this one may be the original: a cloned directory is not marked as lost.
		if refusal.Reason != identity.Cloned {
			if err := h.data.MarkLost(lost); err != nil {
				h.logger.Error("could not mark the data directory", "err", err)
			}
		}
		h.life.fail(lost)
	})
	return true
}
