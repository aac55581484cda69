package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/recovery"
	"github.com/quorate/quorate/internal/sim/diary"
	"github.com/quorate/quorate/internal/sim/dice"
	"github.com/quorate/quorate/internal/sim/disk"
)

// ofAnotherEpoch is the reason why a recovered member does not count for the cluster that it left.
const ofAnotherEpoch = "was recovered apart"

// recoverAlone makes a member that does not run the only voter of its cluster, as `quorate recover` does.
func (h *host) recoverAlone(others []datadir.Options) bool {
	held, records := h.run.suite.HeldBy(h.id)
	recovery, err := recoverData(h.options(), others)
	if err != nil {
		h.run.trace.Note(h.run.Now(), h.slot, diary.Fail, 2, 0, 0, err.Error)
		return false // it is alone, or was removed, or never learned of a cluster
	}
	h.disown(ofAnotherEpoch)
	h.held = held
	if recovery.Conflicting == 0 { // else it is unknown which of two records was acknowledged
		h.held = append(h.held, records...)
	}
	h.run.counts.Recoveries++
	h.run.counts.Adopted += uint64(recovery.Adopted)
	return true
}

// recoverData makes the member with this data the only voter of its cluster, in the next epoch. others are the directories
// that the operator compares with it. None of the members may run. It writes what an operator's command does: one append to
// the log.
func recoverData(options datadir.Options, others []datadir.Options) (*recovery.Plan, error) {
	survivor, err := recovery.Inspect(options)
	if err != nil {
		return nil, err
	}
	var compared []*recovery.Survivor
	for _, other := range others {
		s, err := recovery.Inspect(other)
		if err != nil {
			return nil, err
		}
		compared = append(compared, s)
	}
	plan, err := survivor.Plan(nil, compared...)
	if err != nil {
		return nil, err
	}
	return plan, plan.Write(options)
}

func (d *diskFaults) strikeRecover()      { d.loseQuorum("recover", 1) }
func (d *diskFaults) strikeRecoverApart() { d.loseQuorum("recover-apart", 2) }

// loseQuorum stops all members, recovers survivors separately, and lets some of the others come back.
func (d *diskFaults) loseQuorum(name string, survivors int) {
	config := d.run.suite.CommittedConfig()
	hosts := slices.DeleteFunc(d.cluster.present(), func(h *host) bool { return !config.IsVoter(h.id) })
	if d.run.refusing || d.run.Now() < d.run.plan.Faults/3 || len(hosts) <= survivors {
		return
	}
	for _, h := range d.cluster.up() {
		h.crash()
	}
	d.rng.Shuffle(len(hosts), func(i, j int) { hosts[i], hosts[j] = hosts[j], hosts[i] })
	for _, h := range hosts {
		if len(d.cluster.survivors) == survivors {
			break
		}
		var compared []datadir.Options
		if other := hosts[d.rng.IntN(len(hosts))]; other != h && other.impostor == "" && dice.Chance(d.rng, 0.5) {
			compared = append(compared, other.options())
		}
		if h.recoverAlone(compared) {
			d.cluster.survivors = append(d.cluster.survivors, h)
		}
	}
	if d.run.refusing = len(d.cluster.survivors) > 0; d.run.refusing {
		d.run.struck(name, fmt.Sprintf("%d of %d", len(d.cluster.survivors), len(hosts)))
	}
	for _, h := range d.cluster.present() {
		if h.gone = d.run.refusing && dice.Chance(d.rng, 0.4); !h.gone {
			h.startAfter(dice.Between(d.rng, 0, 8*time.Second))
		}
	}
	for _, h := range d.cluster.survivors {
		h.startAfter(dice.Between(d.rng, 10*time.Millisecond, 2*time.Second))
	}
}

// strikeMistake recovers a member that was only down, while the others serve. They must go on.
func (d *diskFaults) strikeMistake() {
	h := d.loser(nil)
	if h == nil {
		return
	}
	h.crash()
	if h.recoverAlone(nil) {
		d.run.struck("recover-by-mistake", fmt.Sprint(h.slot))
		d.operators.lookAfter(h)
		d.operators.mistakes = append(d.operators.mistakes, h)
		d.run.After(cureScan, d.operators.wayOut)
	}
	h.startAfter(dice.Between(d.rng, 10*time.Millisecond, 2*time.Second))
}

// wayOut is the operator who reads why members serve nothing: members that were recovered by mistake are stopped for ever, and
// the superseded ones are started again.
func (o *operators) wayOut() {
	o.run.After(cureScan, o.wayOut)
	for _, h := range o.cluster.up() {
		if h.epochs.State(o.run.Now()) != identity.Superseded {
			continue
		}
		for _, mistaken := range o.mistakes {
			if mistaken.alive {
				mistaken.disk = mistaken.disk.Crash(disk.KeepAll, mistaken.rng)
				mistaken.down()
			}
			mistaken.ended = true
		}
		h.crash()
		h.startAfter(dice.Between(o.run.spoil, 10*time.Millisecond, time.Second))
	}
}

