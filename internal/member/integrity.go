package member

import (
	"context"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/member/integrity"
	"github.com/quorate/quorate/internal/member/lanes"
	"github.com/quorate/quorate/internal/member/peercall"
)

// newIntegrity makes the comparison of this member with others (package integrity).
func newIntegrity(
	o *Options, leader *lanes.KnownLeader, config *appliedConfig, requests *requests, caller *peercall.Caller,
	put func(inputs ...raft.Input),
) *integrity.Checker {
	return integrity.New(integrity.Options{
		Self: leader.Self(), Stores: config.stores, Pace: o.Integrity, Logger: o.Logger,
		Ports: integrity.Ports{
			Leads: leader.Leads, Config: config.now, ReadIndex: requests.readIndex, Propose: requests.command,
			Ask: func(
				ctx context.Context, id consensus.MemberID, kind integrity.Kind, q integrity.Question,
			) (integrity.Answer, error) {
				return peercall.Ask(ctx, caller, id, integrityMethod(kind), q)
			},
			Spare: func(members []consensus.MemberID) { put(raft.Spare{Members: members}) },
		},
	})
}

// serveIntegrity answers members that compare themselves with this member.
func serveIntegrity(t *peercall.Table, checker *integrity.Checker) {
	for _, kind := range []integrity.Kind{integrity.Chain, integrity.Contents} {
		peercall.Serve(t, integrityMethod(kind), func(ctx context.Context, q integrity.Question) (integrity.Answer, error) {
			return checker.Answer(ctx, kind, q), nil
		})
	}
}
