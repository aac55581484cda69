package member

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/autopilot"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/integrity"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/transport"
)

// Methods of the small requests that members answer each other. They are rare, so their bodies are JSON.
const (
	methodLeaseRenew = "lease.renew"
	methodLeaseTTL   = "lease.ttl"
	methodDescribe   = "cluster.describe"
	// MethodGreet asks who is there: an identity.Greeting. Processes that found a cluster ask it of each other.
	MethodGreet = "identity.greet"
)

// OpenMethods are the calls that anybody may make: a process that wants to be a member has no identity yet.
func OpenMethods() []string { return []string{MethodGreet, methodDescribe, methodJoin} }

type leaseQuestion struct {
	ID kv.LeaseID `json:"id"`
}

type leaseAnswer struct {
	TTLSeconds     int64 `json:"ttl"`
	GrantedSeconds int64 `json:"granted,omitempty"`
}

// Description is what a member tells one that wants to join.
type Description struct {
	Cluster consensus.ClusterID `json:"cluster"`
	Epoch   consensus.Epoch     `json:"epoch"`
	Members []consensus.Member  `json:"members"`
	// Learners are the ids among Members that do not vote.
	Learners []consensus.MemberID `json:"learners,omitempty"`
	// Published are the ids among Members that have been up once, Bound those that have a data directory.
	Published []consensus.MemberID `json:"published,omitempty"`
	Bound     []consensus.MemberID `json:"bound,omitempty"`
}

// Call answers a request of another member. It is the transport's handler.
func (m *Member) Call(ctx context.Context, method string, body []byte) ([]byte, error) {
	switch method {
	case methodLeaseRenew:
		return answerLease(body, func(id kv.LeaseID) (leaseAnswer, error) {
			ttl, err := m.onlyLeading(func() (int64, error) { return m.leases.Renew(ctx, id) })
			return leaseAnswer{TTLSeconds: ttl}, err
		})
	case methodLeaseTTL:
		return answerLease(body, func(id kv.LeaseID) (leaseAnswer, error) {
			var granted int64
			ttl, err := m.onlyLeading(func() (ttl int64, err error) {
				ttl, granted, err = m.leases.TimeToLive(ctx, id)
				return ttl, err
			})
			return leaseAnswer{TTLSeconds: ttl, GrantedSeconds: granted}, err
		})
	case methodJoin:
		if transport.CallerClaim(ctx).Cluster == 0 {
			return nil, status.Error(codes.FailedPrecondition, (&identity.Refusal{Reason: identity.Anonymous,
				Text: "a process that joins must name the cluster: join with --join"}).Error())
		}
	case MethodGreet:
		return m.greet(ctx)
	case methodDescribe:
		if err := m.ReadIndex(ctx); err != nil {
			return nil, toStatus(err)
		}
		return json.Marshal(m.describe())
	}
	if ask := m.integrityCall(method); ask != nil {
		return answer(ctx, body, func(ctx context.Context, q integrity.Question) (integrity.Answer, error) {
			return ask(ctx, q), nil
		})
	}
	if method == methodClients {
		return m.answerHeard(body)
	}
	if answer := m.membershipCall(method); answer != nil {
		return answer(ctx, body)
	}
	return nil, status.Errorf(codes.Unimplemented, "member: unknown request %q: is this member older?", method)
}

func (m *Member) describe() Description {
	machine, release := m.Machine()
	defer release()
	config, _ := machine.Config()
	d := Description{Cluster: m.Cluster(), Epoch: m.data.Identity.Epoch, Members: autopilot.WithoutStorage(config.Members),
		Learners: config.Learners}
	for _, known := range config.Members {
		if !known.Storage.IsZero() {
			d.Bound = append(d.Bound, known.ID)
		}
		if _, published := machine.Published(known.ID); published {
			d.Published = append(d.Published, known.ID)
		}
	}
	return d
}

// greet says who this member is, and how the caller, which may have lost its disk, is bound here. What others are bound to is
// for members only.
func (m *Member) greet(ctx context.Context) ([]byte, error) {
	config, caller := m.configNow(), transport.CallerClaim(ctx)
	if len(config.Members) == 0 {
		return nil, status.Error(codes.Unavailable, "member: it does not know its cluster yet")
	}
	m.epochs.Meet(caller)
	g := identity.Greeting{Claim: m.claim(), Stage: identity.Founded}
	if known, ok := config.Member(caller.Member); ok {
		g.Roster = identity.Line(&known, caller.Storage)
	}
	return json.Marshal(g)
}

