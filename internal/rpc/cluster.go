package rpc

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/rpc/etcderr"
	"github.com/quorate/quorate/internal/rpc/validate"
)

// clusterService is etcd's Cluster service.
type clusterService struct {
	pb.UnsafeClusterServer
	*shared
}

// header is the header of a membership answer, without a revision.
func (c *clusterService) header() *pb.ResponseHeader { return c.headerAt(0).Message() }

// MemberAdd adds a voter or a learner under a new id. An add that is repeated before the member has started, because its answer
// was lost or a tool tries again, returns the existing member: it would be started as that one anyway.
func (c *clusterService) MemberAdd(ctx context.Context, r *pb.MemberAddRequest) (*pb.MemberAddResponse, error) {
	urls, err := validate.PeerURLs(r.PeerURLs)
	if err != nil {
		return nil, rpctypes.ErrGRPCMemberBadURLs
	}
	if c.awaited(urls, r.IsLearner) != nil {
		if again, err := c.addedBefore(ctx, urls, r.IsLearner); again != nil || err != nil {
			return again, err
		}
	}
	if err := c.checkAdd(r.IsLearner); err != nil {
		return nil, err
	}
	return c.add(ctx, urls, r.IsLearner)
}

func (c *clusterService) add(ctx context.Context, urls []string, learner bool) (*pb.MemberAddResponse, error) {
	id, err := newMemberID()
	if err != nil {
		return nil, err
	}
	// A voter is added as a learner, too, and promoted automatically once it has caught up: a member that never starts costs no
	// quorum.
	request := consensus.ChangeOne(consensus.ChangeAddLearner,
		consensus.Member{ID: id, PeerURLs: urls, Promote: !learner})
	members, err := c.change(ctx, request)
	var refused *membership.RefusedError
	if errors.As(err, &refused) && refused.Reason == consensus.ReasonPeerURLExists {
		// This member may not have applied the first add when it checked.
		if again, errRead := c.addedBefore(ctx, urls, learner); again != nil && errRead == nil {
			return again, nil
		}
	}
	if err != nil {
		return nil, err
	}
	added := &pb.Member{ID: uint64(id), PeerURLs: urls, IsLearner: learner}
	return &pb.MemberAddResponse{Header: c.header(), Member: added, Members: members}, nil
}

// addedBefore answers an add with the member that an earlier one added, or returns nil.
func (c *clusterService) addedBefore(
	ctx context.Context, urls []string, learner bool,
) (*pb.MemberAddResponse, error) {
	if err := c.readIndex(ctx); err != nil {
		return nil, err
	}
	found := c.awaited(urls, learner)
	if found == nil {
		return nil, nil
	}
	return &pb.MemberAddResponse{Header: c.header(), Member: found, Members: c.members()}, nil
}

// awaited returns the member with exactly these URLs and this role that has never started, or nil.
func (c *clusterService) awaited(urls []string, learner bool) *pb.Member {
	machine, release := c.options.Member.Machine()
	defer release()
	config, _ := machine.Config()
	for _, m := range memberMessages(machine, config.Settle()) {
		if m.Name == "" && len(m.ClientURLs) == 0 && m.IsLearner == learner && slices.Equal(m.PeerURLs, urls) {
			return m
		}
	}
	return nil
}

// newMemberID draws an id. It is random and not derived from URLs and time, as etcd's is, so that a member that is
// removed and added again under the same URLs is another member. 63 bits keep it positive in signed tools.
func newMemberID() (consensus.MemberID, error) {
	var random [8]byte
	for {
		if _, err := rand.Read(random[:]); err != nil {
			return 0, err
		}
		if id := consensus.MemberID(binary.BigEndian.Uint64(random[:]) >> 1); id != consensus.NoMember {
			return id, nil
		}
	}
}

// MemberRemove removes a member for ever. A leader that is asked to remove itself gives up leadership first.
func (c *clusterService) MemberRemove(
	ctx context.Context, r *pb.MemberRemoveRequest,
) (*pb.MemberRemoveResponse, error) {
	id := consensus.MemberID(r.ID)
	if id == consensus.NoMember {
		return nil, rpctypes.ErrGRPCMemberNotFound
	}
	if err := c.checkRemove(id); err != nil {
		return nil, err
	}
	c.handOver(ctx, id)
	members, err := c.change(ctx, consensus.ChangeOne(consensus.ChangeRemove, consensus.Member{ID: id}))
	if err != nil {
		return nil, err
	}
	return &pb.MemberRemoveResponse{Header: c.header(), Members: members}, nil
}

