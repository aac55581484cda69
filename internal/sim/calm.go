package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/nextlevel"
	"github.com/quorate/quorate/internal/nativeclient"
	"github.com/quorate/quorate/internal/sim/breaks"
	"github.com/quorate/quorate/internal/sim/check"
	"github.com/quorate/quorate/internal/sim/dice"
	"github.com/quorate/quorate/internal/sim/disk"
	"github.com/quorate/quorate/internal/sim/plan"
)

// calmPhase ends all faults and checks that the cluster heals: it must elect a leader, write through every member, and all
// members must become equal and hold all acknowledged writes; and once more after all of them lost power together.
func (w *World) calmPhase() {
	w.run.calm, w.run.calmed = true, w.run.Now()
	w.heal()
	w.liftQuotas()
	if !w.addresses.settled(w) || !w.joinsSettled() || !w.addresses.settled(w) ||
		!w.probe("after the faults") || !w.goesBackAndForth() || !w.levelRises() || !w.shipsOn() || !w.usersGetThrough() ||
		!w.nativesFollow() || !w.nativesAnswered() || !w.silentForgotten() {
		return
	}
	w.load.Stop()
	if !w.converge() || !w.audit() || !w.offersResume() {
		return
	}
	w.auditLimits()
	for _, h := range w.cluster.up() {
		h.crash()
		h.startAfter(dice.Between(h.rng, 0, 100*time.Millisecond))
	}
	if w.probe("after all lost power") && w.converge() && w.audit() {
		w.auditLimits()
		w.removedAreTold()
	}
}

// removedAreTold lets the world go on as long as a removed member runs, finds the leader, and is not told that it was removed:
// the law says how long that may last.
func (w *World) removedAreTold() {
	untold := func(h *host) bool {
		leader := w.cluster.leader()
		return leader != nil && leader.leads() && h.couldLeave(leader)
	}
	w.runUntil(w.run.Now()+w.patience(), func() bool { return !slices.ContainsFunc(w.cluster.up(), untold) })
}

// heal repairs the network and the disks and starts all members, or just a majority. Machines that belong to no configuration
// run too: a change that adds them may still be under way.
func (w *World) heal() {
	w.cluster.net.healAll()
	quiet := &w.cluster.net.weather
	quiet.Loss, quiet.Dup, quiet.Reorder, quiet.Spike = 0, 0, 0, 0
	config := w.run.suite.CommittedConfig()
	spare := 0
	if w.run.plan.Lossy && !w.run.plan.Reconfigures { // a pending change moves the majority
		spare = (len(config.Voters) - 1) / 2
	}
	for _, h := range w.cluster.list {
		h.disk.Full, h.disk.Broken, h.frozen, h.slow, h.hung = false, false, 0, 0, 0
		if h.run.plan.Upgrades && h.older && w.returns == nil {
			upgrade(h, 0)
		}
		switch {
		case !h.alive && spare > 0 && config.IsVoter(h.id):
			spare--
			h.gone = true // a minority stays down: the others must do without it
		case !h.alive:
			h.startAfter(0)
		}
	}
}

// patience is the time within which a healthy cluster must finish an operation.
func (w *World) patience() time.Duration {
	ticks := 40 * w.run.plan.Raft.ElectionTicks
	if w.run.plan.Mixed {
		ticks *= plan.Slowest
	}
	return 30*time.Second + time.Duration(ticks)*w.run.plan.Tick
}

// probe writes through every member until each has answered once.
func (w *World) probe(when string) bool {
	answered := map[consensus.MemberID]bool{}
	asked := map[consensus.MemberID]int{}
	missing := func() *host {
		if h := w.cluster.lost(); h != nil {
			return h
		}
		for _, h := range w.cluster.members() {
			if !answered[h.id] {
				return h
			}
		}
		return nil
	}
	over := false
	var ask func()
	ask = func() {
		for _, h := range w.cluster.members() {
			if answered[h.id] || !h.serves() || asked[h.id] == h.life {
				continue
			}
			asked[h.id] = h.life
			command := kv.Command{
				Put: &kv.PutOp{Key: fmt.Appendf(nil, "probe/%v", h.id), Value: []byte(when)},
				By:  h.proc.Data.Machine.Users().ByMember(),
			}
			h.proc.Clients.Propose(&command, func(r kv.Result, err error) {
				answered[h.id] = err == nil && r.Err == nil
				if !answered[h.id] {
					asked[h.id] = 0
				}
			})
		}
		if !over { // also when all have answered: a member may have joined before that is noticed
			w.run.After(100*time.Millisecond, ask)
		}
	}
	defer func() { over = true }()
	ask()
	if w.runUntil(w.run.Now()+w.patience(), func() bool { return missing() == nil }) {
		return true
	}
	if h := missing(); h != nil && !w.run.suite.Failed() && !w.cluster.quorumGivenAway() {
		w.run.suite.Report("liveness", fmt.Sprintf("member %v cannot write %s, %v later: %s",
			h.id, when, w.patience(), w.cluster.describe()))
	}
	return false
}

