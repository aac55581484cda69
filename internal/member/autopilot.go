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
	return p.m.views.view(ctx)
}

func (p pilotPorts) FreshView(ctx context.Context) (membership.View, consensus.Term, error) {
	if p.m.Leader() != p.m.ID() {
		return membership.View{}, 0, ErrNotLeader
	}
	if err := p.m.ReadIndex(ctx); err != nil {
		return membership.View{}, 0, err
	}
	return p.m.views.view(ctx)
}

func (p pilotPorts) Jobs() []autopilot.Row { return p.m.members.jobs.rows() }

func (p pilotPorts) Write(ctx context.Context, w *autopilot.Write) error {
	result, err := p.m.Propose(ctx, &kv.Command{Job: JobOp(w)})
	if err != nil {
		return err
	}
	return result.Err
}

func (p pilotPorts) Change(ctx context.Context, request *consensus.ChangeRequest) error {
	return p.m.changer.propose(ctx, request)
}

func (p pilotPorts) Transfer(ctx context.Context, to consensus.MemberID) error {
	return p.m.TransferLeadership(ctx, to)
}

func (p pilotPorts) Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-p.m.stopping.Done():
		return ErrStopped
	}
}

func (p pilotPorts) Config() consensus.Config { return p.m.config.now() }

func (p pilotPorts) Started(id consensus.MemberID) bool { return p.m.config.started(id) }

func (p pilotPorts) Find(
	ctx context.Context, id consensus.MemberID, url string,
) (transport.Presence, error) {
	return p.m.peers.transport.Find(ctx, id, url)
}

func (p pilotPorts) Describe(ctx context.Context) (membership.View, error) {
	view, _, err := p.m.members.DescribeCluster(ctx)
	return view, err
}

// runJobs is the goroutine that takes the steps of jobs while this member leads.
func (m *Member) runJobs() error {
	runner := autopilot.NewRunner(pilotPorts{m}, m.addresses, m.options.Clock.Now, m.logger)
	timer := time.NewTimer(autopilot.JobPoll)
	defer timer.Stop()
	for {
		jobs, config, leader := m.members.JobsChanged(), m.members.ConfigChanged(), m.LeaderChanged()
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
	if !m.leads() {
		return 0, false
	}
	return runner.Turn(m.stopping)
}

const (
	// promoteScanInterval is how often a leader looks for learners that wait to be voters.
	promoteScanInterval = 100 * time.Millisecond
	// promotePatience bounds one attempt; the next scan tries again.
	promotePatience = 5 * time.Second
	// repairInterval is how often a leader looks after its voters, unless its clock is so fast that it is a long time.
	repairInterval = time.Second
)

// promoteLearners is the goroutine that, on the leader, makes voters of members that were added as such and have caught up,
// and does what else is due about members that come and go. It asks like everybody else, so that a refusal costs nothing and a
// new leader simply goes on.
func (m *Member) promoteLearners() error {
	var removed autopilot.RemovedSessions
	return lookEvery(m.stopping, promoteScanInterval, func() {
		if m.leads() {
			m.bindMet()
			m.promoteReady()
			m.retireRemoved(&removed)
		}
	})
}

func (m *Member) promoteReady() {
	config := m.config.now()
	if !autopilot.AwaitsPromotion(&config) {
		return
	}
	status := m.Status()
	ready := autopilot.Promotable(&config, &status, m.members.jobs.rows())
	promoted, err := autopilot.FirstAccepted(ready, func(id consensus.MemberID) error {
		ctx, cancel := context.WithTimeout(m.stopping, promotePatience)
		defer cancel()
		_, err := m.ChangeConfig(ctx, consensus.ChangeOne(consensus.ChangePromote, consensus.Member{ID: id}))
		return err
	})
	switch {
	case promoted == consensus.NoMember:
	case err == nil:
		m.logger.Info("promoted a caught-up member", "peer", promoted.String())
	case m.stopping.Err() == nil:
		m.logger.Warn("could not promote a member yet", "peer", promoted.String(), "err", err)
	}
}

// retireRemoved retires one session of a removed member, if there is one that nobody can need any more.
func (m *Member) retireRemoved(removed *autopilot.RemovedSessions) {
	machine, release := m.Machine()
	open := machine.Orphans()
	release()
	id, found := removed.Ripe(open, m.options.Clock.Now(), 3*m.electionTimeout())
	if !found {
		return
	}
	ctx, cancel := context.WithTimeout(m.stopping, promotePatience)
	defer cancel()
	command := kv.Command{SessionRetire: &kv.SessionRetireOp{Member: uint64(id.Member), Number: id.Number}}
	if _, err := m.Propose(ctx, &command); err != nil && m.stopping.Err() == nil {
		m.logger.Debug("could not retire a session of a removed member yet", "peer", id.Member.String(), "err", err)
	}
}

// repairVoters is the goroutine of autopilot.Repair.
func (m *Member) repairVoters() error {
	return lookEvery(m.stopping, min(repairInterval, 2*m.electionTimeout()), func() { m.members.repair.Look(m.stopping) })
}

// keepAddresses is the goroutine that puts addresses right: its own, after a restart at other peer URLs, and on the leader
// those that were not confirmed when they were changed.
func (m *Member) keepAddresses() error {
	told := len(m.options.PeerURLs) == 0 // the cluster knows where this member is
	return lookEvery(m.stopping, min(addressInterval, 2*m.electionTimeout()), func() {
		if m.leads() {
			m.members.requests.DropFormer(m.stopping)
		}
		if !told {
			told = m.members.announce(m.options.PeerURLs)
		}
	})
}

// dialled are members as the transport has to know them.
func dialled(members []consensus.Member) []consensus.Member {
	all := slices.Clone(members)
	for i := range all {
		all[i].PeerURLs = all[i].DialURLs()
	}
	return all
}
