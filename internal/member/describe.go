package member

import (
	"context"
	"encoding/json"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/autopilot"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/peercall"
	"github.com/quorate/quorate/internal/transport"
)

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

// Describe asks whoever listens at a peer URL about its cluster, for a member that wants to join.
func Describe(ctx context.Context, o transport.Options, url string) (Description, error) {
	return callURL(ctx, o, url, &methodDescribe, peercall.Nothing{})
}

func (m *Member) describe(ctx context.Context, _ peercall.Nothing) (Description, error) {
	if err := m.ReadIndex(ctx); err != nil {
		return Description{}, err
	}
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
	return d, nil
}

// greet says who this member is, and how the caller, which may have lost its disk, is bound here. What others are bound to is
// for members only.
func (m *Member) greet(ctx context.Context) ([]byte, error) {
	config, caller := m.config.now(), transport.CallerClaim(ctx)
	if len(config.Members) == 0 {
		return nil, status.Error(codes.Unavailable, "member: it does not know its cluster yet")
	}
	m.epochs.Meet(caller)
	g := identity.Greeting{Claim: m.claim(), Stage: identity.Founded}
	if known, ok := config.Member(caller.Member); ok {
		g.Bindings = identity.Line(&known, caller.Storage)
	}
	return json.Marshal(g)
}
