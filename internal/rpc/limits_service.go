package rpc

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
)

// limitService is the native Limits service: the rules that bound users and prefixes.
//
// Invariants:
//  1. Only root sets, deletes or lists rules while authentication is enabled: the gate asks, and the state machine again.
//  2. A rule that is wrong changes nothing, and its author is told what is wrong.
//  3. A list is as new as the changes that were acknowledged before the call.
type limitService struct {
	quoratepb.UnsafeLimitsServer
	*shared
}

// SetLimit adds or replaces a rule, and waits until its quota holds.
func (l *limitService) SetLimit(ctx context.Context, r *quoratepb.SetLimitRequest) (*quoratepb.SetLimitResponse, error) {
	if r.GetLimit() == nil {
		return nil, status.Error(codes.InvalidArgument, "quorate: the request has no limit")
	}
	rule := limitRuleOf(r.GetLimit())
	if problem := rule.Problem(); problem != "" {
		return nil, status.Error(codes.InvalidArgument, "quorate: "+problem)
	}
	if _, err := l.propose(ctx, &kv.Command{Limit: &kv.LimitOp{Set: rule}}); err != nil {
		return nil, err
	}
	l.options.Logger.InfoContext(ctx, "limit set", "name", rule.Name, "user", rule.User, "prefix", string(rule.Prefix))
	if err := l.readIndex(ctx); err != nil {
		return nil, err
	}
	if rule.Quota() {
		if err := l.countQuotas(ctx, rule.Name); err != nil {
			return nil, err
		}
	}
	for _, state := range l.limitStates() {
		if state.GetLimit().GetName() == rule.Name {
			return &quoratepb.SetLimitResponse{State: state}, nil
		}
	}
	return nil, status.Errorf(codes.Aborted, "quorate: limit %q was set, and deleted since by somebody else", rule.Name)
}

// DeleteLimit ends a rule.
func (l *limitService) DeleteLimit(
	ctx context.Context, r *quoratepb.DeleteLimitRequest,
) (*quoratepb.DeleteLimitResponse, error) {
	if r.GetName() == "" {
		return nil, status.Error(codes.InvalidArgument, "quorate: the request names no limit")
	}
	if _, err := l.propose(ctx, &kv.Command{Limit: &kv.LimitOp{Delete: r.GetName()}}); err != nil {
		return nil, err
	}
	l.options.Logger.InfoContext(ctx, "limit deleted", "name", r.GetName())
	return &quoratepb.DeleteLimitResponse{}, nil
}

// ListLimits returns the rules.
func (l *limitService) ListLimits(ctx context.Context, _ *quoratepb.ListLimitsRequest) (*quoratepb.ListLimitsResponse, error) {
	if err := l.readIndex(ctx); err != nil {
		return nil, err
	}
	return &quoratepb.ListLimitsResponse{Limits: l.limitStates()}, nil
}

// limitStates are the rules as this member knows them.
func (s *shared) limitStates() (states []*quoratepb.LimitState) {
	set := s.options.Member.Limits()
	if set == nil {
		return nil
	}
	machine, release := s.options.Member.Machine()
	uses := map[string]apply.LimitUse{}
	for _, u := range machine.LimitUses() {
		uses[u.Rule.Name] = u
	}
	release()
	refused := map[string]uint64{}
	s.limiter.Refused(set, func(rule string, n uint64) { refused[rule] = n })
	for i := range set.Rules {
		rule := &set.Rules[i]
		state := &quoratepb.LimitState{Limit: limitMessage(rule), Refused: refused[rule.Name]}
		if u, ok := uses[rule.Name]; ok {
			state.Counting, state.UsedBytes, state.UsedKeys = !u.Counted, u.Bytes, u.Keys
		}
		states = append(states, state)
	}
	return states
}

// limitBounds returns the fields of the bounds of a rule, in the order of kv.LimitKind.
func limitBounds(l *quoratepb.Limit) [kv.LimitKinds]**int64 {
	return [...]**int64{&l.WritesPerSecond, &l.WriteBytesPerSecond, &l.ReadsPerSecond, &l.ReadBytesPerSecond, &l.ValueBytes,
		&l.QuotaBytes, &l.QuotaKeys}
}

func limitRuleOf(l *quoratepb.Limit) *kv.LimitRule {
	rule := &kv.LimitRule{Name: l.GetName(), User: l.GetUser(), Prefixed: l.Prefix != nil, Prefix: l.GetPrefix()}
	for kind, field := range limitBounds(l) {
		if *field != nil {
			rule.Bounds[kind] = kv.Bound{Set: true, Most: **field}
		}
	}
	return rule
}

func limitMessage(rule *kv.LimitRule) *quoratepb.Limit {
	l := &quoratepb.Limit{Name: rule.Name, User: rule.User}
	if rule.Prefixed {
		l.Prefix = append([]byte{}, rule.Prefix...) // not nil: that would be no prefix
	}
	for kind, field := range limitBounds(l) {
		if b := rule.Bounds[kind]; b.Set {
			*field = &b.Most
		}
	}
	return l
}