// handOver transfers leadership before this member, which leads, removes itself, so that writes wait at most for a round trip.
// If that fails, the change is made all the same: the leader then hands over when it commits.
func (c *clusterService) handOver(ctx context.Context, leaving consensus.MemberID) {
	m := c.options.Member
	if leaving != m.ID() || m.Leader() != leaving {
		return
	}
	status := m.Status()
	to := status.Heir()
	if to == consensus.NoMember {
		return
	}
	if err := m.TransferLeadership(ctx, to); err != nil {
		c.options.Logger.WarnContext(ctx, "could not hand over before removing myself", "peer", to.String(), "err", err)
	}
}

// MemberUpdate changes a member's peer URLs. etcd accepts anything here; a URL to which no member could connect is refused.
func (c *clusterService) MemberUpdate(
	ctx context.Context, r *pb.MemberUpdateRequest,
) (*pb.MemberUpdateResponse, error) {
	urls, err := validate.PeerURLs(r.PeerURLs)
	if err != nil {
		return nil, rpctypes.ErrGRPCMemberBadURLs
	}
	if r.ID == 0 {
		return nil, rpctypes.ErrGRPCMemberNotFound
	}
	members, err := c.change(ctx, consensus.ChangeOne(consensus.ChangeUpdate,
		consensus.Member{ID: consensus.MemberID(r.ID), PeerURLs: urls}))
	if err != nil {
		return nil, err
	}
	return &pb.MemberUpdateResponse{Header: c.header(), Members: members}, nil
}

// MemberPromote makes a learner a voter. The leader decides whether it has caught up.
func (c *clusterService) MemberPromote(
	ctx context.Context, r *pb.MemberPromoteRequest,
) (*pb.MemberPromoteResponse, error) {
	id := consensus.MemberID(r.ID)
	if id == consensus.NoMember {
		return nil, rpctypes.ErrGRPCMemberNotFound
	}
	if err := c.checkPromote(); err != nil {
		return nil, err
	}
	members, err := c.change(ctx, consensus.ChangeOne(consensus.ChangePromote, consensus.Member{ID: id}))
	if err != nil {
		c.stats.promoteFailed(etcderr.Wire(err))
		return nil, err
	}
	c.stats.promoted.Add(1)
	return &pb.MemberPromoteResponse{Header: c.header(), Members: members}, nil
}

// MemberList lists the members: linearizable, or as this member knows them.
func (c *clusterService) MemberList(ctx context.Context, r *pb.MemberListRequest) (*pb.MemberListResponse, error) {
	if r.Linearizable {
		if err := c.readIndex(ctx); err != nil {
			return nil, err
		}
	}
	return &pb.MemberListResponse{Header: c.header(), Members: c.members()}, nil
}

// change makes a configuration change and returns the members after it. If it left a joint configuration, whose outgoing voters
// still vote, the answer shows the new one.
func (c *clusterService) change(ctx context.Context, request consensus.ChangeRequest) ([]*pb.Member, error) {
	config, err := c.options.Member.ChangeConfig(ctx, request)
	if err != nil {
		return nil, err
	}
	machine, release := c.options.Member.Machine()
	defer release()
	return memberMessages(machine, config.Settle()), nil
}

func (c *clusterService) members() []*pb.Member {
	machine, release := c.options.Member.Machine()
	defer release()
	config, _ := machine.Config()
	return memberMessages(machine, config)
}

// memberMessages returns the members in etcd's terms. Name and client URLs are set once the member published them. In a joint
// configuration every member with a vote is listed and, as etcd has no third role, as a voter.
func memberMessages(machine *apply.Machine, config consensus.Config) []*pb.Member {
	members := make([]*pb.Member, 0, len(config.Members))
	for i := range config.Members {
		m := &config.Members[i]
		message := &pb.Member{
			ID: uint64(m.ID), PeerURLs: slices.Clone(m.PeerURLs), IsLearner: config.IsLearner(m.ID) && !m.Promote,
		}
		if published, ok := machine.Published(m.ID); ok {
			message.Name, message.ClientURLs = published.Name, slices.Clone(published.ClientURLs)
		}
		members = append(members, message)
	}
	return members
}

// nameOf is the name of a member; its id if the configuration in force has none.
func (s *shared) nameOf(id consensus.MemberID) string {
	config := s.options.Member.Status().Config
	if m, known := config.Member(id); known && m.Name != "" {
		return m.Name
	}
	return id.String()
}
