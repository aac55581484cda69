package sim

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/sim/places"
)

// Ensure that a member that was down while another one moved finds that one when it leads: it asks the others for the address.
// If it does not ask, it knows no leader as long as that one leads.
func TestHost_learn(t *testing.T) {
	for _, asks := range []bool{false, true} {
		w, err := newWorld(Options{Seed: 1, Members: 5, Nemesis: "none"})
		if err != nil {
			t.Fatal(err)
		}
		plan := w.run.plan // no operator helps: there is no nemesis of addresses
		plan.Identity, plan.Jobs, plan.Addresses = true, true, true
		w.run.broken.AsksNobody = !asks
		await := func(what string, met func() bool) {
			t.Helper()
			if !w.runUntil(w.run.Now()+time.Minute, met) {
				t.Fatalf("%s: not within a minute: %v: %s", what, w.run.suite.Violations, w.cluster.describe())
			}
		}
		c := w.cluster
		await("a leader", func() bool { return c.leader() != nil && len(c.up()) == 5 })
		first, rest := c.led()
		late, mover := rest[0], rest[1]
		late.crash()

		mover.crash()
		old := mover.url
		mover.url, mover.advertised, mover.settled = "http://10.9.9.9:2380", "http://10.9.9.9:2380", w.run.Now()
		c.places.Settle(old, places.Place{Kind: places.Nobody})
		c.settle(mover)
		mover.startAfter(0)
		await("the configuration has it where it is", func() bool {
			config := w.run.suite.CommittedConfig()
			m, _ := config.Member(mover.id)
			return len(m.DialURLs()) == 1 && m.PeerURLs[0] == mover.url
		})
		await("it leads", func() bool {
			if first = c.leader(); first != nil && first != mover {
				first.proc.Put(raft.Transfer{To: mover.id})
			}
			return mover.leads()
		})

		late.startAfter(0)
		heard := w.runUntil(w.run.Now()+20*time.Second, func() bool {
			return late.proc != nil && late.proc.Node.Replica().Leader() != consensus.NoMember
		})
		if heard != asks {
			t.Errorf("asks: %t, hears the leader: %t: %s", asks, heard, c.describe())
		}
		if asks && !w.runUntil(w.run.Now()+20*time.Second, func() bool {
			config, _ := late.proc.Data.Machine.Config()
			m, _ := config.Member(mover.id)
			return m.PeerURLs[0] == mover.url && c.net.reaches(late, mover)
		}) {
			t.Errorf("it does not catch up: %s", c.describe())
		}
	}
}
