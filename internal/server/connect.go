package server

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/member"
	"github.com/quorate/quorate/internal/member/integrity"
	"github.com/quorate/quorate/internal/member/offers"
	"github.com/quorate/quorate/internal/member/upkeep"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/transport"
)

// ticksPerHeartbeat is how finely time is cut: election timeouts are spread in these steps.
const ticksPerHeartbeat = 5

// etcd waits five seconds for disk and network, and an election twice over, before it gives a request up.
const requestPatience = 5 * time.Second

// connect starts the member and its connections to the others.
func (s *Server) connect(ctx context.Context, options Options) error {
	own := &s.data.Identity
	m := member.New(member.Options{
		Data:    s.data,
		LowDisk: s.lowDisk, DiskReserve: int64(s.cfg.Storage.DiskReserveBytes),
		Expiring:        func() []string { return s.expiries().late(s.cfg.Name, time.Now()) },
		Raft:            s.raftOptions(own.Member, own.Cluster),
		PeerURLs:        s.ownURLs(),
		TickInterval:    s.cfg.Consensus.HeartbeatInterval / ticksPerHeartbeat,
		RequestTimeout:  requestPatience + 2*s.cfg.Consensus.ElectionTimeout,
		MaxRequestBytes: s.cfg.Limits.MaxRequestBytes,
		Retention:       s.budgets.logRetention(),
		OpenBytes:       int(s.budgets.Proposals),
		SessionBytes:    s.budgets.State.Admits().Sessions,
		Compaction:      upkeep.CompactionPace{Keys: s.cfg.Compaction.BatchLimit, Pause: s.cfg.Compaction.SleepInterval},
		Integrity:       integrity.Pace{Chains: s.cfg.Storage.CompactHashCheckTime, Contents: s.cfg.Storage.CorruptCheckTime},
		FastPath:        offers.Setting(s.cfg.Consensus.FastPath),
		Care:            s.carePolicy(),

		LevelPolicy: s.cfg.LevelPolicy,
		Verdict:     s.verdict,
		Tell:        s.tell,
		CommitDelay: s.cfg.Consensus.CommitDelay,
		Answers:     s.budgets.answers,
		Clock:       env.WallClock{},
		Logger:      s.logger,
		Synced:      s.timings.synced,
		Applied:     s.noteApplied,
		Feed:        s.newFeed(),
	})
	s.member = m
	seen, err := s.data.SeenPeers()
	if err != nil {
		s.logger.Error("what was known of other members' data directories is lost, and is learned anew", "err", err)
	}
	listeners, err := s.listenPeers()
	if err != nil {
		return err
	}
	s.transport, err = transport.New(transport.Options{
		Self: s.claim(), Handler: m.PeerHandler(),
		Logger:      s.logger,
		Listeners:   listeners,
		OpenMethods: member.OpenMethods(), MovedMethods: member.MovedMethods(),
		TLS: transport.TLS{Dial: s.peerCerts.Dial},
		Identity: transport.Identity{Seen: seen, Remember: s.data.WriteSeenPeers, Refused: m.PeerHandler().Refused,
			Removed: m.WasRemoved, CheckCertificate: s.peerCerts.PeerCheck(),
			HasConfig: s.data.Restored.HasConfig()},
		Times:    transport.Times{DeadAfter: 3 * s.cfg.Consensus.ElectionTimeout},
		Snapshot: transport.Snapshot{BytesPerSecond: s.cfg.Storage.SnapshotSendRate},
		Packing:  transport.Packing{When: transport.PackWhen(s.cfg.PeerCompression), Bytes: s.budgets.Packing},
		Delay:    s.peerDelay(), UnknownBytes: s.budgets.Peers,
		Faults: options.Faults,
	})
	if err != nil {
		closeAll(listeners)
		return err
	}
	if err := m.Start(s.transport); err != nil {
		return err
	}
	if s.nameBefore == "" || !s.cfg.FeatureGates.Enabled("InitialCorruptCheck") {
		return nil
	}
	if err := m.CompareAtStart(ctx); err != nil {
		return fmt.Errorf("--feature-gates=InitialCorruptCheck=true: %w: it does not start; docs/compatibility.md, CORRUPT, "+
			"says how to give it the data of the others", err)
	}
	return nil
}