// levelRises waits, in a world without earlier builds, until the level of its build is active at all members: the cluster was
// born at it, so that no policy keeps it down. A member that stays away may never have published its level.
func (w *World) levelRises() bool {
	want := level.Own
	if w.run.plan.Rises {
		want = nextlevel.Level
	}
	members := w.cluster.members()
	if w.run.plan.Older || len(members) < len(w.run.suite.CommittedConfig().IDs()) {
		return true
	}
	below := func(h *host) bool { return !h.serves() || h.proc.Data.Machine.ActiveLevel() < want }
	if w.runUntil(w.run.Now()+w.patience(), func() bool { return !slices.ContainsFunc(w.cluster.members(), below) }) {
		return true
	}
	if !w.run.suite.Failed() {
		_, rise := w.run.suite.Levels()
		w.run.suite.Report("level", fmt.Sprintf("level %d is not active at all members, %v later: %+v; %s", want, w.patience(),
			rise, w.cluster.describe()))
	}
	return false
}

// converge waits until all members have applied the same log, all leases have ended, and watchers have seen all events.
func (w *World) converge() bool {
	why := ""
	equal := func() bool {
		hosts := w.cluster.members()
		for _, h := range hosts {
			if !h.serves() {
				why = "a member is down"
				return false
			}
			if w.run.suite.Changing(h.id) {
				why = fmt.Sprintf("member %v is in the middle of a change", h.id)
				return false
			}
			if a, b := h.proc.Data.Machine.Applied(), hosts[0].proc.Data.Machine.Applied(); a != b {
				why = fmt.Sprintf("member %v has applied %v, member %v %v", h.id, a, hosts[0].id, b)
				return false
			}
		}
		if leases := w.run.suite.Model().Leases(); len(leases) > 0 {
			why = fmt.Sprintf("%d leases do not end", len(leases))
			return false
		}
		if !w.load.CaughtUp(w.run.suite.Model().Revision) {
			why = "a watcher does not catch up"
			return false
		}
		return true
	}
	// Leases of up to a dozen seconds may just have been renewed, and are extended under a new leader.
	end := w.run.Now() + w.patience() + 30*time.Second
	for w.run.Now() < end && !w.run.suite.Failed() {
		if w.runUntil(min(w.run.Now()+time.Second, end), nil); equal() {
			return !w.run.suite.Failed()
		}
	}
	if !w.run.suite.Failed() {
		w.run.suite.Report("liveness", fmt.Sprintf("members do not converge: %s: %s", why, w.cluster.describe()))
	}
	return false
}

// audit compares the stores of all members, and reads a sample of the acknowledged writes from each.
func (w *World) audit() bool {
	w.cluster.compareHashes()
	for _, h := range w.cluster.members() {
		if !h.auditAcks("acknowledged", w.run.suite.Acks.Sample(200)) {
			return false
		}
	}
	return !w.run.suite.Failed()
}

// auditAcks reads acknowledged writes from the store of a member.
func (h *host) auditAcks(property string, acks []check.Ack) bool {
	store := h.proc.Data.Machine.Store()
	for _, ack := range acks {
		if ack.Revision < store.CompactRevision() {
			continue
		}
		result, _, err := store.Range(&kv.RangeOp{Key: []byte(ack.Key), Revision: ack.Revision})
		if err != nil || len(result.KVs) != 1 || string(result.KVs[0].Value) != ack.Value {
			h.run.suite.Report(property, fmt.Sprintf("member %v at the end: %q at revision %d is %v (%v), not %q",
				h.id, ack.Key, ack.Revision, result.KVs, err, ack.Value))
			return false
		}
	}
	return true
}

func newDisk(b *breaks.Set) *disk.FS {
	d := disk.New()
	d.Lying = b.LyingDisk
	return d
}

// nativesAnswered waits until each native client knows what came of all that it had asked: nothing of it is lost in a stream,
// and nothing waits for ever. A member that has no room for results may put a client off for as long as they are kept.
func (w *World) nativesAnswered() bool {
	if slices.ContainsFunc(w.cluster.up(), (*host).putsOff) {
		return true
	}
	w.load.ExpectAnswers()
	answered := func() bool {
		_, owed := w.load.Owed()
		return !owed
	}
	if w.runUntil(w.run.Now()+2*w.patience(), answered) {
		heard := w.run.Now() + nativeclient.DeafAfter + 2*nativeclient.PingInterval // so long a stream may be silent
		return w.run.plan.Mix.Natives == 0 || !w.runUntil(heard, w.run.suite.Failed)
	}
	if client, owed := w.load.Owed(); owed && !w.run.suite.Failed() {
		w.run.suite.Report("client-answer", fmt.Sprintf("native client %d has no answer to what it asked before %v: %s", client,
			w.run.Now()-2*w.patience(), w.cluster.describe()))
	}
	return false
}
