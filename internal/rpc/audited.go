package rpc

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/internal/audit/trail"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/rpc/etcderr"
)

// Calls are recorded for an audit when they end, if the policy says so (package audit). Each road of a call begins a record
// before it does anything, with what the request names, and ends it with the outcome:
//
//   - unary and stream, for the generated services and their streams;
//   - direct in kv.go, for calls of KV that have a goroutine;
//   - asyncWrite.start and beginRange, for those that have none;
//   - nativeKV.Admit, for each write of a native client.
//
// While a required sink takes no records, a call that would be recorded is refused, on the roads that may wait.

// audits is what the services keep for the audit.
type audits struct {
	trail  *trail.Trail // nil: nothing is recorded
	shared *shared
	policy atomic.Pointer[compiledPolicy]
	pool   sync.Pool
}

// compiledPolicy is the policy that the state machine has.
type compiledPolicy struct {
	from   *apply.Audit
	policy *audit.Policy // nil: it records nothing but its own changes
}

// audited is a call that may be recorded.
type audited struct {
	policy *audit.Policy
	event  audit.Event
	one    [1]audit.Part
	key    []byte // memory for the key of one
}

// now returns the policy by which calls are recorded; nil: none is.
func (a *audits) now() *audit.Policy {
	if a.trail == nil {
		return nil
	}
	from := a.shared.options.Member.Audit()
	known := a.policy.Load()
	if known == nil || known.from != from {
		known = a.compile(from)
		a.policy.Store(known)
	}
	return known.policy
}

// compile reads the policy. One that this build does not understand records everything: a later build may have written it.
func (a *audits) compile(from *apply.Audit) *compiledPolicy {
	if from.Version == 0 {
		return &compiledPolicy{from: from}
	}
	policy, err := audit.Parse(from.Policy)
	if err != nil {
		a.shared.options.Logger.Error("the audit's policy is not understood here: all calls are recorded, with hashed keys",
			"version", from.Version, "err", err)
		policy = audit.Everything()
	}
	return &compiledPolicy{from: from, policy: policy}
}

// ownChanges records changes of the policy while there is none.
var ownChanges = new(audit.Policy)

// begin begins a record; nil: the call is not recorded. method is the full name.
func (a *audits) begin(ctx context.Context, method string, op audit.Op) *audited {
	policy := a.now()
	if policy == nil {
		if a.trail == nil || op != audit.OpAudit {
			return nil
		}
		policy = ownChanges
	}
	r, _ := a.pool.Get().(*audited)
	if r == nil {
		r = new(audited)
	}
	*r = audited{policy: policy, key: r.key[:0],
		event: audit.Event{Method: method, Op: op, From: appendCaller(r.event.From[:0], ctx)}}
	return r
}

// appendCaller appends the address of a client. That of a TCP connection needs no memory.
func appendCaller(dst []byte, ctx context.Context) []byte {
	from, ok := peer.FromContext(ctx)
	if !ok || from.Addr == nil {
		return dst
	}
	if tcp, ok := from.Addr.(*net.TCPAddr); ok && tcp.Zone == "" {
		at := tcp.AddrPort()
		return netip.AddrPortFrom(at.Addr().Unmap(), at.Port()).AppendTo(dst)
	}
	return append(dst, from.Addr.String()...)
}

// free reports whether no call has to wait for its record. A call without a goroutine asks before it takes anything.
func (a *audits) free() bool { return a.trail == nil || a.now() == nil || a.trail.Free() }

// admit refuses a call that cannot be recorded. It waits for the deadline of the sinks at most.
func (a *audits) admit(ctx context.Context, r *audited) error {
	if r == nil || a.trail.Free() || audit.Unrefused(r.event.Method) {
		return nil
	}
	if r.event.Op == audit.OpAudit && !a.shared.access.State().Enabled() {
		return nil // there is no user who is exempt, and the policy must be changeable
	}
	r.event.User = a.user(ctx)
	if err := a.trail.Admit(ctx, r.policy, &r.event); err != nil {
		r.event.Refused = true
		if status.FromContextError(err).Code() != codes.Unknown {
			return err
		}
		return status.Error(codes.Unavailable, err.Error())
	}
	return nil
}

