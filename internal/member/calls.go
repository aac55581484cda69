package member

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/lease"
	"github.com/quorate/quorate/internal/member/clients"
	"github.com/quorate/quorate/internal/member/expiry"
	"github.com/quorate/quorate/internal/member/integrity"
	"github.com/quorate/quorate/internal/member/lanes"
	"github.com/quorate/quorate/internal/member/peercall"
	"github.com/quorate/quorate/internal/member/raising"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/membership/autopilot"
	"github.com/quorate/quorate/internal/transport"
)

// Bounds, in bytes, of the answers of a member. The process that answers at a URL may be any process.
const (
	// errorAnswer bounds the part that every answer may have: an error, with a text that may name some members and URLs.
	errorAnswer = 64 << 10
	// configAnswer bounds an answer that names all members, or a job or a plan about some of them: a member with the most and
	// the longest URLs takes 13 KiB, others some hundred bytes.
	configAnswer = 1 << 20
	// placesAnswer bounds the addresses of all members. A member may ask at 128 URLs at once, which may all lead to one
	// process.
	placesAnswer = 256 << 10
	// viewAnswer bounds the leader's view: the state of each member, the configuration, and the ids of removed members.
	viewAnswer = 4 << 20
	// MostGreeting bounds an identity.Greeting: that of a process that founds a cluster names the data directory of each
	// member.
	MostGreeting = 128 << 10
)

// Calls between members. Those about leases, clients and comparisons are frequent, and are lists of numbers. Those about
// members are rare, and are JSON, as the rows of jobs are.
var (
	// Calls to the leader.
	methodRenew = peercall.Method[[]kv.LeaseID, []lease.Renewal]{
		Name: "lease.renewals", Question: leaseIDsCodec, Answer: renewalsCodec,
		MostAnswer: errorAnswer + 2*binary.MaxVarintLen64*expiry.MaxBatchLeases,
	}
	methodTTL = peercall.Method[kv.LeaseID, leaseTTL]{
		Name: "lease.ttl", Question: leaseIDCodec, Answer: leaseTTLCodec, MostAnswer: errorAnswer,
	}
	methodHeard = peercall.Method[[]consensus.MemberID, peercall.Nothing]{
		Name: "clients.heard", Question: memberIDsCodec, Answer: peercall.Empty(), MostAnswer: errorAnswer,
	}
	methodPaused = peercall.Method[peercall.Nothing, pausedAnswer]{
		Name: "levels.paused", Question: peercall.Empty(), Answer: peercall.JSON[pausedAnswer](), MostAnswer: errorAnswer,
	}
	methodView = peercall.Method[peercall.Nothing, clusterAnswer]{
		Name: "membership.view", Fenced: true, Question: peercall.Empty(), Answer: peercall.JSON[clusterAnswer](),
		MostAnswer: viewAnswer,
	}
	methodPlan = peercall.Method[membership.Spec, membership.Plan]{
		Name: "membership.plan", Fenced: true,
		Question: peercall.JSON[membership.Spec](), Answer: peercall.JSON[membership.Plan](), MostAnswer: configAnswer,
	}
	methodStart = peercall.Method[startQuestion, membership.Job]{
		Name: "membership.start", Fenced: true,
		Question: peercall.JSON[startQuestion](), Answer: peercall.JSON[membership.Job](), MostAnswer: configAnswer,
	}
	methodCancel = peercall.Method[membership.JobID, membership.Job]{
		Name: "membership.cancel", Fenced: true,
		Question: peercall.JSON[membership.JobID](), Answer: peercall.JSON[membership.Job](), MostAnswer: configAnswer,
	}
	methodJoinStep = peercall.Method[autopilot.JoinQuestion, autopilot.JoinStep]{
		Name: "membership.join", Fenced: true,
		Question: peercall.JSON[autopilot.JoinQuestion](), Answer: peercall.JSON[autopilot.JoinStep](),
		MostAnswer: configAnswer,
	}
	methodMovedStep = peercall.Method[movedQuestion, peercall.Nothing]{
		Name: "membership.moved", Fenced: true, Question: peercall.JSON[movedQuestion](), Answer: peercall.Empty(),
		MostAnswer: errorAnswer,
	}
	// Calls to any member, which asks the leader.
	methodJoin = peercall.Method[autopilot.JoinRequest, autopilot.JoinAnswer]{
		Name:     "cluster.join",
		Question: peercall.JSON[autopilot.JoinRequest](), Answer: peercall.JSON[autopilot.JoinAnswer](),
		MostAnswer: configAnswer,
	}
	methodMoved = peercall.Method[movedQuestion, peercall.Nothing]{
		Name: "cluster.moved", Question: peercall.JSON[movedQuestion](), Answer: peercall.Empty(), MostAnswer: errorAnswer,
	}
	// Calls to any member, which answers them itself.
	methodVerdict = peercall.Method[peercall.Nothing, raising.Verdict]{
		Name: "levels.verdict", Question: peercall.Empty(), Answer: peercall.JSON[raising.Verdict](), MostAnswer: errorAnswer,
	}
	methodDescribe = peercall.Method[peercall.Nothing, Description]{
		Name: "cluster.describe", Question: peercall.Empty(), Answer: peercall.JSON[Description](),
		MostAnswer: configAnswer,
	}
	methodAddresses = peercall.Method[peercall.Nothing, autopilot.Whereabouts]{
		Name: "cluster.addresses", Question: peercall.Empty(), Answer: peercall.JSON[autopilot.Whereabouts](),
		MostAnswer: placesAnswer,
	}
)

