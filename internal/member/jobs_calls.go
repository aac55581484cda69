package member

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/autopilot"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
)

// Methods of the requests about members that only the leader answers, and of one that any member takes to it, for those
// that are no members yet.
const (
	methodView      = "membership.view"
	methodPlan      = "membership.plan"
	methodStart     = "membership.start"
	methodCancel    = "membership.cancel"
	methodJoinStep  = "membership.join"
	methodJoin      = "cluster.join"
	methodMovedStep = "membership.moved"
	methodMoved     = "cluster.moved"
)

// question is what a member sends to its leader. Config is the configuration that is applied at the one that asks: a
// leader that does not have it yet has been deposed, or is not ready.
type question[Q any] struct {
	Config consensus.ConfigID `json:"config,omitzero"`
	Asked  Q                  `json:"asked"`
}

// reply is an answer or a refusal. A refusal is final; an error of the call only says to ask again.
type reply[A any] struct {
	Answer  *A       `json:"answer,omitempty"`
	Refusal *refusal `json:"refusal,omitempty"`
}

// refusal is an error that keeps its meaning on the way between members.
type refusal struct {
	Kind   string                  `json:"kind"`
	Text   string                  `json:"text,omitempty"`
	Plan   *membership.Plan        `json:"plan,omitempty"`
	Reason consensus.RefusalReason `json:"reason,omitempty"`
	Config consensus.ConfigID      `json:"config,omitzero"`
}

const (
	refusedBlocked = "blocked"
	refusedChange  = "refused"
	refusedSpec    = "spec"
	refusedAddress = "address"
)

// refusedKinds are the refusals that are told by their kind alone; Text may add to it.
var refusedKinds = []struct {
	kind string
	err  error
}{
	{"job-not-found", membership.ErrJobNotFound},
	{"too-many-jobs", membership.ErrTooManyJobs},
	{"already-started", membership.ErrAlreadyStarted},
	{"job-failed", membership.ErrJobFailed},
	{"too-large", ErrTooLarge},
}

// refusalOf returns err as a refusal, or nil if it only means that it may be asked again.
func refusalOf(err error) *refusal {
	var blocked *membership.BlockedError
	var refused *membership.RefusedError
	var spec *membership.SpecError
	var address *membership.AddressError
	switch {
	case errors.As(err, &blocked):
		return &refusal{Kind: refusedBlocked, Plan: &blocked.Plan}
	case errors.As(err, &refused):
		return &refusal{Kind: refusedChange, Reason: refused.Reason, Config: refused.Config, Text: refused.Why}
	case errors.As(err, &spec):
		return &refusal{Kind: refusedSpec, Text: spec.Text}
	case errors.As(err, &address):
		return &refusal{Kind: refusedAddress, Text: address.Text}
	}
	for _, known := range refusedKinds {
		if errors.Is(err, known.err) {
			return &refusal{Kind: known.kind, Text: err.Error()}
		}
	}
	return nil
}

// err is the other way round.
func (r *refusal) err() error {
	switch {
	case r.Kind == refusedBlocked && r.Plan != nil:
		return &membership.BlockedError{Plan: *r.Plan}
	case r.Kind == refusedChange:
		return &membership.RefusedError{Reason: r.Reason, Config: r.Config, Why: r.Text}
	case r.Kind == refusedSpec:
		return &membership.SpecError{Text: r.Text}
	case r.Kind == refusedAddress:
		return &membership.AddressError{Text: r.Text}
	}
	for _, known := range refusedKinds {
		if r.Kind == known.kind {
			return &toldError{text: r.Text, is: known.err}
		}
	}
	return &toldError{text: r.Text, is: errors.ErrUnsupported} // the leader is newer
}

// toldError is an error of another member, in its words.
type toldError struct {
	text string
	is   error
}

func (e *toldError) Error() string { return e.text }
func (e *toldError) Unwrap() error { return e.is }

