package lab

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/consensus/rules"
	"github.com/quorate/quorate/internal/kv"
)

// member is a replica and the simplest shell that performs its outputs.
type member struct {
	w       *world
	id      memberID
	seed    uint64        // of its election timeouts: drawn for each, or neighbours would draw the same ones
	replica *raft.Replica // nil while it does not run
	life    int           // counts starts and ends: what was planned in another life does not happen
	dead    bool          // stopped by its own assertion, or for ever: it does not start again
	status  raft.Status

	disk       disk
	log        []entry // as the outputs tell it, durable or not; log[0].Index = logBase+1
	logBase    consensus.Index
	known      consensus.Index // how far the laws have looked at its commits
	store      store
	handed     []entry // to the state machine, not applied yet
	applying   bool
	received   map[position]store
	waiting    map[uint64]bool // writes whose client waits at this member
	switching  consensus.Index // see switched.go
	switchedBy map[memberID]consensus.Index
	standIn    memberID // whom this leader counts itself for, with that rule broken
	tallied    tallied  // for the recorder
	touched    bool     // something may have changed since the recorder looked
}

func newMember(w *world, id memberID) *member {
	m := &member{w: w, id: id, seed: w.rng.Uint64(), received: map[position]store{}, waiting: map[uint64]bool{},
		switchedBy: map[memberID]consensus.Index{}}
	m.disk.m = m
	return m
}

func attributes(id memberID) consensus.Member {
	return consensus.Member{ID: id, Name: fmt.Sprintf("m%d", id), PeerURLs: []string{fmt.Sprintf("http://m%d", id)}}
}

func (m *member) running() bool { return m.replica != nil }

// options are the same for all members, but for the id.
func (m *member) options() raft.Options {
	o := raft.Defaults(m.id)
	o.ElectionTicks, o.HeartbeatTicks, o.Seed = electionTicks, heartbeatTicks, m.seed
	o.Dropped = m.w.broken.core()
	// A leader that drops ChangeInOldTerm changes members before it knows that any voter has caught up: the strict check would
	// refuse that.
	o.StrictReconfig = !m.w.broken.dropped[rules.ChangeInOldTerm]
	o.Fast = raft.FastOptions{Footprint: kv.PayloadFootprint, Revises: kv.Revises, State: m.stateOf}
	o.Readable = kv.Readable
	return o
}

// start starts the replica from what is on disk, also again after a crash.
func (m *member) start() {
	if m.dead || m.running() {
		return
	}
	base := m.disk.base
	if m.store.position.Index > base.Position.Index && !m.disk.holds(m.store.position) {
		base = m.store.meta() // the store was swapped for a snapshot and the log was not reset yet
	}
	hard := m.disk.hard
	hard.Commit = max(hard.Commit, m.disk.switched)
	records, err := consensus.DecodeRecords(m.disk.witness)
	if err != nil {
		m.stopFor("cannot start: " + err.Error())
		return
	}
	restored := raft.Restored{
		Hard: hard, Base: base, Entries: slices.Clip(m.disk.entries), Applied: m.store.position.Index,
		Tombstones: m.store.tombs,
		Revision:   m.store.revision, Records: records,
	}
	replica, err := raft.New(m.options(), restored)
	if err != nil {
		m.stopFor("cannot start: " + err.Error())
		return
	}
	m.replica = replica
	m.disk.open()
	m.life++
	m.status = replica.Status()
	m.touched = true
	m.w.judge.began(m.id, &restored, replica)
}

// stop ends the process: what is not on disk is lost, and connections break.
func (m *member) stop() {
	m.replica = nil
	m.life++
	m.disk.forget()
	m.handed, m.applying = nil, false
	m.log, m.logBase = slices.Clone(m.disk.entries), m.disk.base.Position.Index
	clear(m.received)
	clear(m.waiting)
	clear(m.switchedBy)
	m.switching = 0
	m.standIn = consensus.NoMember
	m.tallied, m.touched = tallied{}, true
	m.status = raft.Status{ID: m.id, Term: m.status.Term, ConfigID: m.status.ConfigID, Config: m.status.Config}
	m.w.net.broke(m.id)
}

func (m *member) crash(why string) {
	if m.running() {
		m.stop()
		m.w.journal.add(KindCrash, m.id, "%s", why)
	}
}

