package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/sim/dice"
)

// strikeImpatient is an operator who takes a rebooting voter for lost, and wants another member to replace it, at its URL.
func (w *World) strikeImpatient() {
	rng, leader := w.run.lies, w.cluster.leader()
	if leader == nil || leader.pilot == nil || w.cluster.lost() != nil {
		return
	}
	up := w.cluster.up()
	h := up[rng.IntN(len(up))]
	config := leader.proc.Node.Replica().Status().Config
	known, _ := config.Member(h.id)
	if h == leader || len(up) < 3 || !config.IsVoter(h.id) {
		return
	}
	h.crash()
	h.startAfter(dice.Between(rng, 3*time.Second, 8*time.Second))
	w.run.struck("impatient", fmt.Sprint(h.slot))
	spec := membership.Spec{
		Kind: membership.KindReplace, Remove: []consensus.MemberID{h.id},
		Add: []membership.Newcomer{{Name: known.Name + "-new", PeerURLs: known.PeerURLs}},
	}
	leader.after(2500*time.Millisecond, func() {
		leader.proc.Clients.Read(func() {
			id := membership.JobID(rng.Uint64()>>1 | 1)
			_, _ = leader.pilot.requests.Start(context.Background(), id, &spec) // it is refused, whatever the error
		})
	})
}

// judgeReset checks a job that begins: no voter is replaced by another member at its address while its disk is whole, unless
// the request gives a reason.
func (c *cluster) judgeReset(spec *membership.Spec, config *consensus.Config) {
	for _, id := range spec.Remove {
		h := c.hosts[id]
		known, ok := config.Member(id)
		if spec.Force != "" || h == nil || h.impostor != "" || !ok || !config.IsVoter(id) {
			continue
		}
		for i := range spec.Add {
			if membership.SameURLs(known.PeerURLs, spec.Add[i].PeerURLs) {
				c.run.suite.Report("reset",
					fmt.Sprintf("member %v, whose disk is whole, loses its place to one at its address", id))
			}
		}
	}
}