// user returns in whose name a call comes.
func (a *audits) user(ctx context.Context) string {
	control := a.shared.access
	if !control.State().Enabled() {
		return ""
	}
	if name := control.NameNow(ctx); name != "" || !control.TakesLong(ctx) {
		return name
	}
	by, _ := control.Caller(ctx)
	return by.User
}

// end records a call. r is not used any more.
func (a *audits) end(ctx context.Context, r *audited, revision int64, err error) {
	if r == nil {
		return
	}
	if r.event.User == "" {
		r.event.User = a.user(ctx)
	}
	r.event.Revision = revision
	if err != nil {
		var refused *refusedError
		if errors.As(err, &refused) {
			r.event.Refused = true
		}
		err = etcderr.Wire(err)
		r.event.Code, r.event.Denied = status.Code(err).String(), denied(err)
	}
	if tracer := a.shared.options.Tracer; tracer != nil {
		r.event.Trace = tracer.TraceOf(ctx)
	}
	a.trail.Record(r.policy, &r.event)
	a.drop(r)
}

// drop forgets a call that is not recorded.
func (a *audits) drop(r *audited) {
	if r != nil {
		a.pool.Put(r)
	}
}

// keep makes the call name one key range, and copies it.
func (r *audited) keep(key, end []byte) *audit.Part {
	r.key = append(append(r.key[:0], key...), end...)
	r.one[0] = audit.Part{Key: r.key[:len(key):len(key)], End: r.key[len(key):]}
	r.event.Parts = r.one[:]
	return &r.one[0]
}

// denied reports whether a call was refused because of the caller, not because of what was asked.
func denied(err error) bool {
	switch code := status.Code(err); code {
	case codes.Unauthenticated, codes.PermissionDenied:
		return true
	case codes.InvalidArgument, codes.FailedPrecondition:
		switch status.Convert(err).Message() {
		case rpctypes.ErrorDesc(rpctypes.ErrGRPCUserEmpty), rpctypes.ErrorDesc(rpctypes.ErrGRPCAuthFailed),
			rpctypes.ErrorDesc(rpctypes.ErrGRPCAuthOldRevision):
			return true
		}
	}
	return false
}

// unary passes a call through the gate, and records it.
func (s *Services) unary(
	ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler,
) (any, error) {
	r := s.audits.begin(ctx, info.FullMethod, audit.OpOf(info.FullMethod))
	if r == nil || audit.Unaudited(info.FullMethod) {
		return s.pass(ctx, request, info, handle)
	}
	r.describe(request)
	refused := s.audits.admit(ctx, r)
	response, err := s.pass(ctx, request, info, func(ctx context.Context, request any) (any, error) {
		if refused != nil {
			return nil, refused
		}
		return handle(ctx, request)
	})
	r.describeAnswer(response)
	s.audits.end(ctx, r, revisionOf(response), err)
	return response, err
}

// audit records a stream when it ends, by its first request. Each watch is recorded by itself.
func (s *Services) audit(ss grpc.ServerStream, info *grpc.StreamServerInfo, handle func(grpc.ServerStream) error) error {
	op := audit.OpOf(info.FullMethod)
	if op == audit.OpWatch || audit.Unaudited(info.FullMethod) {
		return handle(ss)
	}
	r := s.audits.begin(ss.Context(), info.FullMethod, op)
	if r == nil {
		return handle(ss)
	}
	first := &firstRequest{ServerStream: ss, audits: &s.audits, call: r}
	err := handle(first)
	first.mu.Lock() // the goroutine that receives may still be at it
	defer first.mu.Unlock()
	first.call = nil
	s.audits.end(ss.Context(), r, 0, err)
	return err
}

// firstRequest reads what the first request of a stream names.
type firstRequest struct {
	grpc.ServerStream
	audits *audits
	mu     sync.Mutex
	call   *audited
	spoken bool
}

// RecvMsg implements grpc.ServerStream.
func (f *firstRequest) RecvMsg(m any) error {
	err := f.ServerStream.RecvMsg(m)
	if err != nil || f.spoken {
		return err
	}
	f.spoken = true
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.call == nil {
		return nil
	}
	f.call.describe(m)
	return f.audits.admit(f.ServerStream.Context(), f.call)
}
