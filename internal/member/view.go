package member

import (
	"context"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/limits/memory"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/membership"
)

// leaderView returns the leader's view of the cluster.
type leaderView struct {
	awaitStart func(ctx context.Context) error
	status     func() raft.Status
	stores     *datadir.Stores
	clock      env.Clock
	options    ViewOptions // without Now
	stopping   context.Context
}

// view is this member's view of its cluster, if it leads it, and its term; else the error is ErrNotLeader. A deposed leader
// that does not know it yet answers too, for an election timeout at most: a change that is based on a view must name the
// configuration that it expects.
func (l *leaderView) view(ctx context.Context) (membership.View, consensus.Term, error) {
	if err := l.awaitStart(ctx); err != nil {
		return membership.View{}, 0, err
	}
	status := l.status()
	switch {
	case l.stopping.Err() != nil:
		return membership.View{}, 0, ErrStopped
	case status.Role != raft.Leader:
		return membership.View{}, 0, ErrNotLeader
	}
	machine, release := l.stores.Machine()
	defer release()
	o := l.options
	o.Now = l.clock.Now()
	return ViewOf(&status, machine, &o), status.Term, nil
}

// ViewOptions are the parts of a View that neither core nor state machine has.
type ViewOptions struct {
	MaxLearners int
	Strict      bool
	Tick        time.Duration
	Now         time.Time
	// Trouble says in two words why a member is refused here; empty: it is not. Transfer is the progress of a snapshot to a
	// member, or nil.
	Trouble  func(id consensus.MemberID) string
	Transfer func(id consensus.MemberID) *membership.TransferView
}

// ViewOf joins the state of a leader's core with that of its state machine.
func ViewOf(status *raft.Status, machine *apply.Machine, o *ViewOptions) membership.View {
	// The state machine may not have applied yet the configuration that the core calls settled: then tombstones would be
	// missing, and the next change would be refused.
	settled := status.ConfigSettled && machine.Settled() && machine.Applied().Index >= status.ConfigID.Index
	v := membership.View{
		Leader: status.ID, Config: status.Config, ID: status.ConfigID, Protocol: status.Protocol,
		Settled: settled, Undecided: !status.ConfigCommitted, TermStarted: status.TermStarted, Last: status.LastIndex,
		MaxLearners: o.MaxLearners, Strict: o.Strict, Now: o.Now.UnixMilli(),
		Level: machine.ActiveLevel(), NeedsMemory: memory.Needed(machine.LeaseBytes()),
	}
	for i := range status.Config.Members {
		v.Members = append(v.Members, o.memberView(status, machine, &status.Config.Members[i]))
	}
	for _, tomb := range machine.Tombstones() {
		v.Tombstones = append(v.Tombstones, tomb.Member)
	}
	return v
}

func (o *ViewOptions) memberView(
	status *raft.Status, machine *apply.Machine, member *consensus.Member,
) membership.MemberView {
	v := membership.MemberView{ID: member.ID, Name: member.Name, PeerURLs: member.PeerURLs}
	if published, started := machine.Published(member.ID); started {
		v.Started, v.ClientURLs, v.Version, v.Zone = true, published.ClientURLs, published.Version, published.Zone
		v.Build, v.Level = published.Build, published.Level
		if published.Name != "" {
			v.Name = published.Name
		}
	}
	if member.ID == status.ID {
		v.Active, v.CaughtUp, v.Match = true, true, status.LastIndex
		return v
	}
	at := slices.IndexFunc(status.Progress, func(p raft.PeerProgress) bool { return p.ID == member.ID })
	if at < 0 {
		return v
	}
	p := &status.Progress[at]
	v.Active, v.CaughtUp, v.Match, v.State = p.RecentActive, p.CaughtUp, p.Match, p.State
	if !p.RecentActive {
		v.SilentMS = int64(time.Duration(p.HeardTicks) * o.Tick / time.Millisecond)
	}
	if trouble := o.Trouble(member.ID); trouble != "" {
		v.Active, v.CaughtUp, v.State = false, false, trouble
	}
	if slices.Contains(status.Spared, member.ID) {
		v.State = membership.MarkedCorrupt
	}
	v.Snapshot = o.Transfer(member.ID)
	return v
}