func (m *member) restart() {
	if m.running() || m.dead {
		return
	}
	m.start()
	m.w.journal.add(KindRestart, m.id, "%v starts again", m.id)
}

// switchOff ends a member for ever: somebody was told that it is not needed any more.
func (m *member) switchOff(why string) {
	if m.running() {
		m.stop()
		m.dead = true
		m.w.journal.add(KindOff, m.id, "%s", why)
	}
}

// stopFor ends a member whose own assertions found what must not be.
func (m *member) stopFor(reason string) {
	m.stop()
	m.dead = true
	m.w.laws.breach(m.id, BreachAssertion, "%v stops itself: %s", m.id, reason)
}

// soon plans something of this life.
func (m *member) soon(wait time.Duration, run func()) {
	life := m.life
	m.w.After(wait, func() {
		if m.life == life {
			run()
		}
	})
}

// receive is a step for one message; what follows of it makes the message worth showing.
func (m *member) receive(msg message, a *Arrow) {
	before := m.status.Commit
	m.tallied.hears(m, &msg)
	m.step(raft.Receive{Message: msg})
	if m.running() && m.status.Commit > before && m.commitsConfig(before) {
		a.shown = true
	}
}

// commitsConfig reports whether the entries after index that are known to be committed hold a configuration.
func (m *member) commitsConfig(index consensus.Index) bool {
	for i := range m.log {
		e := &m.log[i]
		if e.Index > index && e.Index <= m.status.Commit && (isConfig(*e) || settles(e)) {
			return true
		}
	}
	return false
}

// step gives inputs to the replica and performs its output.
func (m *member) step(inputs ...raft.Input) {
	if !m.running() {
		return
	}
	m.w.judge.Taken(m.id, inputs)
	out, broken := m.try(inputs)
	if broken != "" {
		m.stopFor(broken)
		return
	}
	leader, term := m.status.Leader, m.status.Term
	m.tallied.follow(m, out.Events)
	m.status = m.replica.Status()
	m.touched = true
	if m.status.Leader != leader {
		m.w.clients.leaderChanged(m)
	}
	m.follow(&out)
	m.w.names.learn(out.Entries)
	m.w.journal.tell(m, &out)
	m.w.laws.check(m, &out)
	m.w.operator.noteLogged(m)
	m.noteSwitch()
	if !m.w.stages.pass(m, &out) {
		return
	}
	if m.w.operator.watch(m); m.running() {
		m.perform(&out)
		m.w.judge.performed(term, &m.status, &out)
	}
}

// try steps the replica, and catches what its own assertions say.
func (m *member) try(inputs []raft.Input) (out raft.Output, broken string) {
	defer func() {
		if p := recover(); p != nil {
			broken = fmt.Sprint(p)
		}
	}()
	return m.replica.Step(inputs...), ""
}

// follow keeps the log as it is in the replica.
func (m *member) follow(out *raft.Output) {
	if out.Reset != nil {
		m.log, m.logBase = nil, out.Reset.Position.Index
	}
	if len(out.Entries) > 0 {
		keep := int(out.Entries[0].Index - m.logBase - 1)
		m.log = appended(m.log, keep, out.Entries)
	}
}

// at returns the entry at index, if the log holds it.
func (m *member) at(index consensus.Index) (entry, bool) {
	if index <= m.logBase || index > m.logBase+consensus.Index(len(m.log)) {
		return entry{}, false
	}
	return m.log[index-m.logBase-1], true
}

func (m *member) perform(out *raft.Output) {
	m.w.net.sendAll(out.Send)
	m.disk.write(out)
	if len(out.Apply) > 0 {
		m.handed = append(m.handed, out.Apply...)
		m.apply()
	}
	if out.Install != nil {
		m.install(*out.Install)
	}
	for _, request := range out.NeedSnapshot {
		m.stream(request.To)
	}
	if len(out.Decided) > 0 {
		m.w.judge.FastDecided(m.id, out.Decided)
	}
	for i := range out.Decided {
		m.w.clients.decided(m, out.Decided[i].Proposal.Sequence)
	}
	for i := range out.Refusals {
		m.w.refused(m, &out.Refusals[i])
	}
}

// lastConfigIndex returns where the last configuration entry of the log is.
func (m *member) lastConfigIndex() consensus.Index {
	for at := len(m.log) - 1; at >= 0; at-- {
		if isConfig(m.log[at]) {
			return m.log[at].Index
		}
	}
	return m.logBase
}
