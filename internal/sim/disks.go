package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/datadir"
	"github.com/quorate/quorate/internal/sim/dice"
	"github.com/quorate/quorate/internal/sim/disk"
	"github.com/quorate/quorate/internal/storage/wal"
)

// Why a process is not the member that it calls itself.
const (
	wiped      = "lost its disk"
	rolledBack = "was put back from an older copy of its disk"
	forgetful  = "was put back from a copy that was made while it ran"
	copied     = "runs on a copy of the disk of a member that runs"
)

// disks are the faults of identity. They are drawn from a stream of their own, so that the seeds of other faults keep their
// meaning, and are drawn rarely: with them every stream begins with a handshake and every disk has a name.
var disks = []nemesis{
	{"wipe", "a member loses its disk, and the operator resets it later", 4 * time.Second, nil, (*World).strikeWipe},
	{"roll-back", "an older copy of its disk is put back under a member", 4 * time.Second, nil, (*World).strikeRollBack},
	{"forget", "a copy of its disk that was made a moment ago, while it ran, is put back under a member", 3 * time.Second, nil,
		(*World).strikeForget},
	{"clone", "a copy of a member's disk is started beside it, or in another's place", 4 * time.Second, nil,
		(*World).strikeClone},
	{"wrong-address", "the address of a member leads to another one for a while", 3 * time.Second, nil,
		(*World).strikeAddress},
	{"found", "the members found the cluster by themselves, one comes late, and some crash or lose their disks meanwhile",
		500 * time.Millisecond, func(p *plan, rng *rand.Rand) { p.founds, p.late = true, dice.Between(rng, 0, 15*time.Second) },
		(*World).strikeFounding},
	{"found-majority", "the same without losses, as with --founding=majority", time.Second, func(p *plan, rng *rand.Rand) {
		p.founds, p.byMajority, p.late = true, true, dice.Between(rng, 0, 15*time.Second)
	}, nil},
	{"mixed", "each start of a member draws its election timeout, lease and ways to write anew", time.Second,
		func(p *plan, _ *rand.Rand) { p.mixed = true }, nil},
	{"wipe-most", "all members but one lose their disks: the cluster must refuse to serve", 3 * time.Second,
		nil, (*World).strikeWipeMost},
	{"recover", "a majority is lost for good, a survivor is recovered, and some of the others come back", 3 * time.Second,
		inEpochs, (*World).strikeRecover},
	{"recover-apart", "the same, and two survivors are recovered apart", 3 * time.Second, inEpochs,
		(*World).strikeRecoverApart},
	{"recover-by-mistake", "a member is recovered while the majority serves", 8 * time.Second, inEpochs,
		(*World).strikeMistake},
}

func inEpochs(p *plan, _ *rand.Rand) { p.recovers = true }

// mayLose reports whether a member may lose what it has without any loss by the law: by every configuration that may count,
// it and those that are lost already are a minority.
func (w *World) mayLose(h *host) bool {
	if w.plan.byMajority || w.calm || w.refusing {
		return false // empty disks may found a second cluster then: docs/adr/0020-who-may-vote.md
	}
	lost := map[consensus.MemberID]bool{h.id: true}
	for _, other := range w.list {
		if other.impostor != "" && other.original == nil && !other.gone {
			lost[other.id] = true
		}
	}
	for _, config := range w.suite.Configs() {
		n := 0
		for _, id := range config.IDs() {
			if lost[id] {
				n++
			}
		}
		for _, set := range [][]consensus.MemberID{config.Voters, config.Outgoing} {
			if len(set) > 0 && 2*n >= len(set) {
				return false
			}
		}
	}
	return true
}

// loser draws a member that runs and may lose its disk.
func (w *World) loser(fit func(*host) bool) *host {
	fitting := slices.DeleteFunc(w.up(), func(h *host) bool { return !w.mayLose(h) || fit != nil && !fit(h) })
	if len(fitting) == 0 {
		return nil
	}
	return fitting[w.spoil.IntN(len(fitting))]
}

