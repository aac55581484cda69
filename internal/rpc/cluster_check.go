package rpc

import (
	"slices"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/rpc/etcderr"
)

// The checks that etcd makes at the member that answers, before a change is proposed, unless StrictReconfig is off. The leader
// makes its own, which these cannot replace: it knows which members follow it.

// voters are the voters that the checks count.
type voters struct {
	ids     []consensus.MemberID
	learner map[consensus.MemberID]bool
	started map[consensus.MemberID]bool // published a name
}

func (c *clusterService) voters() voters {
	machine, release := c.options.Member.Machine()
	defer release()
	config, _ := machine.Config()
	v := voters{
		ids:     slices.Clone(config.Voters),
		learner: make(map[consensus.MemberID]bool),
		started: make(map[consensus.MemberID]bool),
	}
	for i := range config.Members {
		id := config.Members[i].ID
		v.learner[id] = config.IsLearner(id)
		published, ok := machine.Published(id)
		v.started[id] = ok && published.Name != ""
	}
	return v
}

// countStarted counts the started voters other than except.
func (v *voters) countStarted(except consensus.MemberID) int {
	n := 0
	for _, id := range v.ids {
		if id != except && v.started[id] {
			n++
		}
	}
	return n
}

// countConnected counts the voters to which this member has had a working connection for long enough, and itself.
func (c *clusterService) countConnected(v *voters) int {
	now := c.options.Clock.Now()
	n := 0
	for _, id := range v.ids {
		since, ok := c.options.ConnectedSince(id)
		if id == consensus.MemberID(c.self) || ok && now.Sub(since) > healthInterval {
			n++
		}
	}
	return n
}

func majority(n int) int { return n/2 + 1 }

// checkAdd refuses an add that could cost the quorum: a voter while too many others have not started, or any member while this
// one is not connected to a quorum of the larger cluster, in which the new member counts as down.
func (c *clusterService) checkAdd(learner bool) error {
	if !c.options.StrictReconfig {
		return nil
	}
	v := c.voters()
	if started := v.countStarted(consensus.NoMember); !learner && started < majority(len(v.ids)+1) {
		// Growing from one member to two is the way to restore a cluster.
		if started != 1 || len(v.ids) != 1 {
			return etcderr.ErrNotEnoughStarted
		}
	}
	if len(v.ids) > 1 && c.countConnected(&v) < majority(len(v.ids)+1) {
		return rpctypes.ErrGRPCUnhealthy
	}
	return nil
}

// checkRemove refuses to remove a voter if the remaining ones would not be a working quorum. A voter that is not connected is
// not part of the quorum now, so it may go.
func (c *clusterService) checkRemove(id consensus.MemberID) error {
	if !c.options.StrictReconfig {
		return nil
	}
	v := c.voters()
	if v.learner[id] {
		return nil
	}
	others := len(v.ids)
	if slices.Contains(v.ids, id) {
		others--
	}
	if v.countStarted(id) < majority(others) {
		return etcderr.ErrNotEnoughStarted
	}
	if _, connected := c.options.ConnectedSince(id); !connected && id != consensus.MemberID(c.self) {
		return nil
	}
	if c.countConnected(&v)-1 < majority(len(v.ids)-1) {
		return rpctypes.ErrGRPCUnhealthy
	}
	return nil
}

// checkPromote refuses a promotion while too many voters have not started. The learner counts as started. The leader checks
// whether it is a learner at all: this member may not have applied its addition yet.
func (c *clusterService) checkPromote() error {
	v := c.voters()
	if c.options.StrictReconfig && 1+v.countStarted(consensus.NoMember) < majority(len(v.ids)+1) {
		return etcderr.ErrNotEnoughStarted
	}
	return nil
}