// claim is what other members are told of this one.
func (s *Server) claim() identity.Claim {
	own := &s.data.Identity
	return identity.Claim{Cluster: own.Cluster, Epoch: own.Epoch, Member: own.Member, Storage: own.Storage,
		Life: s.data.Life(), Address: advertised(&s.cfg)}
}

// ownURLs are where a flag said at this start that others reach this member. Without that, it is where it was.
func (s *Server) ownURLs() []string {
	if !s.cfg.Explicit("initial-advertise-peer-urls") {
		return nil
	}
	return slices.Sorted(slices.Values(urlTexts(s.cfg.Advertise.PeerURLs)))
}

// slowApplyPause is how often, at most, slow applies are worth a line.
const slowApplyPause = time.Second

// noteApplied counts a batch of applied entries, and tells of those that took long.
func (s *Server) noteApplied(took time.Duration) {
	s.timings.apply.Observe(took.Seconds())
	s.timings.counts.Timed(took)
	if took <= s.cfg.Monitoring.WarningApplyDuration {
		return
	}
	s.timings.slow.Inc()
	now, before := time.Since(s.timings.begun), s.timings.slowLogged.Load()
	if (before == 0 || now-time.Duration(before) > slowApplyPause) && s.timings.slowLogged.CompareAndSwap(before,
		int64(now)) {
		s.logger.Warn("apply request took too long", "took", took, "expected-duration", s.cfg.Monitoring.WarningApplyDuration)
	}
}

// peerDelay is what --peer-delay asks for; nil if it asks for nothing. A peer that is not known by name yet is far away: the
// first answer to a member would else come at once, and be taken for its distance.
func (s *Server) peerDelay() func(consensus.Member) time.Duration {
	if len(s.cfg.PeerDelays) == 0 {
		return nil
	}
	farthest := time.Duration(0)
	for _, d := range s.cfg.PeerDelays {
		farthest = max(farthest, d.Delay)
	}
	return func(to consensus.Member) time.Duration {
		if to.Name == "" {
			return farthest // it has not said yet which member it is
		}
		return s.cfg.PeerDelay(to.Name)
	}
}

func (s *Server) carePolicy() membership.Policy {
	return membership.Policy{
		Mode:        membership.Mode(s.cfg.Care.Mode),
		DeadAfterMS: s.cfg.Care.DeadAfter.Milliseconds(),
		Voters:      s.cfg.Care.Voters,
		StableMS:    max(config.CareStable, 5*s.cfg.Consensus.ElectionTimeout).Milliseconds(),
		MaxPerHour:  config.CareBudget,
	}
}

func (s *Server) raftOptions(id consensus.MemberID, cluster consensus.ClusterID) raft.Options {
	o := raft.Defaults(id)
	o.Cluster, o.Storage = cluster, s.data.Identity.Storage
	o.HeartbeatTicks = ticksPerHeartbeat
	o.TickMicros = uint64(s.cfg.Consensus.HeartbeatInterval.Microseconds()) / ticksPerHeartbeat
	o.ElectionTicks = int(s.cfg.Consensus.ElectionTimeout / (s.cfg.Consensus.HeartbeatInterval / ticksPerHeartbeat))
	o.Seed = randomID()
	o.PreVote = s.cfg.Consensus.PreVote
	o.LeaderLease = s.cfg.Consensus.LeaderLease
	o.MaxLearners = s.cfg.Consensus.MaxLearners
	log := &s.budgets.Log
	o.MaxSnapshotLogBytes, o.MaxUncommittedBytes = int(log.Snapshot), int(log.Uncommitted)
	o.MaxRepeats = int(log.Repeats / raft.RepeatBytes)
	o.MaxApplyingBytes, o.MaxUnappliedBytes = int(log.Applying), int(log.Unapplied)
	o.StrictReconfig = s.cfg.Consensus.StrictReconfigCheck
	return o
}