func (m *Member) onlyLeading(f func() (int64, error)) (int64, error) {
	if m.Leader() != m.ID() {
		return 0, ErrNotLeader
	}
	return f()
}

func answerLease(body []byte, f func(kv.LeaseID) (leaseAnswer, error)) ([]byte, error) {
	var question leaseQuestion
	if err := json.Unmarshal(body, &question); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	answer, err := f(question.ID)
	if err != nil {
		return nil, toStatus(err)
	}
	return json.Marshal(answer)
}

// callLeader asks the leader about a lease and asks again, until ctx ends, while leadership moves.
func (m *Member) callLeader(ctx context.Context, method string, question leaseQuestion) (answer leaseAnswer, err error) {
	body, err := json.Marshal(question)
	if err != nil {
		return answer, err
	}
	var final error
	err = m.withLeader(ctx, func(ctx context.Context, leader consensus.MemberID) error {
		reply, err := m.askLeader(ctx, leader, method, body)
		if err == nil {
			final = json.Unmarshal(reply, &answer)
			return nil
		}
		if err = fromStatus(err); errors.Is(err, kv.ErrLeaseNotFound) {
			final = err
			return nil
		}
		return err
	})
	return answer, errors.Join(err, final)
}

// withLeader calls ask with the leader of the moment, and again while it fails, for as long as a request may take.
func (m *Member) withLeader(ctx context.Context, ask func(context.Context, consensus.MemberID) error) error {
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, m.options.RequestTimeout)
	defer cancel()
	for {
		changed := m.LeaderChanged()
		leader := m.Leader()
		var err error
		if leader != consensus.NoMember {
			if err = ask(ctx, leader); err == nil {
				return nil
			}
		}
		select {
		case <-changed:
		case <-m.options.tickAfter():
		case <-m.stopping.Done():
			return ErrStopped
		case <-ctx.Done():
			switch {
			case caller.Err() != nil:
				return caller.Err()
			case leader == consensus.NoMember:
				return ErrNoLeader
			}
			return ErrTimeout
		}
	}
}

// askLeader asks another member, or this one if leadership just came here.
func (m *Member) askLeader(
	ctx context.Context, leader consensus.MemberID, method string, body []byte,
) ([]byte, error) {
	if leader == m.ID() {
		return m.Call(ctx, method, body)
	}
	return m.transport.Call(ctx, leader, method, body)
}

// tickAfter paces repeated questions.
func (o *Options) tickAfter() <-chan time.Time { return time.After(5 * o.TickInterval) }

// The errors that cross between members keep their meaning as gRPC codes.
var wireErrors = []struct {
	err  error
	code codes.Code
}{
	{kv.ErrLeaseNotFound, codes.NotFound},
	{ErrNotLeader, codes.FailedPrecondition},
	{ErrNoLeader, codes.Unavailable},
	{kv.ErrCompacted, codes.OutOfRange},
	{kv.ErrFutureRevision, codes.OutOfRange},
}

func toStatus(err error) error {
	for _, w := range wireErrors {
		if errors.Is(err, w.err) {
			return status.Error(w.code, w.err.Error())
		}
	}
	return status.Error(codes.Unknown, err.Error())
}

func fromStatus(err error) error {
	s, ok := status.FromError(err)
	if !ok {
		return err
	}
	for _, w := range wireErrors {
		if s.Code() == w.code && s.Message() == w.err.Error() {
			return w.err
		}
	}
	return err
}

// Describe asks whoever listens at a peer URL about its cluster, for a member that wants to join.
func Describe(ctx context.Context, o transport.Options, url string) (Description, error) {
	var d Description
	reply, err := transport.CallURL(ctx, o, url, methodDescribe, nil)
	if err != nil {
		return d, fromStatus(err)
	}
	return d, json.Unmarshal(reply, &d)
}

// Receive takes messages from other members. It is the transport's handler.
func (m *Member) Receive(messages []consensus.Message) {
	m.inbox.putMessages(m.epochs.State().Admit(messages))
}

// PeerLost tells the core that a connection broke: evidence that the peer died. It is the transport's handler.
func (m *Member) PeerLost(peer consensus.MemberID) { m.inbox.put(raft.Unreachable{Member: peer}) }
