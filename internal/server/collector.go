package server

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/audit/trail"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/member"
	"github.com/quorate/quorate/internal/rpc"
	"github.com/quorate/quorate/internal/server/certs"
	"github.com/quorate/quorate/internal/server/collect"
	"github.com/quorate/quorate/internal/server/observe"
)

// newObserver makes what this member observes, and what lets it answer for all.
func (s *Server) newObserver() (*observe.Observer, *collect.Collector) {
	observer := observe.New(s.observed())
	s.observer.Store(observer)
	return observer, collect.New(collect.Options{
		Self: s.member.ID(), Cluster: s.member.Cluster(), Members: s.knownMembers,
		Ask: s.member.AskMember, Find: s.transport.Find, Observe: observer.Observe,
		Top: func(ctx context.Context, r *quoratepb.TopRequest) (*quoratepb.TopAnswer, error) {
			return s.services.OwnTop(ctx, r)
		},
		Context: s.ctx, Go: func(run func()) { s.wg.Go(run) },
	})
}

// knownMembers are the members of the configuration that is applied here, by the names that they have published.
func (s *Server) knownMembers() []consensus.Member {
	machine, release := s.member.Machine()
	defer release()
	config, _ := machine.Config()
	all := make([]consensus.Member, len(config.Members))
	for i := range config.Members {
		all[i] = config.Members[i]
		if published, started := machine.Published(all[i].ID); started && published.Name != "" {
			all[i].Name = published.Name
		}
	}
	return all
}

// tell answers another member that asks what this one observes, or counted.
func (s *Server) tell(ctx context.Context, about member.Subject, question []byte) ([]byte, error) {
	collector := s.collector.Load()
	if collector == nil {
		return nil, status.Error(codes.Unavailable, "quorate: this member serves no clients yet")
	}
	return collector.Answer(ctx, about, question)
}

// observed are the parts of this process that the doctor judges.
func (s *Server) observed() observe.Options {
	return observe.Options{
		Config: &s.cfg, Member: s.member, Transport: s.transport, Reserve: s.reserve, Shares: &s.budgets.Shares,
		Syncs: s.timings.sync, Applies: s.timings.apply, Counted: s.timings.counts, OpenFiles: openFiles(),
		Services: func() rpc.Tally { return s.services.Tally() }, Busiest: func() int64 { return s.services.Busiest() },
		Refused: func() uint64 {
			_, clients := s.conns.clients.Counts()
			_, http := s.conns.http.Counts()
			return clients + http
		},
		Dropped: func() uint64 {
			if s.dropped == nil {
				return 0
			}
			return s.dropped()
		},
		Sinks: func() (sinks []trail.SinkStatus) {
			if s.audit != nil {
				sinks, _ = s.audit.Status()
			}
			return sinks
		},
		RefusesPlace: s.refusesPlace,
		Keys:         s.keys.lastLook,
		Encryption:   s.observedEncryption,
		Parts:        func() []*quoratepb.ObservedPart { return observedParts(&s.budgets, s.member, s.conns.peers) },
		Expiries:     func() []certs.Expiry { return s.expiries().all() },
		OwnAlarms:    func() []string { return append(s.expiries().late(s.cfg.Name, time.Now()), s.lowDisk()) },
	}
}
