package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/sim/changes"
	"github.com/quorate/quorate/internal/sim/dice"
	"github.com/quorate/quorate/internal/sim/places"
)

// cluster is the machines and the network between them.
type cluster struct {
	run       *run
	net       *network
	hosts     map[consensus.MemberID]*host
	list      []*host // by slot
	configs   map[consensus.MemberID]raft.ConfigInForce
	pastIDs   []consensus.ConfigID // of every configuration that was in force on some member
	lives     int
	drawn     uint64  // ids for members that join
	survivors []*host // recovered from a lost quorum
	places    places.Map
	asked     changes.Asked

	changing func(h *host, event raft.Event) // called with each event about a change of the configuration
	disowned func(h *host)                   // called with each host that has lost its disk
}

// firstConfig is the first configuration of a cluster of n voters, before the first entry of the log.
func firstConfig(n int) consensus.SnapshotMeta {
	var config consensus.Config
	for i := range n {
		m := describeMember(i)
		config.Voters = append(config.Voters, m.ID)
		config.Members = append(config.Members, m)
	}
	return consensus.Founding(config)
}

func describeMember(slot int) consensus.Member { return changes.Describe(consensus.MemberID(slot + 1)) }

// members returns the running hosts that belong to the last committed configuration.
func (c *cluster) members() []*host {
	config := c.run.suite.CommittedConfig()
	return slices.DeleteFunc(c.present(), func(h *host) bool { return !config.Contains(h.id) })
}

func (c *cluster) describe() string {
	text := ""
	for _, h := range c.present() {
		if !h.serves() {
			text += fmt.Sprintf("[%v down] ", h.id)
			continue
		}
		s := h.proc.Node.Replica().Status()
		text += fmt.Sprintf("[%v %v term=%d leader=%v commit=%d applied=%d last=%d config=%v %v%v] ", h.id, s.Role, s.Term,
			s.Leader, s.Commit, s.Applied, s.LastIndex, s.ConfigID, s.Config.Voters, s.Config.Outgoing)
	}
	return text
}

// leader returns the member that leads in the highest term.
func (c *cluster) leader() (found *host) {
	for _, h := range c.up() {
		if h.leads() && (found == nil || h.proc.Node.Replica().Term() > found.proc.Node.Replica().Term()) {
			found = h
		}
	}
	return found
}

// anyData reports whether a first member has more on its disk than the record of a founding.
func (c *cluster) anyData() bool {
	for _, h := range c.list {
		if exists, err := datadir.Exists(h.options()); exists || err != nil {
			return true
		}
	}
	return false
}

// nobodyKnows reports whether no other first member has the founding members on its disk: if h loses its disk then, it is as
// new as before.
func (c *cluster) nobodyKnows(h *host) bool {
	for _, other := range c.list {
		record, err := datadir.ReadFounding(other.options())
		if other != h && (err != nil || record.Bindings != nil) {
			return false
		}
	}
	return !c.anyData()
}

// lost returns a host that lost its disk and is still in the committed configuration; nil if there is none.
func (c *cluster) lost() *host {
	config := c.run.suite.CommittedConfig()
	for _, h := range c.list {
		if h.impostor != "" && h.original == nil && !h.gone && config.Contains(h.id) {
			return h
		}
	}
	return nil
}

// victim draws a running member, the leader more often than others.
func (c *cluster) victim() *host {
	up := c.up()
	if len(up) == 0 {
		return nil
	}
	if dice.Chance(c.run.rng, 0.4) {
		for _, h := range up {
			if h.proc.Node.Replica().Leader() == h.id {
				return h
			}
		}
	}
	return up[c.run.rng.IntN(len(up))]
}

func (c *cluster) anybody() *host {
	if up := c.up(); len(up) > 0 {
		return up[c.run.rng.IntN(len(up))]
	}
	return nil
}

