package member

import (
	"context"
	"time"

	"github.com/quorate/quorate/internal/base/broadcast"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/membership/autopilot"
	"github.com/quorate/quorate/internal/transport"
)

// pilotPorts implement the ports of package autopilot for a Membership: its Cluster and its Finder.
type pilotPorts struct{ s *Membership }

func (p pilotPorts) View(ctx context.Context) (membership.View, consensus.Term, error) {
	return p.s.views.view(ctx)
}

func (p pilotPorts) FreshView(ctx context.Context) (membership.View, consensus.Term, error) {
	if !p.s.ports.leader.Leads() {
		return membership.View{}, 0, ErrNotLeader
	}
	if err := p.s.ports.requests.readIndex(ctx); err != nil {
		return membership.View{}, 0, err
	}
	return p.s.views.view(ctx)
}

func (p pilotPorts) Jobs() []autopilot.Row { return p.s.jobs.rows() }

func (p pilotPorts) Write(ctx context.Context, w *autopilot.Write) error {
	result, err := p.s.ports.requests.command(ctx, &kv.Command{Job: JobOp(w)})
	if err != nil {
		return err
	}
	return result.Err
}

func (p pilotPorts) Change(ctx context.Context, request *consensus.ChangeRequest) error {
	return p.s.changer.propose(ctx, request, request.Expected == consensus.ConfigID{})
}

func (p pilotPorts) Transfer(ctx context.Context, to consensus.MemberID) error {
	return p.s.transfer.to(ctx, to)
}

func (p pilotPorts) Sleep(ctx context.Context, d time.Duration) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.s.ports.stopping, func() { cancel(ErrStopped) })()
	return broadcast.Pause(ctx, d)
}

func (p pilotPorts) Self() consensus.MemberID { return p.s.own.Member }

func (p pilotPorts) Config() consensus.Config { return p.s.ports.config.now() }

func (p pilotPorts) Started(id consensus.MemberID) bool { return p.s.ports.config.started(id) }

func (p pilotPorts) Find(
	ctx context.Context, id consensus.MemberID, url string,
) (transport.Presence, error) {
	return p.s.ports.peers.transport.Find(ctx, id, url)
}

func (p pilotPorts) Describe(ctx context.Context) (membership.View, error) {
	view, _, err := p.s.DescribeCluster(ctx)
	return view, err
}