// integrityMethod is a call to any member that compares it with the caller.
func integrityMethod(kind integrity.Kind) *peercall.Method[integrity.Question, integrity.Answer] {
	return &peercall.Method[integrity.Question, integrity.Answer]{
		Name: string(kind), Question: integrityQuestionCodec, Answer: integrityAnswerCodec,
		MostAnswer: errorAnswer,
	}
}

// MethodGreet asks for an identity.Greeting of the process that listens. Processes that found a cluster ask each other, too.
const MethodGreet = "identity.greet"

// OpenMethods are the calls that every process may make: a process that wants to join has no identity yet, and one that asks at
// a member's former address where the members are may not reach a member.
func OpenMethods() []string {
	return []string{MethodGreet, methodDescribe.Name, methodAddresses.Name, methodJoin.Name}
}

// MovedMethods are the calls that a member may make whose address differs from the configuration: it reports its address.
func MovedMethods() []string { return []string{methodMoved.Name} }

// faults are the errors that keep their type between members.
var faults = peercall.Faults{
	peercall.Detailed[membership.BlockedError](1),
	peercall.Detailed[membership.RefusedError](2),
	peercall.Detailed[membership.SpecError](3),
	peercall.Detailed[membership.AddressError](4),
	peercall.Sentinel(5, true, membership.ErrJobNotFound),
	peercall.Sentinel(6, true, membership.ErrTooManyJobs),
	peercall.Sentinel(7, true, membership.ErrAlreadyStarted),
	peercall.Sentinel(8, true, membership.ErrJobFailed),
	peercall.Sentinel(9, true, ErrTooLarge),
	peercall.Sentinel(10, true, kv.ErrLeaseNotFound),
	peercall.Sentinel(11, false, ErrNotLeader),
	peercall.Sentinel(12, false, ErrNoLeader),
}

// leaseTTL is the leader's answer about a lease, in seconds.
type leaseTTL struct{ remaining, granted int64 }

// startQuestion asks the leader to start a job.
type startQuestion struct {
	ID   membership.JobID `json:"id"`
	Spec membership.Spec  `json:"spec"`
}

// clusterAnswer is the leader's view of its cluster.
type clusterAnswer struct {
	View membership.View `json:"view"`
	Term consensus.Term  `json:"term"`
}

// movedQuestion reports the present address of a member.
type movedQuestion struct {
	ID   consensus.MemberID `json:"id"`
	URLs []string           `json:"urls"`
}