func (w *World) strikeWipe() {
	h := w.loser(nil)
	if h == nil {
		return
	}
	byHand := len(h.base.Config.Members) > 0 && dice.Chance(w.spoil, 0.3)
	w.struck("wipe", fmt.Sprintf("%d, made anew by hand: %t", h.slot, byHand))
	h.crash()
	h.empty()
	if byHand {
		h.remake()
	}
	h.startAfter(dice.Between(w.spoil, 10*time.Millisecond, 5*time.Second))
}

// empty takes away everything that a machine has on its disk.
func (h *host) empty() {
	h.stopFounding()
	h.emptied++
	h.disk, h.saved = newDisk(&h.w.broken), nil
	h.disown(wiped)
	h.w.After(cureScan, func() { h.w.cure(h) })
}

// remake is what an operator may do who knows too much: a directory for the old member id, with nothing in it.
func (h *host) remake() {
	config := h.firstConfig()
	for i := range config.Members {
		if config.Members[i].ID == h.id {
			config.Members[i].Storage = h.storageID()
		}
	}
	own := wal.Identity{Cluster: clusterID, Member: h.id, Storage: h.storageID()}
	if err := datadir.Create(h.options(), own, config); err != nil {
		h.w.suite.Report("recovery", err.Error())
	}
}

// keepCopy makes a copy of the disk of a process that has just ended.
func (h *host) keepCopy() {
	if h.w.plan.identity && h.impostor == "" && dice.Chance(h.w.spoil, 0.5) {
		h.saved, h.savedAt = h.disk.Copy(), h.proc.Data.Boots
	}
}

func (w *World) strikeRollBack() {
	h := w.loser(func(h *host) bool { return h.saved != nil && h.savedAt < h.proc.Data.Boots })
	if h == nil {
		if h = w.victim(); h != nil { // somebody must stop before a copy can be made
			h.crash()
			h.startAfter(dice.Between(w.spoil, 10*time.Millisecond, time.Second))
		}
		return
	}
	w.struck("roll-back", fmt.Sprintf("%d to start %d", h.slot, h.savedAt))
	h.crash()
	h.disk, h.saved = h.saved.Crash(disk.KeepAll, h.rng), nil
	h.disown(rolledBack)
	w.After(cureScan, func() { w.cure(h) })
	h.startAfter(dice.Between(w.spoil, 10*time.Millisecond, 2*time.Second))
}

// strikeForget puts back, under a follower, what its disk held before it acknowledged more to the leader.
func (w *World) strikeForget() {
	leader := w.leader()
	h := w.loser(func(h *host) bool { return h != leader })
	if h == nil || leader == nil {
		return
	}
	kept, held := h.disk.Copy(), w.suite.Durable(h.id)
	life, term, led := h.life, leader.proc.Node.Replica().Term(), leader.life
	w.After(dice.Between(w.spoil, 50*time.Millisecond, time.Second), func() {
		now := leader.alive && leader.life == led && leader.leads() && leader.proc.Node.Replica().Term() == term
		if !now || !h.alive || h.life != life || !w.mayLose(h) {
			return
		}
		forgot := leader.acknowledged(h.id)
		if forgot <= held {
			return
		}
		w.struck("forget", fmt.Sprintf("%d what it acknowledged after %d", h.slot, held))
		h.crash()
		h.disk, h.saved = kept.Crash(disk.LoseAll, h.rng), nil
		h.disown(forgetful)
		h.witness, h.term, h.forgot = leader, term, forgot
		w.After(cureScan, func() { w.cure(h) })
		h.startAfter(dice.Between(w.spoil, 10*time.Millisecond, time.Second))
	})
}

// acknowledged returns how far a leader knows the log of a member.
func (h *host) acknowledged(id consensus.MemberID) consensus.Index {
	for _, p := range h.proc.Node.Replica().Status().Progress {
		if p.ID == id {
			return p.Match
		}
	}
	return 0
}