func newCluster(r *run, rng *rand.Rand) *cluster {
	c := &cluster{run: r, hosts: map[consensus.MemberID]*host{}, configs: map[consensus.MemberID]raft.ConfigInForce{}}
	c.net = &network{
		run: r, cluster: c, rng: rng, weather: r.plan.Weather, links: map[[2]int]*link{},
	}
	return c
}

// led returns the leader, nil if there is none, and the other running hosts.
func (c *cluster) led() (leader *host, rest []*host) {
	for _, h := range c.up() {
		if h.proc.Node.Replica().Leader() == h.id {
			leader = h
		} else {
			rest = append(rest, h)
		}
	}
	return leader, rest
}

// addHost adds a machine that is not running yet.
func (c *cluster) addHost(seed uint64, id consensus.MemberID, base consensus.SnapshotMeta) *host {
	h := c.addMachine(seed, id, base)
	c.hosts[id] = h
	c.settle(h)
	return h
}

// addMachine adds a machine whose process has no address that leads to it.
func (c *cluster) addMachine(seed uint64, id consensus.MemberID, base consensus.SnapshotMeta) *host {
	slot := len(c.list)
	rng := dice.Stream(seed, uint64(streamHosts+slot))
	h := &host{
		run: c.run, cluster: c, slot: slot, id: id, base: base, rng: rng, disk: newDisk(&c.run.broken), suite: c.run.suite,
		actions: c.run.actions.Member(id), address: addressOf(describeMember(slot).PeerURLs[0]),
	}
	h.wall.Rate = 1 + c.run.plan.Drift*(2*rng.Float64()-1)
	if skews := dice.Stream(seed, uint64(streamClocks+slot)); c.run.plan.Skew > 0 && dice.Chance(skews, 0.7) {
		h.wall.Offset = dice.Between(skews, -c.run.plan.Skew, c.run.plan.Skew)
	}
	if dates := dice.Stream(seed, uint64(streamDates+slot)); c.run.plan.Dates > 0 {
		h.date = dice.Between(dates, -c.run.plan.Dates, c.run.plan.Dates)
	}
	c.list = append(c.list, h)
	return h
}

// compareHashes hashes all stores at the newest revision that every running member has, and asks each for the
// configuration that it stored.
func (c *cluster) compareHashes() {
	up := c.up()
	if len(up) == 0 {
		return
	}
	least := up[0].proc.Data.Machine.Store().Revision()
	for _, h := range up {
		least = min(least, h.proc.Data.Machine.Store().Revision())
	}
	for _, h := range up {
		var gone []consensus.MemberID
		for _, tomb := range h.proc.Data.Machine.Tombstones() {
			gone = append(gone, tomb.Member)
		}
		meta := h.proc.Data.Machine.SnapshotMeta()
		c.run.suite.Stored(h.id, &meta, gone)
		machine := h.proc.Data.Machine
		c.run.suite.Leveled(h.id, machine.Applied().Index, machine.ActiveLevel(), machine.Rise())
		h.checkPast()
		c.run.suite.Backed(h.id, machine.Applied().Index, machine.Backup())
		h.checkAudit()
		store := h.proc.Data.Machine.Store()
		if store.CompactRevision() >= least {
			continue
		}
		hash, compacted, _, err := store.HashKV(least)
		if err != nil {
			c.run.suite.Report("state-machine", fmt.Sprintf("member %v cannot hash revision %d: %v", h.id, least, err))
			return
		}
		c.run.suite.Hashed(h.id, least, compacted, hash)
	}
}

// up returns the hosts whose process runs, by slot.
func (c *cluster) up() []*host {
	var up []*host
	for _, h := range c.list {
		if h.alive && h.proc != nil && h.impostor == "" {
			up = append(up, h)
		}
	}
	return up
}

// present returns the members' hosts that were not removed.
func (c *cluster) present() []*host {
	return slices.DeleteFunc(slices.Clone(c.list), func(h *host) bool { return h.gone || h.impostor != "" })
}
