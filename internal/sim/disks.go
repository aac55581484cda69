package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/sim/check"
	"github.com/quorate/quorate/internal/sim/dice"
	"github.com/quorate/quorate/internal/sim/disk"
	"github.com/quorate/quorate/internal/storage/wal"
)

// Reasons for which a process is not the member that it claims to be.
const (
	wiped      = "lost its disk"
	rolledBack = "was put back from an older copy of its disk"
	forgetful  = "was put back from a copy that was made while it ran"
	copied     = "runs on a copy of the disk of a member that runs"
	leftOver   = "is of another history"
)

// diskFaults are the faults of identity, and those that lose a quorum.
type diskFaults struct {
	run       *run
	cluster   *cluster
	operators *operators // notified of lost disks
	rng       *rand.Rand
}

// mayLose reports whether a member may lose its data without a loss by the law: in every configuration that may count, also
// after a requested change, this member and those that are lost already are a minority. Members that are gone for ever count as
// lost: a configuration that counts for some members may still have them.
func (d *diskFaults) mayLose(h *host) bool {
	if d.run.plan.ByMajority || d.run.calm || d.run.refusing {
		return false // empty disks could found a second cluster: docs/adr/0020-who-may-vote.md
	}
	leaving := d.cluster.asked.Leaving()
	d.run.suite.Jobs.Leaving(leaving)
	lost := map[consensus.MemberID]bool{h.id: true}
	for _, other := range d.cluster.list {
		if other.original == nil && other.gone {
			lost[other.id] = true
		}
	}
	return !lostHalf(d.cluster, d.run.suite, lost, leaving)
}

// lostHalf adds the members that have lost their disks to lost, and reports whether these are half of the voters.
func lostHalf(c *cluster, suite *check.Suite, lost, leaving map[consensus.MemberID]bool) bool {
	for _, other := range c.list {
		if other.original == nil && other.impostor != "" {
			lost[other.id] = true
		}
	}
	return check.LostHalf(suite.Configs(), lost, leaving)
}

// quorumGivenAway reports whether an operator removed members while others had lost their disks, so that half of the voters are
// lost. That is possible only without --strict-reconfig-check, and such a cluster need not do anything.
func (c *cluster) quorumGivenAway() bool {
	return !c.run.plan.Raft.StrictReconfig && lostHalf(c, c.run.suite, map[consensus.MemberID]bool{}, nil)
}

// loser draws a running member that may lose its disk.
func (d *diskFaults) loser(fit func(*host) bool) *host {
	fitting := slices.DeleteFunc(d.cluster.up(), func(h *host) bool { return !d.mayLose(h) || fit != nil && !fit(h) })
	if len(fitting) == 0 {
		return nil
	}
	return fitting[d.rng.IntN(len(fitting))]
}

func (d *diskFaults) strikeWipe() {
	h := d.loser(nil)
	if h == nil {
		return
	}
	byHand := len(h.base.Config.Members) > 0 && dice.Chance(d.rng, 0.3)
	d.run.struck("wipe", fmt.Sprintf("%d, made anew by hand: %t", h.slot, byHand))
	h.crash()
	h.empty()
	if byHand {
		h.remake()
	}
	h.startAfter(dice.Between(d.rng, 10*time.Millisecond, 5*time.Second))
}

// empty removes everything from a machine's disk.
func (h *host) empty() {
	h.stopFounding()
	h.emptied++
	h.disk, h.saved = newDisk(&h.run.broken), nil
	h.disown(wiped)
	h.cluster.disowned(h)
}

// remake is a mistake of an expert operator: it creates a directory for the old member id, with nothing in it but the first
// configuration, as the other members have it.
func (h *host) remake() {
	config := h.firstConfig()
	for i := range config.Members {
		m := &config.Members[i]
		if at := slices.IndexFunc(h.began, func(b identity.Bound) bool { return b.Member == m.ID }); at >= 0 {
			m.Storage = h.began[at].Storage
		}
		if m.ID == h.id {
			m.Storage = h.storageID()
		}
	}
	own := wal.Identity{Cluster: clusterID, Member: h.id, Storage: h.storageID()}
	if err := datadir.Create(h.options(), own, config); err != nil {
		h.run.suite.Report("recovery", err.Error())
	}
}

// keepCopy copies the disk of a process that has just ended.
func (h *host) keepCopy() {
	if h.run.plan.Identity && h.impostor == "" && dice.Chance(h.run.spoil, 0.5) {
		h.saved, h.savedAt = h.disk.Copy(), h.proc.Data.Boots
	}
}