// recoveredPhase checks that a recovered member serves, with all writes that its disk alone proves, and that two members that
// were recovered separately know of each other.
func (w *World) recoveredPhase() {
	w.run.calm = true
	w.heal()
	answered := map[consensus.MemberID]bool{}
	var ask func()
	ask = func() {
		for _, h := range w.cluster.survivors {
			if h.alive && h.leads() && !answered[h.id] {
				command := kv.Command{
					By:  h.proc.Data.Machine.Users().ByMember(), // as the member itself: no user logs in here
					Put: &kv.PutOp{Key: []byte("recovered"), Value: fmt.Append(nil, h.id)},
				}
				h.proc.Clients.Propose(&command, func(r kv.Result, err error) {
					answered[h.id] = answered[h.id] || err == nil && r.Err == nil
				})
			}
		}
		w.run.After(time.Second, ask)
	}
	ask()
	done := func() bool {
		return !slices.ContainsFunc(w.cluster.survivors, func(h *host) bool { return !answered[h.id] })
	}
	if !w.runUntil(w.run.Now()+w.patience(), done) {
		w.run.suite.Report("recovery", fmt.Sprintf("who was recovered does not serve: %v of %d", answered,
			len(w.cluster.survivors)))
		return
	}
	w.runUntil(w.run.Now()+epochsMeet, nil)
	for _, h := range w.cluster.survivors {
		w.auditHeld(h)
		if h.alive && len(w.cluster.survivors) > 1 && !h.epochs.MetAny() {
			w.run.suite.Report("recovery", fmt.Sprintf("member %v was recovered apart from another one and never noticed",
				h.id))
		}
	}
}

// epochsMeet is enough time for two rounds of greetings.
const epochsMeet = 40 * time.Second

// auditHeld reads the writes that a recovered member had to keep.
func (w *World) auditHeld(h *host) {
	if !h.alive {
		w.run.suite.Report("recovery", fmt.Sprintf("member %v, which was recovered, does not run", h.id))
		return
	}
	h.auditAcks("recovery", h.held)
}

// lookAround asks the known members for their epochs. The member does not campaign before it was done once.
func (h *host) lookAround() {
	h.epochs.Ask()
	for _, id := range h.knownPeers() {
		h.askEpoch(id)
	}
	h.after(h.extension(), func() { h.after(h.epochs.Asked(), h.lookAround) })
}

// knownPeers are the members whose addresses this one has: of its configuration, and those that its recovery dropped.
func (h *host) knownPeers() []consensus.MemberID {
	config := h.proc.Node.Replica().InForce().Config
	ids := config.IDs()
	if dropped, err := h.proc.Data.Dropped(); err == nil {
		for i := range dropped {
			ids = append(ids, dropped[i].ID)
		}
	}
	return slices.DeleteFunc(ids, func(id consensus.MemberID) bool { return id == h.id })
}

// askEpoch asks the process at the address of a member for its epoch.
func (h *host) askEpoch(id consensus.MemberID) {
	urls, life := h.routes[id], h.life
	if dropped, err := h.proc.Data.Dropped(); err == nil && len(urls) == 0 {
		for i := range dropped {
			if dropped[i].ID == id {
				urls = dropped[i].DialURLs()
			}
		}
	}
	for _, url := range urls {
		h.cluster.net.greet(h, &h.claim, url, func(g identity.Greeting) {
			if h.alive && h.life == life && g.Stage == identity.Founded {
				h.epochs.Meet(g.Claim, identity.Dialled, h.run.Now())
			}
		})
	}
}

// rumourPause is how long a member that has asked because of one caller asks no other one for that reason, as in package epoch:
// to ask is to call, so that two members of different epochs would ask each other for ever, ever more often.
const rumourPause = time.Second

// called notes a caller. If the caller is not believed, the member asks at the address that it knows for it.
func (h *host) called(c *identity.Claim) {
	h.epochs.Meet(*c, identity.Said, h.run.Now())
	if h.run.Now() >= h.asksAgain && h.epochs.Foreign(c) && slices.Contains(h.knownPeers(), c.Member) {
		h.asksAgain = h.run.Now() + rumourPause
		h.askEpoch(c.Member)
	}
}

// mute reports whether the core gets no ticks, because the cluster may have been recovered without this member.
func (h *host) mute() bool {
	if h.epochs == nil {
		return false
	}
	if h.epochs.Overdone(h.run.Now()) {
		h.run.suite.Report("superseded", fmt.Sprintf("member %v serves nothing, and nobody of a newer epoch has answered it "+
			"since it heard a leader", h.id))
	}
	return h.epochs.State(h.run.Now()).Mute()
}

// judgeEpoch checks that a new leader did not know that the cluster was recovered without it.
func (h *host) judgeEpoch() {
	if h.epochs != nil && h.epochs.Knew(h.run.Now()) {
		h.run.suite.Report("superseded", fmt.Sprintf("member %v leads in epoch %v and knew, without a quorum, of a newer one",
			h.id, h.claim.Epoch))
	}
}
