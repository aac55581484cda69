package sim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/membership/autopilot"
	"github.com/quorate/quorate/internal/sim/diary"
	"github.com/quorate/quorate/internal/sim/dice"
	"github.com/quorate/quorate/internal/sim/joins"
	"github.com/quorate/quorate/internal/sim/places"
	"github.com/quorate/quorate/internal/sim/routines"
	"github.com/quorate/quorate/internal/storage/wal"
)

const (
	joinsSettle  = 4 * time.Minute // for jobs that wait for others
	joinedIDs    = 1000            // ids that leaders draw are greater, those that operators give are smaller
	answerIsLost = 0.2
)

// joiner is the state of a machine whose process joins by itself: it has no id before it gets an answer.
type joiner struct {
	request autopilot.JoinRequest
	end     func() // ends the routine that asks; nil: there is none
}

// beginJoin begins to ask, as package server does with --join.
func (h *host) beginJoin() {
	h.stopJoin()
	record, err := h.foundingRecord()
	if err != nil {
		h.startFailed(err)
		return
	}
	h.disk.DieAfter(-1)
	j, asked := h.joiner, h.cluster.members()
	h.run.spoil.Shuffle(len(asked), func(a, b int) { asked[a], asked[b] = asked[b], asked[a] })
	if asked = asked[:min(3, len(asked))]; len(asked) == 0 {
		h.startAfter(time.Second)
		return
	}
	j.request.Storage = record.Storage
	j.end = h.run.routines.Go((&joins.Process{
		Members: len(asked),
		Ask:     func(i int, answered func(autopilot.JoinAnswer, error)) { h.cluster.net.join(h, asked[i], answered) },
		After:   h.run.After, Joined: h.joined, GaveUp: func() { h.startAfter(0) },
		Refused: func(err error) {
			h.gone = true
			h.run.trace.Note(h.run.Now(), h.slot, diary.Refused, 0, 0, 0, err.Error)
		},
	}).Run)
}

func (h *host) stopJoin() {
	if h.joiner != nil && h.joiner.end != nil {
		h.joiner.end()
		h.joiner.end = nil
	}
}

// joined makes the data of the new member, or loses the answer in a crash, maybe with the disk.
func (h *host) joined(answer autopilot.JoinAnswer) {
	h.joiner.end = nil // it is this routine
	if rng := h.run.spoil; !h.run.calm && dice.Chance(rng, 0.3) {
		h.run.struck("join", "loses its answer")
		if h.disk = h.disk.Crash(h.crashMode(), h.rng); dice.Chance(rng, 0.3) {
			h.emptied++
			h.disk = newDisk(&h.run.broken)
		}
		h.startAfter(dice.Between(rng, 10*time.Millisecond, 5*time.Second))
		return
	}
	storage := h.joiner.request.Storage
	h.run.joins.Began(answer.ID, storage)
	if h.run.suite.Failed() {
		return
	}
	h.id, h.cluster.hosts[answer.ID] = answer.ID, h
	h.cluster.settle(h)
	h.actions = h.run.actions.Member(h.id)
	if answer.Epoch != consensus.FoundingEpoch { // it is a member of a cluster that was recovered separately
		h.disown(ofAnotherEpoch)
		h.cluster.disowned(h)
	}
	own := wal.Identity{Cluster: answer.Cluster, Member: h.id, Storage: storage, Epoch: answer.Epoch}
	err := datadir.Create(h.options(), own, h.firstConfig())
	if err == nil {
		err = datadir.RemoveFounding(h.options())
	}
	if err != nil {
		h.startFailed(err)
		return
	}
	h.start()
}

// join carries the request of a process that joins to a member, and the answer back, unless it is lost.
func (n *network) join(from, to *host, answered func(autopilot.JoinAnswer, error)) {
	out, back, life := n.link(from.slot, to.slot), n.link(to.slot, from.slot), to.life
	if !to.serves() {
		n.run.After(n.delay(), func() { answered(autopilot.JoinAnswer{}, member.ErrConnectionLost) })
		return
	}
	request := from.joiner.request
	n.run.After(n.delay(), func() {
		if out.cuts > 0 || !to.serves() || to.life != life {
			return
		}
		own := to.proc.Data.Identity
		asked := joins.Member{AtLeader: to.atLeader, After: to.after,
			Poll:      func() time.Duration { return dice.Between(n.rng, time.Millisecond, time.Second) },
			NotLeader: func(err error) bool { return errors.Is(err, errNotLeading) }}
		end := n.run.routines.Go(func(wait routines.Wait) {
			answer, err, ok := asked.Answer(wait, request)
			answer.Cluster, answer.Epoch = own.Cluster, own.Epoch
			if ok && back.cuts == 0 && (n.run.calm || !dice.Chance(n.rng, answerIsLost)) {
				n.run.After(n.delay(), func() { answered(answer, err) })
			}
		})
		n.run.After(joins.Attempt, end)
	})
}

// atLeader makes the leader take the next step of a process that joins.
func (h *host) atLeader(q autopilot.JoinQuestion, answered func(autopilot.JoinStep, error)) {
	switch leader := h.cluster.net.at(h, h.proc.Node.Replica().Leader()); {
	case leader == nil:
		h.after(0, func() { answered(autopilot.JoinStep{}, errNotLeading) })
	case leader == h:
		h.joinStep(q, answered)
	default:
		h.cluster.net.call(h, leader, func(answer func(func())) {
			leader.joinStep(q, func(s autopilot.JoinStep, err error) { answer(func() { answered(s, err) }) })
		})
	}
}

