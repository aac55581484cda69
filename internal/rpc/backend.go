package rpc

import (
	"context"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/kv/lease"
	"github.com/quorate/quorate/internal/kv/watch"
	"github.com/quorate/quorate/internal/limits/rates"
	"github.com/quorate/quorate/internal/member/proposals"
)

// Backend is the part of a member that the services need: *member.Member. It is an interface so that the services can be
// measured and tested over a state machine alone, without a log, a disk or other members behind it.
type Backend interface {
	ID() consensus.MemberID
	EpochName() string
	Cluster() consensus.ClusterID
	Status() raft.Status
	Leader() consensus.MemberID
	Term() consensus.Term
	Learner() bool // added as a learner, and not to be promoted by itself
	Corrupt() bool // marked corrupt: it must not answer from its state
	LeaderChanged() <-chan struct{}
	Machine() (machine *apply.Machine, release func())
	Hub() *watch.Hub
	Users() *auth.State
	Limits() *rates.Set // that bound users and prefixes; nil: there are none
	Audit() *apply.Audit

	Propose(ctx context.Context, command *kv.Command) (kv.Result, error)
	ReadIndex(ctx context.Context) error
	// Prompt reports whether ReadAsync may be called, and PromptFor whether ProposeAsync may be called with a command, which
	// has been checked: it may be encoded here.
	Prompt() bool
	PromptFor(command *kv.Command) bool
	ProposeAsync(command *kv.Command, done proposals.Completion) (abandon func() bool, err error)
	ReadAsync(done proposals.Completion) (abandon func() bool, err error)
	ChangeConfig(ctx context.Context, request consensus.ChangeRequest) (consensus.Config, error)
	TransferLeadership(ctx context.Context, to consensus.MemberID) error
	RenewLeases(ctx context.Context, ids []kv.LeaseID) ([]lease.Renewal, error)
	LeaseTimeToLive(ctx context.Context, id kv.LeaseID) (remaining, granted int64, err error)
	// SoakPausedBy asks the leader why no time counts towards the next feature level; empty: it counts.
	SoakPausedBy(ctx context.Context) (string, error)
	Backup(ctx context.Context, f func(ctx context.Context, machine *apply.Machine) error) error
}
