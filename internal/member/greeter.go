package member

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/limits/memory"
	"github.com/quorate/quorate/internal/member/epoch"
	"github.com/quorate/quorate/internal/member/peercall"
	"github.com/quorate/quorate/internal/membership/autopilot"
	"github.com/quorate/quorate/internal/transport"
)

// Description is a member's answer to a process that wants to join.
type Description struct {
	Cluster consensus.ClusterID `json:"cluster"`
	Epoch   consensus.Epoch     `json:"epoch"`
	Members []consensus.Member  `json:"members"`
	// Learners are the ids among Members that are learners.
	Learners []consensus.MemberID `json:"learners,omitempty"`
	// Published are the ids among Members that have been up once, Bound those that have a data directory bound.
	Published []consensus.MemberID `json:"published,omitempty"`
	Bound     []consensus.MemberID `json:"bound,omitempty"`
	Level     level.Level          `json:"level"` // the active feature level
	// NeedsMemory is the least --memory, in bytes, with which a process can hold the leases of the cluster.
	NeedsMemory int64 `json:"needs_memory,omitempty"`
}

var errNoCluster = status.Error(codes.Unavailable, "member: it does not know its cluster yet")

// Describe asks the process at a peer URL about its cluster, for a process that wants to join.
func Describe(ctx context.Context, o transport.Options, url string) (Description, error) {
	return callURL(ctx, o, url, &methodDescribe, peercall.Nothing{})
}

// greeter tells other processes the identity of this member. They need not be members.
type greeter struct {
	claim     identity.Claim
	config    *appliedConfig
	epochs    *epoch.Monitor
	readIndex func(ctx context.Context) error
	connected func(id consensus.MemberID) bool
}

// serve answers processes that want to join, and members that look for other members.
func (g *greeter) serve(t *peercall.Table) {
	peercall.Serve(t, &methodDescribe, g.describe)
	peercall.Serve(t, &methodAddresses, g.addresses)
}

// addresses returns the addresses of all members as they are applied here. It needs no leader: the caller may need the
// addresses to find one.
func (g *greeter) addresses(context.Context, peercall.Nothing) (autopilot.Whereabouts, error) {
	config, id := g.config.withID()
	if len(config.Members) == 0 {
		return autopilot.Whereabouts{}, errNoCluster
	}
	return autopilot.NewWhereabouts(&g.claim, &config, id), nil
}

func (g *greeter) describe(ctx context.Context, _ peercall.Nothing) (Description, error) {
	if err := g.readIndex(ctx); err != nil {
		return Description{}, err
	}
	machine, release := g.config.stores.Machine()
	defer release()
	config, _ := machine.Config()
	d := Description{Cluster: g.claim.Cluster, Epoch: g.claim.Epoch, Members: autopilot.WithoutStorage(config.Members),
		Learners: config.Learners, Level: machine.ActiveLevel(),
		NeedsMemory: memory.Needed(machine.LeaseBytes())}
	for i, known := range config.Members {
		if !known.Storage.IsZero() {
			d.Bound = append(d.Bound, known.ID)
		}
		if published, is := machine.Published(known.ID); is {
			d.Published = append(d.Published, known.ID)
			d.Members[i].Name = cmp.Or(published.Name, known.Name)
		}
	}
	return d, nil
}

// greet returns the identity of this member and the binding of the caller, which may have lost its disk. It does not show the
// bindings of other members: those are for members only.
func (g *greeter) greet(ctx context.Context) ([]byte, error) {
	config, caller := g.config.now(), transport.CallerClaim(ctx)
	if len(config.Members) == 0 {
		return nil, errNoCluster
	}
	g.epochs.Meet(caller, transport.CallerEvidence(ctx))
	greeting := identity.Greeting{Claim: g.claim, Stage: identity.Founded}
	if known, ok := config.Member(caller.Member); ok {
		greeting.Bindings = identity.Line(&known, caller.Storage)
		if config.BindingOf(known.ID, caller.Storage) == consensus.BindingOther && g.connected(known.ID) {
			greeting.Elsewhere = strings.Join(known.PeerURLs, ",")
		}
	}
	return json.Marshal(greeting)
}