func (h *host) joinStep(q autopilot.JoinQuestion, answered func(autopilot.JoinStep, error)) {
	leader := h.asLeader()
	end := h.run.routines.Go(func(wait routines.Wait) {
		if step, err, ok := leader.Step(wait, q); ok {
			answered(step, err)
		}
	})
	h.run.After(joins.Attempt, end)
}

// asLeader returns the part of this member, in this life, that answers join requests as the leader.
func (h *host) asLeader() *joins.Leader {
	life, ports := h.life, pilotPorts{h}
	return &joins.Leader{
		Ports: ports, Addresses: autopilot.NewAddresses(ports, discard), Lock: &h.pilot.accept, Laws: &h.run.joins,
		Options: autopilot.RequestOptions{
			ElectionTimeout: h.extension(), Poll: 5 * h.run.plan.Tick,
			Draw: func() uint64 { h.cluster.drawn++; return joinedIDs + h.cluster.drawn },
		},
		Epoch: h.proc.Data.Identity.Epoch, Removed: h.removed,
		Runs: func() bool { return h.alive && h.life == life }, After: h.after, Read: h.proc.Clients.Read,
		Write: func(w *autopilot.Write, done func(error)) {
			h.run.struck("join", w.Job.Title())
			h.proc.Clients.Propose(&kv.Command{Job: member.JobOp(w)}, func(r kv.Result, err error) { done(cmp.Or(err, r.Err)) })
		},
		Change:   func(request *consensus.ChangeRequest, done func(error)) { h.change(*request, done) },
		Describe: h.describe,
	}
}

// hasJobFor reports whether a job that has not ended adds a process: it may wait for other jobs, for an hour each.
func (h *host) hasJobFor(j *joiner) bool {
	adds := func(n membership.Newcomer) bool { return membership.SameURLs(n.PeerURLs, j.request.PeerURLs) }
	return slices.ContainsFunc(pilotPorts{h}.Jobs(), func(row autopilot.Row) bool {
		return !row.State.Ended() && slices.ContainsFunc(row.Spec.Add, adds)
	})
}

// strikeJoin starts a process that joins: as a voter or as a learner, in place of a dead or a working member, or at the peer
// URLs of another process.
func (d *diskFaults) strikeJoin() {
	c, rng := d.cluster, d.rng
	up := c.up()
	if len(c.list) >= maxHosts || len(up) == 0 || c.lost() != nil || d.run.refusing { // a lost member is replaced first
		return
	}
	var others []autopilot.JoinRequest
	apart := map[string]bool{} // URLs at which no other process is started
	for _, other := range c.list {
		if other.joiner != nil {
			others = append(others, other.joiner.request)
			// Where updates lead nowhere, a twin could get the URL of a running machine; and a twin that has moved there and is
			// down is found by no member.
			url := other.joiner.request.PeerURLs[0]
			apart[url] = apart[url] || !d.run.plan.Addresses || !c.upAt(url, other)
		}
	}
	old, own := up[rng.IntN(len(up))], describeMember(len(c.list))
	request, dies := joins.Draw(rng, own, old.id, others)
	if apart[request.PeerURLs[0]] {
		request.Name, request.PeerURLs = own.Name, own.PeerURLs
	}
	if dies && len(up) > 2 && len(up) == len(c.members()) {
		old.crash()
		old.startAfter(dice.Between(rng, 5*time.Second, 40*time.Second))
	}
	h := c.addMachine(rng.Uint64(), consensus.NoMember, consensus.SnapshotMeta{})
	request.Level = h.knowsLevel()
	h.joiner, h.address = &joiner{request: request}, addressOf(request.PeerURLs[0])
	d.run.struck("join", fmt.Sprintf("%d as %+v", h.slot, request))
	h.startAfter(dice.Between(rng, 0, 2*time.Second))
}

// upAt reports whether the machine at a URL is up, if it is another machine than the first one there.
func (c *cluster) upAt(url string, first *host) bool {
	p := c.places.At(url)
	return p.Kind != places.PeerPort || p.Machine == first.slot || c.list[p.Machine].alive
}

// joinsSettled lets leaders go on with jobs until every process that joins is a member, or was refused.
func (w *World) joinsSettled() bool {
	waits := func() *host {
		config := w.run.suite.CommittedConfig()
		for _, h := range w.cluster.list {
			if h.joiner == nil || h.gone || h.impostor != "" || h.alive && config.Contains(h.id) {
				continue
			}
			if leader := w.cluster.leader(); leader == nil || !leader.removed(h.id) && !leader.hasJobFor(h.joiner) {
				return h
			}
		}
		return nil
	}
	w.run.arriving = true
	settled := waits() == nil || w.runUntil(w.run.Now()+joinsSettle, func() bool { return waits() == nil })
	w.run.arriving = false
	if h := waits(); !settled && h != nil && !w.run.suite.Failed() && !w.cluster.quorumGivenAway() {
		w.run.suite.Report("join", fmt.Sprintf("the process in slot %d (%v) asked for %+v and is neither member nor refused: "+
			"%s", h.slot, h.id, h.joiner.request, w.cluster.describe()))
	}
	return !w.run.suite.Failed()
}
