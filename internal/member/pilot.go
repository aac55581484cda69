package member

import (
	"context"
	"log/slog"
	"time"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/moments"
	"github.com/quorate/quorate/internal/member/shipping"
	"github.com/quorate/quorate/internal/membership/autopilot"
)

// pilot runs the decisions of package autopilot, in one goroutine for each duty. Only the leader acts, except in keepAddresses:
// every member announces its own URLs, looks for strays, and drops addresses that the configuration has outlived.
type pilot struct {
	members *Membership
	ports   membershipPorts // those of members
	binder  *binder
	clock   env.Clock
	logger  *slog.Logger

	electionTimeout time.Duration
	peerURLs        []string // peer URLs that this start was given for this member
	told            *toldAddresses
	teller          moments.Teller     // of the goroutine of promoteLearners
	appointer       shipping.Appointer // of the goroutine that calls promoteLearners
	prover          shipping.Prover    // likewise
}

// runJobs is the goroutine that takes the steps of jobs while this member leads.
func (p *pilot) runJobs(ctx context.Context) error {
	runner := autopilot.NewRunner(pilotPorts{p.members}, p.members.addresses, p.clock.Now, p.logger)
	timer := time.NewTimer(autopilot.JobPoll)
	defer timer.Stop()
	for {
		jobs, config, leader := p.members.JobsChanged(), p.members.ConfigChanged(), p.ports.leader.LeaderChanged()
		var poll <-chan time.Time
		if pause, busy := p.runJob(ctx, runner); busy {
			timer.Reset(pause)
			poll = timer.C
		}
		select {
		case <-jobs:
		case <-config:
		case <-leader:
		case <-poll:
		case <-ctx.Done():
			return nil
		}
	}
}

func (p *pilot) runJob(ctx context.Context, runner *autopilot.Runner) (pause time.Duration, busy bool) {
	if !p.ports.leader.Leads() {
		return 0, false
	}
	return runner.Turn(ctx)
}

const (
	// promoteScanInterval is how often a leader looks for learners to promote.
	promoteScanInterval = 100 * time.Millisecond
	// promotePatience bounds one attempt; the next scan tries again.
	promotePatience = 5 * time.Second
	// repairInterval is how often a leader checks its voters, unless two election timeouts are shorter.
	repairInterval = time.Second
)

// promoteLearners is the goroutine that, on the leader, promotes learners that were added to become voters and have caught up.
// It also binds newcomers, raises the feature level, notes the time, appoints the member that ships a backup, and retires
// sessions of removed members. Its requests are ordinary ones, so that a refusal does no harm and a new leader simply goes on.
func (p *pilot) promoteLearners(ctx context.Context) error {
	var removed autopilot.RemovedSessions
	return lookEvery(ctx, promoteScanInterval, func() {
		if !p.ports.leader.Leads() {
			p.ports.requests.levels.restRaiser()
			p.teller.Rest()
			p.appointer.Rest()
			p.prover.Rest()
		} else {
			p.binder.bindMet(ctx)
			status := p.ports.status()
			p.ports.requests.levels.keepRaised(ctx, status)
			p.tellMoment(ctx)
			p.appointShipper(ctx, &status)
			p.appointProver(ctx, &status)
			p.promoteReady(ctx)
			p.retireRemoved(ctx, &removed)
		}
	})
}

func (p *pilot) promoteReady(ctx context.Context) {
	config := p.ports.config.now()
	if !autopilot.AwaitsPromotion(&config) {
		return
	}
	status := p.ports.status()
	ready := autopilot.Promotable(&config, &status, p.members.jobs.rows())
	promoted, err := autopilot.FirstAccepted(ready, func(id consensus.MemberID) error {
		attempt, cancel := context.WithTimeout(ctx, promotePatience)
		defer cancel()
		request := consensus.ChangeOne(consensus.ChangePromote, consensus.Member{ID: id})
		_, err := p.members.changer.change(attempt, &request)
		return err
	})
	switch {
	case promoted == consensus.NoMember:
	case err == nil:
		p.logger.Info("promoted a caught-up member", "peer", promoted.String())
	case ctx.Err() == nil:
		p.logger.Warn("could not promote a member yet", "peer", promoted.String(), "err", err)
	}
}

// appointShipper appoints the member that ships the backup, if there is one to be appointed now.
func (p *pilot) appointShipper(ctx context.Context, status *raft.Status) {
	row := p.ports.config.stores.Latest().Backup()
	if command, due := p.appointer.Look(p.clock.Now(), &shipping.View{Row: row, Status: status}); due {
		p.appoint(ctx, &command, "ships the backup", row.Turn+1)
	}
}

// appointProver appoints the member that proves the backup, if that is due.
func (p *pilot) appointProver(ctx context.Context, status *raft.Status) {
	row, now := p.ports.config.stores.Latest().Backup(), p.clock.Now()
	if command, due := p.prover.Look(now, now.UnixMilli(), &shipping.View{Row: row, Status: status}); due {
		p.appoint(ctx, &command, "proves the backup", row.Proofs.Number+1)
	}
}

// appoint proposes an appointment.
func (p *pilot) appoint(ctx context.Context, command *kv.Command, does string, number uint64) {
	attempt, cancel := context.WithTimeout(ctx, promotePatience)
	defer cancel()
	id := consensus.MemberID(command.Backup.Member)
	result, err := p.ports.requests.command(attempt, command)
	switch {
	case err == nil && result.Err == nil:
		p.logger.Info("appointed the member that "+does, "peer", id.String(), "turn", number)
	case err != nil && ctx.Err() == nil:
		p.logger.Debug("could not appoint the member that "+does+" yet", "peer", id.String(), "err", err)
	}
}

// retireRemoved retires one session of a removed member, if there is one that cannot be needed any more.
func (p *pilot) retireRemoved(ctx context.Context, removed *autopilot.RemovedSessions) {
	machine, release := p.ports.config.stores.Machine()
	open := machine.Orphans()
	release()
	id, found := removed.Ripe(open, p.clock.Now(), 3*p.electionTimeout)
	if !found {
		return
	}
	attempt, cancel := context.WithTimeout(ctx, promotePatience)
	defer cancel()
	command := kv.Command{SessionRetire: &kv.SessionRetireOp{Member: uint64(id.Member), Number: id.Number}}
	if _, err := p.ports.requests.command(attempt, &command); err != nil && ctx.Err() == nil {
		p.logger.Debug("could not retire a session of a removed member yet", "peer", id.Member.String(), "err", err)
	}
}

// repairVoters is the goroutine of autopilot.Repair.
func (p *pilot) repairVoters(ctx context.Context) error {
	return lookEvery(ctx, min(repairInterval, 2*p.electionTimeout), func() { p.members.repair.Look(ctx) })
}

// keepAddresses is the goroutine that corrects addresses: every member announces its own after a restart at other peer URLs,
// and drops those of an operator that the configuration has outlived; the leader settles those that were not confirmed when
// they were changed.
func (p *pilot) keepAddresses(ctx context.Context) error {
	var telling autopilot.Telling
	return lookEvery(ctx, min(addressInterval, 2*p.electionTimeout), func() {
		if p.ports.leader.Leads() {
			p.members.requests.SettleAddresses(ctx)
		}
		p.ports.peers.transport.LookForStrays(ctx)
		config, id := p.ports.config.withID()
		p.told.forget(&config, id, p.ports.config.removed)
		if self := p.ports.leader.Self(); len(p.peerURLs) > 0 && telling.Look(&config, self) &&
			p.members.announce(p.peerURLs, telling.Again()) {
			telling.Told(&config, self)
		}
	})
}