// strikeClone starts a copy of the disk of a member that runs, on a machine of its own, or on that of another member.
func (w *World) strikeClone() {
	up := w.up()
	if len(up) < 2 || slices.ContainsFunc(w.list, func(h *host) bool { return h.original != nil && !h.gone }) {
		return
	}
	at := w.spoil.IntN(len(up))
	h, other := up[at], up[(at+1)%len(up)]
	instead := dice.Chance(w.spoil, 0.4)
	w.struck("clone", fmt.Sprintf("of %d, instead of %d: %t", h.slot, other.slot, instead))
	clone := w.addMachine(w.spoil.Uint64(), h.id, h.base)
	clone.disk, clone.emptied = h.disk.Copy().Crash(dice.Pick(w.spoil, disk.KeepAll, disk.LoseAll), clone.rng), h.emptied
	clone.disown(copied)
	clone.original = h
	if instead {
		other.crash()
		w.net.astray[other.id] = clone
	}
	clone.startAfter(dice.Between(w.spoil, 0, 50*time.Millisecond))
	w.After(dice.Between(w.spoil, time.Second, 5*time.Second), func() {
		clone.gone = true // somebody has noticed
		if clone.alive {
			clone.down()
		}
		if instead {
			delete(w.net.astray, other.id)
			other.startAfter(0)
		}
	})
}

func (w *World) strikeAddress() {
	up := w.up()
	if len(up) < 2 {
		return
	}
	at := w.spoil.IntN(len(up))
	h, other := up[at], up[(at+1)%len(up)]
	if w.net.astray[h.id] != nil {
		return
	}
	w.struck("wrong-address", fmt.Sprintf("of %d leads to %d", h.slot, other.slot))
	w.net.astray[h.id] = other
	w.After(dice.Between(w.spoil, 100*time.Millisecond, 5*time.Second), func() { delete(w.net.astray, h.id) })
}

// strikeFounding hits one that has no data yet.
func (w *World) strikeFounding() {
	var founding []*host
	for _, h := range w.present() {
		if h.founding != nil {
			founding = append(founding, h)
		}
	}
	if len(founding) == 0 {
		return
	}
	h := founding[w.spoil.IntN(len(founding))]
	h.stopFounding()
	if lose := dice.Chance(w.spoil, 0.3) && w.mayLose(h); lose {
		w.struck("found", fmt.Sprintf("%d loses its disk", h.slot))
		h.empty()
		if w.nobodyKnows(h) {
			h.impostor, h.suite = "", w.suite
		}
	} else {
		w.struck("found", fmt.Sprintf("%d crashes", h.slot))
		h.disk = h.disk.Crash(h.crashMode(), h.rng)
	}
	h.startAfter(dice.Between(w.spoil, 10*time.Millisecond, 2*time.Second))
}

// strikeWipeMost leaves one disk. What the others held is lost, and nothing may serve from now on.
func (w *World) strikeWipeMost() {
	config := w.suite.CommittedConfig()
	if len(config.Voters) < 2 || len(w.up()) == 0 || w.refusing || w.Now() < w.plan.faults/3 {
		return
	}
	survivor := config.Voters[w.spoil.IntN(len(config.Voters))]
	w.struck("wipe-most", fmt.Sprintf("but %v", survivor))
	w.refusing = true
	for _, h := range w.present() {
		if h.alive {
			h.crash()
		}
		if h.id != survivor {
			h.empty()
		}
		h.startAfter(dice.Between(w.spoil, 10*time.Millisecond, 8*time.Second))
	}
}

// refusalPhase sees that a cluster that lost most of its disks serves nobody and founds nothing.
func (w *World) refusalPhase() {
	w.runUntil(w.Now()+refusalSettles, nil)
	before := w.suite.Acks.Len()
	elections := w.counts.Elections
	w.runUntil(w.Now()+refusalLasts, nil)
	if n := w.suite.Acks.Len() - before; n > 0 || w.counts.Elections > elections {
		w.suite.Report("refusal", fmt.Sprintf("after all disks but one were lost, %d writes were acknowledged and %d leaders "+
			"elected", n, w.counts.Elections-elections))
	}
}

const (
	refusalSettles = 10 * time.Second
	refusalLasts   = 20 * time.Second
)