func (d *diskFaults) strikeRollBack() {
	h := d.loser(func(h *host) bool { return h.saved != nil && h.savedAt < h.proc.Data.Boots })
	if h == nil {
		if h = d.cluster.victim(); h != nil { // a member must stop before its disk can be copied
			h.crash()
			h.startAfter(dice.Between(d.rng, 10*time.Millisecond, time.Second))
		}
		return
	}
	d.run.struck("roll-back", fmt.Sprintf("%d to start %d", h.slot, h.savedAt))
	h.crash()
	h.disk, h.saved = h.saved.Crash(disk.KeepAll, h.rng), nil
	h.disown(rolledBack)
	d.operators.lookAfter(h)
	h.startAfter(dice.Between(d.rng, 10*time.Millisecond, 2*time.Second))
}

// strikeForget puts back, under a follower, an earlier state of its disk, before entries that it acknowledged to the leader.
func (d *diskFaults) strikeForget() {
	leader := d.cluster.leader()
	h := d.loser(func(h *host) bool { return h != leader })
	if h == nil || leader == nil {
		return
	}
	kept, held := h.disk.Copy(), d.run.suite.Durable(h.id)
	life, term, led := h.life, leader.proc.Node.Replica().Term(), leader.life
	d.run.After(dice.Between(d.rng, 50*time.Millisecond, time.Second), func() {
		now := leader.alive && leader.life == led && leader.leads() && leader.proc.Node.Replica().Term() == term
		if !now || !h.alive || h.life != life || !d.mayLose(h) {
			return
		}
		forgot := leader.acknowledged(h.id)
		if forgot <= held {
			return
		}
		d.run.struck("forget", fmt.Sprintf("%d what it acknowledged after %d", h.slot, held))
		h.crash()
		h.disk, h.saved = kept.Crash(disk.LoseAll, h.rng), nil
		h.disown(forgetful)
		h.witness, h.term, h.forgot = leader, term, forgot
		d.operators.lookAfter(h)
		h.startAfter(dice.Between(d.rng, 10*time.Millisecond, time.Second))
	})
}

// acknowledged returns the index up to which a leader knows the log of a member.
func (h *host) acknowledged(id consensus.MemberID) consensus.Index {
	for _, p := range h.proc.Node.Replica().Status().Progress {
		if p.ID == id {
			return p.Match
		}
	}
	return 0
}

// twice reports whether there is a second process for a member.
func (c *cluster) twice() bool {
	return slices.ContainsFunc(c.list, func(h *host) bool { return h.original != nil && !h.gone })
}

// strikeClone starts a copy of the disk of a running member, on a machine of its own, or on that of another member.
func (d *diskFaults) strikeClone() {
	up := d.cluster.up()
	if len(up) < 2 || d.cluster.twice() {
		return
	}
	drawn := d.rng.IntN(len(up))
	h, other := up[drawn], up[(drawn+1)%len(up)]
	at := other.url
	instead := dice.Chance(d.rng, 0.4)
	d.run.struck("clone", fmt.Sprintf("of %d, instead of %d: %t", h.slot, other.slot, instead))
	clone := d.cluster.addMachine(d.rng.Uint64(), h.id, h.base)
	clone.disk, clone.emptied = h.disk.Copy().Crash(dice.Pick(d.rng, disk.KeepAll, disk.LoseAll), clone.rng), h.emptied
	clone.disown(copied)
	clone.original = h
	if instead {
		other.crash()
		d.cluster.divert(other, clone)
	}
	clone.startAfter(dice.Between(d.rng, 0, 50*time.Millisecond))
	d.run.After(dice.Between(d.rng, time.Second, 5*time.Second), func() {
		clone.gone = true // an operator has noticed it
		if clone.alive {
			clone.down()
		}
		if instead {
			d.cluster.places.Restore(at)
			other.startAfter(0)
		}
	})
}

