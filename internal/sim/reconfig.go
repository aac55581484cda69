package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

const (
	maxHosts  = 12
	maxVoters = 6
)

// strikeMembership asks some member for a change that makes sense, or not, in the configuration that it knows.
func (w *World) strikeMembership() {
	up := w.up()
	if len(up) == 0 {
		return
	}
	asked := up[w.rng.IntN(len(up))]
	config, ok := w.configs[asked.id]
	if !ok || len(config.Voters) == 0 {
		return
	}
	request := w.drawChange(&config)
	w.struck("membership", fmt.Sprintf("%v of member %v at %d", request.Steps[0].Kind, request.Steps[0].Member.ID, asked.slot))
	_, err := asked.node.ChangeConfig(request, completion(func(_ kv.Result, err error) {
		if err == nil {
			w.counts.Changes++
		}
	}))
	if err != nil {
		return
	}
	asked.wake(w.plan.loop)
}

func (w *World) drawChange(config *consensus.Config) consensus.ChangeRequest {
	member := func(id consensus.MemberID) consensus.Member { return describeMember(int(id) - 1) }
	some := func(ids []consensus.MemberID) consensus.Member { return member(ids[w.rng.IntN(len(ids))]) }
	switch draw := w.rng.IntN(10); {
	case draw < 3 && len(config.Learners) > 0:
		return consensus.ChangeOne(consensus.ChangePromote, some(config.Learners))
	case draw < 6 && len(w.list) < maxHosts && len(config.Voters) < maxVoters:
		// The machine is there before the cluster knows it, with nothing on its disk.
		h := w.addHost(w.rng.Uint64(), consensus.MemberID(len(w.list)+1), consensus.SnapshotMeta{})
		h.startAfter(between(w.rng, 0, 2*time.Second))
		kind := pick(w.rng, consensus.ChangeAddLearner, consensus.ChangeAddLearner, consensus.ChangeAddVoter)
		return consensus.ChangeOne(kind, member(h.id))
	case draw < 8 && len(config.Members) > 1:
		return consensus.ChangeOne(consensus.ChangeRemove, some(config.IDs()))
	case draw == 8:
		m := some(config.IDs())
		m.PeerURLs = []string{fmt.Sprintf("http://10.1.%d.%d:2380", w.rng.IntN(250), m.ID)}
		return consensus.ChangeOne(consensus.ChangeUpdate, m)
	}
	// Somebody asks for what cannot be: a member that was removed or never was, or a promotion of a voter.
	gone := slices.DeleteFunc(slices.Clone(w.list), func(h *host) bool { return config.Contains(h.id) })
	if len(gone) > 0 {
		kind := pick(w.rng, consensus.ChangeAddLearner, consensus.ChangePromote, consensus.ChangeRemove)
		return consensus.ChangeOne(kind, member(gone[w.rng.IntN(len(gone))].id))
	}
	return consensus.ChangeOne(consensus.ChangePromote, some(config.Voters))
}