// atLeader has a question answered by the leader, which may be this member: then here answers. It asks again, for as long
// as a request may take, until there is an answer or a refusal, so that here must bear being asked twice.
func atLeader[Q, A any](
	ctx context.Context, m *Member, method string, asked Q, here func(context.Context, Q) (A, error),
) (answer A, err error) {
	if err := m.awaitStart(ctx); err != nil {
		return answer, err
	}
	var last error
	err = m.withLeader(ctx, func(ctx context.Context, leader consensus.MemberID) error {
		if leader == m.ID() {
			answer, last = here(ctx, asked)
		} else {
			answer, last = askAnother[Q, A](ctx, m, leader, method, asked)
		}
		if isFinal(last) {
			return nil
		}
		return last
	})
	switch {
	case err == nil:
		return answer, last
	case last != nil && errors.Is(err, ErrTimeout):
		return answer, fmt.Errorf("%w: %w", err, last)
	}
	return answer, err
}

// isFinal reports whether asking again would change nothing.
func isFinal(err error) bool {
	if err == nil || refusalOf(err) != nil || errors.Is(err, errors.ErrUnsupported) {
		return true
	}
	code := status.Code(err)
	return code == codes.Unimplemented || code == codes.InvalidArgument
}

func askAnother[Q, A any](
	ctx context.Context, m *Member, leader consensus.MemberID, method string, asked Q,
) (answer A, err error) {
	_, id := m.configApplied()
	body, err := json.Marshal(question[Q]{Config: id, Asked: asked})
	if err != nil {
		return answer, err
	}
	raw, err := m.transport.Call(ctx, leader, method, body)
	if err != nil {
		return answer, fromStatus(err)
	}
	return openReply[A](raw)
}

func openReply[A any](raw []byte) (answer A, err error) {
	var r reply[A]
	if err := json.Unmarshal(raw, &r); err != nil {
		return answer, status.Error(codes.InvalidArgument, err.Error())
	}
	switch {
	case r.Refusal != nil:
		return answer, r.Refusal.err()
	case r.Answer == nil:
		return answer, status.Error(codes.InvalidArgument, "member: an answer without contents")
	}
	return *r.Answer, nil
}

func (m *Member) configApplied() (consensus.Config, consensus.ConfigID) {
	machine, release := m.Machine()
	defer release()
	return machine.Config()
}

// membershipCall returns what answers a method about members, nil if there is no such method.
func (m *Member) membershipCall(method string) func(context.Context, []byte) ([]byte, error) {
	switch method {
	case methodView:
		return answering(m, m.describeHere)
	case methodPlan:
		return answering(m, m.planHere)
	case methodStart:
		return answering(m, m.startHere)
	case methodCancel:
		return answering(m, m.requests.Cancel)
	case methodJoinStep:
		return answering(m, m.joinHere)
	case methodMovedStep:
		return answering(m, m.movedHere)
	case methodMoved:
		return func(ctx context.Context, body []byte) ([]byte, error) {
			return answer(ctx, body, func(ctx context.Context, q question[movedQuestion]) (movedAnswer, error) {
				return m.moved(ctx, q.Asked)
			})
		}
	case methodJoin:
		return func(ctx context.Context, body []byte) ([]byte, error) {
			type request = question[autopilot.JoinRequest]
			return answer(ctx, body, func(ctx context.Context, q request) (autopilot.JoinAnswer, error) {
				return m.Join(ctx, q.Asked)
			})
		}
	}
	return nil
}

// answering makes a handler of here that only a leader runs, which has the configuration of the one that asks.
func answering[Q, A any](
	m *Member, here func(context.Context, Q) (A, error),
) func(context.Context, []byte) ([]byte, error) {
	return func(ctx context.Context, body []byte) ([]byte, error) {
		return answer(ctx, body, func(ctx context.Context, q question[Q]) (none A, err error) {
			view, err := m.View(ctx)
			if err != nil {
				return none, err
			}
			if view.ID.Index < q.Config.Index {
				return none, ErrNotLeader
			}
			return here(ctx, q.Asked)
		})
	}
}

func answer[Q, A any](ctx context.Context, body []byte, f func(context.Context, Q) (A, error)) ([]byte, error) {
	var asked Q
	if err := json.Unmarshal(body, &asked); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	got, err := f(ctx, asked)
	if err == nil {
		return json.Marshal(reply[A]{Answer: &got})
	}
	if refused := refusalOf(err); refused != nil {
		return json.Marshal(reply[A]{Refusal: refused})
	}
	return nil, toStatus(err)
}
