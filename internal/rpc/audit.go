package rpc

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
)

// auditService is the native Audit service: the policy, and the heads of the members' chains of records.
//
// Invariants:
//  1. Only root changes or sees them while authentication is enabled: the gate asks, and of changes the state machine again.
//  2. An answer is as new as the changes that were acknowledged before the call.
//  3. A change of the policy is recorded, whatever policy there is.
type auditService struct {
	quoratepb.UnsafeAuditServer
	*shared
	reading sync.Mutex // held while records are read: a call takes a megabyte
}

// Policy returns the policy.
func (a *auditService) Policy(ctx context.Context, _ *quoratepb.AuditPolicyRequest) (*quoratepb.AuditPolicy, error) {
	state, err := a.state(ctx)
	if err != nil {
		return nil, err
	}
	return a.answer(state), nil
}

func (a *auditService) state(ctx context.Context) (*apply.Audit, error) {
	if err := a.readIndex(ctx); err != nil {
		return nil, err
	}
	return a.options.Member.Audit(), nil
}

func (a *auditService) answer(state *apply.Audit) *quoratepb.AuditPolicy {
	answer := &quoratepb.AuditPolicy{Policy: string(state.Policy), Version: state.Version}
	if a.audits.trail == nil {
		return answer
	}
	sinks, _ := a.audits.trail.Status()
	for _, s := range sinks {
		answer.Outputs = append(answer.Outputs, &quoratepb.AuditOutput{Name: strings.ToValidUTF8(s.Name, "\uFFFD"),
			Required: s.Required, Records: s.Taken, Dropped: s.Dropped, Blocked: s.Blocked, Trouble: s.Trouble})
	}
	return answer
}

// SetPolicy replaces the policy.
func (a *auditService) SetPolicy(
	ctx context.Context, r *quoratepb.SetAuditPolicyRequest,
) (*quoratepb.AuditPolicy, error) {
	policy, err := audit.Parse([]byte(r.GetPolicy()))
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	salt := make([]byte, audit.SaltBytes)
	_, _ = rand.Read(salt) // does not fail
	text, err := policy.WithSalt(salt)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	state, err := a.state(ctx)
	if err != nil {
		return nil, err
	}
	if state.Version == r.GetVersion() {
		op := &kv.AuditOp{Kind: kv.AuditPolicy, Policy: text, Version: r.GetVersion()}
		_, err = a.propose(ctx, &kv.Command{Audit: op})
	} else {
		err = kv.ErrBadCommand
	}
	if errors.Is(err, kv.ErrBadCommand) {
		err = status.Error(codes.Aborted, "the audit's policy was changed meanwhile: nothing happened, look at it and try "+
			"again")
	}
	if err != nil {
		return nil, err
	}
	a.options.Logger.InfoContext(ctx, "the audit's policy is set", "version", r.GetVersion()+1)
	if state, err = a.state(ctx); err != nil {
		return nil, err
	}
	return a.answer(state), nil
}

// Heads returns the heads that are kept.
func (a *auditService) Heads(ctx context.Context, _ *quoratepb.AuditHeadsRequest) (*quoratepb.AuditHeads, error) {
	state, err := a.state(ctx)
	if err != nil {
		return nil, err
	}
	answer := new(quoratepb.AuditHeads)
	for i := range state.Heads {
		h := &state.Heads[i]
		answer.Heads = append(answer.Heads, &quoratepb.AuditHead{Member: h.Member, Chain: h.Chain, Sequence: h.Sequence,
			UnixMillis: h.At, Sum: h.Sum, File: strings.ToValidUTF8(string(h.File), "\uFFFD")})
	}
	return answer, nil
}