// strikeOtherHistory starts, in place of a member, a leftover member of another cluster with the same id and members, whose
// disks were others.
func (d *diskFaults) strikeOtherHistory() {
	up := d.cluster.up()
	if len(up) < 2 || d.run.plan.ByMajority || d.cluster.twice() {
		return
	}
	h := up[d.rng.IntN(len(up))]
	config := h.base.Config.Clone() // both clusters had the same first members
	url := h.url
	if !config.Contains(h.id) || d.cluster.places.Diverted(url) {
		return
	}
	d.run.struck("other-history", fmt.Sprintf("in the place of %d", h.slot))
	for i := range config.Members {
		config.Members[i].Storage = storageOf(config.Members[i].ID, otherDisk)
	}
	other := d.cluster.addMachine(d.rng.Uint64(), h.id, consensus.SnapshotMeta{Config: config})
	other.emptied = otherDisk
	other.disown(leftOver)
	other.original = h
	own := wal.Identity{Cluster: clusterID, Member: h.id, Storage: other.storageID()}
	if err := datadir.Create(other.options(), own, config); err != nil {
		d.run.suite.Report("recovery", err.Error())
	}
	h.crash()
	d.cluster.divert(h, other)
	other.startAfter(dice.Between(d.rng, 0, 50*time.Millisecond))
	d.run.After(dice.Between(d.rng, time.Second, 5*time.Second), func() {
		other.gone = true // an operator has noticed it
		if other.alive {
			other.down()
		}
		d.cluster.places.Restore(url)
		h.startAfter(0)
	})
}

// otherDisk is how often the disks of another history were emptied: more often than any disk of this cluster.
const otherDisk = 255

func (d *diskFaults) strikeAddress() {
	up := d.cluster.up()
	if len(up) < 2 {
		return
	}
	at := d.rng.IntN(len(up))
	h, other := up[at], up[(at+1)%len(up)]
	url := h.url
	if d.cluster.places.Diverted(url) {
		return
	}
	d.run.struck("wrong-address", fmt.Sprintf("of %d leads to %d", h.slot, other.slot))
	d.cluster.divert(h, other)
	d.run.After(dice.Between(d.rng, 100*time.Millisecond, 5*time.Second), func() { d.cluster.places.Restore(url) })
}

// strikeFounding strikes a member that has no data yet.
func (d *diskFaults) strikeFounding() {
	var founding []*host
	for _, h := range d.cluster.present() {
		if h.founding != nil {
			founding = append(founding, h)
		}
	}
	if len(founding) == 0 {
		return
	}
	h := founding[d.rng.IntN(len(founding))]
	h.stopFounding()
	if lose := dice.Chance(d.rng, 0.3) && d.mayLose(h); lose {
		d.run.struck("found", fmt.Sprintf("%d loses its disk", h.slot))
		h.empty()
		for _, other := range d.cluster.list { // the last record of an earlier disk may be lost with this one
			if d.cluster.nobodyKnows(other) {
				other.impostor, other.suite = "", d.run.suite
			}
		}
	} else {
		d.run.struck("found", fmt.Sprintf("%d crashes", h.slot))
		h.disk = h.disk.Crash(h.crashMode(), h.rng)
	}
	h.startAfter(dice.Between(d.rng, 10*time.Millisecond, 2*time.Second))
}

// strikeWipeMost empties all disks but one. The data of the other members is lost, and the cluster must not serve from now on.
func (d *diskFaults) strikeWipeMost() {
	config := d.run.suite.CommittedConfig()
	if len(config.Voters) < 2 || len(d.cluster.up()) == 0 || d.run.refusing || d.run.Now() < d.run.plan.Faults/3 {
		return
	}
	survivor := config.Voters[d.rng.IntN(len(config.Voters))]
	d.run.struck("wipe-most", fmt.Sprintf("but %v", survivor))
	d.run.refusing = true
	for _, h := range d.cluster.present() {
		if h.alive {
			h.crash()
		}
		if h.id != survivor {
			h.empty()
		}
		h.startAfter(dice.Between(d.rng, 10*time.Millisecond, 8*time.Second))
	}
}

// refusalPhase checks that a cluster that lost most of its disks serves no client and elects no leader.
func (w *World) refusalPhase() {
	w.runUntil(w.run.Now()+refusalSettles, nil)
	before := w.run.suite.Acks.Len()
	elections := w.run.counts.Elections
	w.runUntil(w.run.Now()+refusalLasts, nil)
	if n := w.run.suite.Acks.Len() - before; n > 0 || w.run.counts.Elections > elections {
		w.run.suite.Report("refusal", fmt.Sprintf("after all disks but one were lost, %d writes were acknowledged and "+
			"%d leaders elected", n, w.run.counts.Elections-elections))
	}
}

const (
	refusalSettles = 10 * time.Second
	refusalLasts   = 20 * time.Second
)
