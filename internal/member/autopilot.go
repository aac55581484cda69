package member

import (
	"context"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/autopilot"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/transport"
)

// pilotPorts are what package autopilot sees of a member: its Cluster and its Finder.
type pilotPorts struct{ m *Member }

func (p pilotPorts) View(ctx context.Context) (membership.View, consensus.Term, error) {
	return p.m.viewInTerm(ctx)
}

func (p pilotPorts) FreshView(ctx context.Context) (membership.View, consensus.Term, error) {
	if p.m.Leader() != p.m.ID() {
		return membership.View{}, 0, ErrNotLeader
	}
	if err := p.m.ReadIndex(ctx); err != nil {
		return membership.View{}, 0, err
	}
	return p.m.viewInTerm(ctx)
}

func (p pilotPorts) Jobs() []autopilot.Row { return p.m.jobRows() }

func (p pilotPorts) Write(ctx context.Context, w *autopilot.Write) error {
	op := &kv.JobOp{ID: uint64(w.Job.ID), Version: w.Version, Body: w.Job.Encode()}
	for _, id := range w.Forget {
		op.Prune = append(op.Prune, uint64(id))
	}
	result, err := p.m.Propose(ctx, &kv.Command{Job: op})
	if err != nil {
		return err
	}
	return result.Err
}

func (p pilotPorts) Change(ctx context.Context, request *consensus.ChangeRequest) error {
	return p.m.proposeChange(ctx, request)
}

func (p pilotPorts) Transfer(ctx context.Context, to consensus.MemberID) error {
	return p.m.TransferLeadership(ctx, to)
}

func (p pilotPorts) Sleep(ctx context.Context, d time.Duration) error {
	timer := timers.get(d)
	defer timers.put(timer)
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-p.m.stopping.Done():
		return ErrStopped
	}
}

func (p pilotPorts) Config() consensus.Config { return p.m.configNow() }

func (p pilotPorts) Started(id consensus.MemberID) bool {
	machine, release := p.m.Machine()
	defer release()
	_, started := machine.Published(id)
	return started
}

func (p pilotPorts) Find(
	ctx context.Context, id consensus.MemberID, url string,
) (transport.Presence, error) {
	return p.m.transport.Hail(ctx, id, url)
}

func (p pilotPorts) Describe(ctx context.Context) (membership.View, error) {
	view, _, err := p.m.DescribeCluster(ctx)
	return view, err
}

// runJobs is the goroutine that takes the steps of jobs while this member leads.
func (m *Member) runJobs() error {
	runner := autopilot.NewRunner(pilotPorts{m}, m.addresses, m.options.Clock, m.logger)
	timer := time.NewTimer(autopilot.JobPoll)
	defer timer.Stop()
	for {
		jobs, config, leader := m.JobsChanged(), m.ConfigChanged(), m.LeaderChanged()
		var poll <-chan time.Time
		if pause, busy := m.runJob(runner); busy {
			timer.Reset(pause)
			poll = timer.C
		}
		select {
		case <-jobs:
		case <-config:
		case <-leader:
		case <-poll:
		case <-m.stopping.Done():
			return nil
		}
	}
}

func (m *Member) runJob(runner *autopilot.Runner) (pause time.Duration, busy bool) {
	if m.Leader() != m.ID() {
		return 0, false
	}
	ctx, cancel := context.WithTimeout(m.stopping, jobPatience)
	defer cancel()
	return runner.Turn(ctx)
}

// dialled are members as the transport has to know them.
func dialled(members []consensus.Member) []consensus.Member {
	all := slices.Clone(members)
	for i := range all {
		all[i].PeerURLs = all[i].DialURLs()
	}
	return all
}