var (
	leaseIDCodec = peercall.Numbers(1, 1,
		func(id kv.LeaseID) []uint64 { return []uint64{uint64(id)} },
		func(n []uint64) kv.LeaseID { return kv.LeaseID(n[0]) })
	leaseTTLCodec = peercall.Numbers(2, 2,
		func(l leaseTTL) []uint64 { return []uint64{uint64(l.remaining), uint64(l.granted)} },
		func(n []uint64) leaseTTL { return leaseTTL{remaining: int64(n[0]), granted: int64(n[1])} })
	leaseIDsCodec = peercall.Numbers(1, expiry.MaxBatchLeases,
		func(ids []kv.LeaseID) []uint64 {
			n := make([]uint64, len(ids))
			for i, id := range ids {
				n[i] = uint64(id)
			}
			return n
		},
		func(n []uint64) []kv.LeaseID {
			ids := make([]kv.LeaseID, len(n))
			for i := range n {
				ids[i] = kv.LeaseID(n[i])
			}
			return ids
		})
	renewalsCodec  = peercall.Numbers(2, 2*expiry.MaxBatchLeases, splitRenewals, joinRenewals)
	memberIDsCodec = peercall.Numbers(0, clients.MaxHeardClients,
		func(ids []consensus.MemberID) (n []uint64) {
			for _, id := range ids {
				n = append(n, uint64(id))
			}
			return n
		},
		func(n []uint64) (ids []consensus.MemberID) {
			for _, id := range n {
				ids = append(ids, consensus.MemberID(id))
			}
			return ids
		})
	integrityQuestionCodec = peercall.Numbers(1, 1,
		func(q integrity.Question) []uint64 { return []uint64{q.At} },
		func(n []uint64) integrity.Question { return integrity.Question{At: n[0]} })
	integrityAnswerCodec = peercall.Numbers(4, 4,
		func(a integrity.Answer) []uint64 {
			known := uint64(0)
			if a.Known {
				known = 1
			}
			return []uint64{known, a.Base, a.At, a.Sum}
		},
		func(n []uint64) integrity.Answer {
			return integrity.Answer{Known: n[0] != 0, Base: n[1], At: n[2], Sum: n[3]}
		})
)

// Outcomes of a renewal, as members encode them.
const (
	renewed uint64 = iota
	renewalNotFound
	renewalExpired
)

// splitRenewals encodes each renewal as two numbers: its outcome and its TTL.
func splitRenewals(all []lease.Renewal) []uint64 {
	n := make([]uint64, 0, 2*len(all))
	for i := range all {
		outcome := renewed
		switch {
		case errors.Is(all[i].Err, kv.ErrLeaseNotFound):
			outcome = renewalNotFound
		case all[i].Err != nil:
			outcome = renewalExpired // the caller asks again in a moment
		}
		n = append(n, outcome, uint64(all[i].TTLSeconds))
	}
	return n
}

// joinRenewals decodes renewals. It takes an unknown outcome for renewalExpired, after which the caller asks again.
func joinRenewals(n []uint64) []lease.Renewal {
	all := make([]lease.Renewal, len(n)/2)
	for i := range all {
		all[i].TTLSeconds = int64(n[2*i+1])
		switch n[2*i] {
		case renewed:
		case renewalNotFound:
			all[i].Err = kv.ErrLeaseNotFound
		default:
			all[i].Err = lease.ErrExpired
		}
	}
	return all
}

// newCaller makes the member's caller of other members, with an empty table of the calls that this member answers.
func newCaller(o *Options, stopping context.Context, ports callPorts, views *leaderView) *peercall.Caller {
	table := peercall.NewTable(faults, func(ctx context.Context, asks consensus.ConfigID) error {
		view, _, err := views.view(ctx)
		if err == nil && view.ID.Index < asks.Index {
			err = ErrNotLeader
		}
		return err
	})
	return peercall.NewCaller(table, ports, peercall.Options{
		Timeout: o.RequestTimeout, Poll: 5 * o.TickInterval, Stopping: stopping,
		NoLeader: ErrNoLeader, TimedOut: ErrTimeout, Stopped: ErrStopped,
	})
}

// callPorts implement, for a member, the port of package peercall.
type callPorts struct {
	leader *lanes.KnownLeader
	config *appliedConfig
	peers  *peers
}

func (p callPorts) ID() consensus.MemberID { return p.leader.Self() }

func (p callPorts) Leader() consensus.MemberID { return p.leader.Leader() }

func (p callPorts) LeaderChanged() <-chan struct{} { return p.leader.LeaderChanged() }

func (p callPorts) Applied() consensus.ConfigID {
	_, id := p.config.withID()
	return id
}

func (p callPorts) Call(
	ctx context.Context, to consensus.MemberID, method string, body []byte, most int,
) ([]byte, error) {
	return p.peers.transport.Call(ctx, to, method, body, most)
}

// callURL calls the process that listens at a peer URL, for a caller that is no member yet.
func callURL[Q, A any](
	ctx context.Context, o transport.Options, url string, m *peercall.Method[Q, A], q Q,
) (answer A, err error) {
	body, err := peercall.Encode(m, consensus.ConfigID{}, q)
	if err != nil {
		return answer, err
	}
	raw, err := transport.CallURL(ctx, o, url, m.Name, body, m.MostAnswer)
	if err != nil {
		return answer, err
	}
	return peercall.Decode(faults, m, raw)
}
