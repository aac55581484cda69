package raft

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/progress"
	"github.com/quorate/quorate/internal/consensus/reconfig"
)

// A learner may be promoted if at most so many entries, and one append's worth of bytes, are missing to the leader's
// last entry: about what a busy heartbeat interval brings. A ratio of indexes would say nothing about time.
const caughtUpEntries = 1000

// configRecord is a configuration entry, and where it stands in the log.
type configRecord struct {
	id       consensus.ConfigID // stage 0
	protocol consensus.Protocol // zero for the first configuration of a cluster
	abort    bool
	config   consensus.Config // as the entry holds it; never written to: outputs share it
	tombs    []consensus.MemberID
	// settledBy is the entry, in the log, that settles a change whose protocol has no second entry; or zero.
	settledBy consensus.Index
	base      bool // from a snapshot or the store, which also says whether the change was open there
	open      bool
	ordinal   uint64
}

// activates reports whether the record holds both sets and the new one is in force once the record has committed.
func (c *configRecord) activates() bool {
	return c.protocol == consensus.ProtocolActivate && c.config.IsJoint()
}

// needsNotice reports whether members other than the leader can hold the change without knowing that it is in force, so
// that an entry which says so must commit before anybody may be switched off.
func (c *configRecord) needsNotice() bool {
	return c.activates() || (c.protocol == consensus.ProtocolApply && !c.config.IsJoint())
}

// ruling is the configuration by which this member counts, and its place among the records.
type ruling struct {
	id     consensus.ConfigID
	config consensus.Config
	at     int
}

func (r *Replica) config() *consensus.Config       { return &r.ruling.config }
func (r *Replica) configID() consensus.ConfigID    { return r.ruling.id }
func (r *Replica) inForce() *configRecord          { return &r.configs[r.ruling.at] }
func (r *Replica) lastConfig() *configRecord       { return &r.configs[len(r.configs)-1] }
func (r *Replica) committed(c *configRecord) bool  { return c.id.Index <= r.log.commit }
func (r *Replica) notApplied(c *configRecord) bool { return c.id.Index > r.log.applied }

// restoreConfigs derives the configurations from the base and the log: there is no second store of them that could
// disagree.
func (r *Replica) restoreConfigs(base *consensus.SnapshotMeta) {
	id := base.ConfigID
	id.Stage = 0
	r.configs = append(r.configs[:0:0], configRecord{
		id: id, protocol: base.Protocol, config: base.Config.Clone(), tombs: slices.Clone(base.Tombs),
		base: true, open: base.Open,
	})
	r.configSeen = max(r.configSeen, id.Index)
	if !base.Open {
		r.configSettled = max(r.configSettled, id.Index)
	}
	r.ruling = ruling{}
	r.pushConfigs(r.log.entries)
	r.reviseConfig()
}

// pushConfigs notes the configuration entries among entries, and those that settle one. That a change was proposed at
// all proves that the one which it replaces has committed, and what settled it: its leader knew it. Only an abort comes
// before that.
func (r *Replica) pushConfigs(entries []consensus.Entry) {
	for i := range entries {
		e := &entries[i]
		if e.Kind == consensus.EntryNoop {
			r.noteSettling(e)
		}
		if e.Kind != consensus.EntryConfig {
			continue
		}
		change, _, err := consensus.DecodeConfigChange(e.Payload)
		if err != nil {
			continue // it changes nothing, here as on every other member
		}
		r.configs = append(r.configs, configRecord{
			id:       consensus.ConfigID{Index: e.Index, Term: e.Term},
			protocol: change.Protocol,
			abort:    change.Abort,
			config:   change.Config,
			tombs:    change.Tombs,
			ordinal:  r.lastConfig().ordinal + 1,
		})
		if !change.Abort && !r.opts.Faults.TwoChanges {
			replaced := &r.configs[len(r.configs)-2]
			r.commitTo(min(max(replaced.id.Index, replaced.settledBy), r.log.last()))
		}
	}
}

// noteSettling notes which entry settles the last change. Its leader knew that the change had committed, so whoever has
// it in the log knows too, also if it forgot, or never heard, how far the log is committed: members that the change
// removed may be switched off as soon as a majority holds the entry, and nobody else could tell.
func (r *Replica) noteSettling(e *consensus.Entry) {
	if len(e.Payload) == 0 {
		return
	}
	id, _, err := consensus.DecodeConfigID(e.Payload)
	if c := r.lastConfig(); err == nil && c.id.Index == id.Index && c.settledBy == 0 {
		c.settledBy = e.Index
		r.commitTo(min(c.id.Index, r.log.last()))
	}
}

// appendConfigs takes note of what entries bring.
func (r *Replica) appendConfigs(entries []consensus.Entry) {
	before := len(r.configs)
	r.pushConfigs(entries)
	if len(r.configs) > before {
		r.reviseConfig()
	}
}

// truncateConfigs undoes what entries from from on had brought, the last one first.
func (r *Replica) truncateConfigs(from consensus.Index) {
	n := len(r.configs)
	for n > 1 && r.configs[n-1].id.Index >= from {
		n--
		r.event(ConfigUndone{ID: r.configs[n].id})
	}
	r.configs = slices.Delete(r.configs, n, len(r.configs))
	if c := r.lastConfig(); c.settledBy >= from {
		c.settledBy = 0
	}
	r.reviseConfig()
}

// reviseConfig finds out which configuration is in force: the last one of the log, but for those that wait to be applied
// (protocol apply), and in its second stage if it activates and is known to have committed.
func (r *Replica) reviseConfig() {
	at := len(r.configs) - 1
	for at > 0 && r.configs[at].protocol == consensus.ProtocolApply && r.notApplied(&r.configs[at]) {
		at--
	}
	c := &r.configs[at]
	now := ruling{id: c.id, config: c.config, at: at}
	activated := c.activates() && r.committed(c)
	if activated {
		now.id.Stage = 1
	}
	if r.opts.Faults.ReuseConfigIDs && c.ordinal > 0 {
		now.id = consensus.ConfigID{Index: consensus.Index(c.ordinal), Stage: now.id.Stage}
	}
	if now.id == r.ruling.id && len(r.ruling.config.Members) > 0 {
		r.ruling.at = at
		return
	}
	if activated {
		now.config = c.config.Settle()
	}
	r.ruling, r.boundTo = now, consensus.ConfigID{}
	r.configChanged()
}

func (r *Replica) configChanged() {
	in := r.InForce()
	r.out.Config = &in
	r.resetTally()
	if r.role == Leader {
		r.syncPeers()
	}
	r.delayCampaign()
}

// metaAt returns what a snapshot at mark stands for.
func (r *Replica) metaAt(mark consensus.Mark) consensus.SnapshotMeta {
	at := 0
	for i := range r.configs {
		if i == 0 || r.configs[i].id.Index <= mark.Index {
			at = i
		}
	}
	c := &r.configs[at]
	meta := consensus.SnapshotMeta{
		Mark: mark, Config: c.config, ConfigID: c.id, Protocol: c.protocol, Open: c.openAt(mark.Index),
	}
	if meta.Open {
		meta.Tombs = c.tombs
	}
	return meta
}

// openAt reports whether the log up to index, all of it committed, does not settle the change.
func (c *configRecord) openAt(index consensus.Index) bool {
	switch {
	case c.settledBy > 0 && c.settledBy <= index:
		return false
	case c.base:
		return c.open
	}
	return c.needsNotice() || c.config.IsJoint()
}

// settled reports whether the i-th configuration can be taken for granted: it has committed, it is not half of a change,
// and enough members know that it is in force. Then those whom it removes may be told. A committed successor proves it.
func (r *Replica) settled(i int) bool {
	if i+1 < len(r.configs) && r.committed(&r.configs[i+1]) {
		return true
	}
	c := &r.configs[i]
	return r.committed(c) && !c.openAt(r.log.commit)
}

// syncPeers makes the leader's view of the others fit the configurations. A member that a change removes is still fed,
// counting nowhere, until the change is settled, so that it learns of its removal.
func (r *Replica) syncPeers() {
	for i := range r.config().Members {
		r.addPeer(r.config().Members[i].ID)
	}
	for i := range r.configs {
		c := &r.configs[i]
		if r.settled(i) {
			continue
		}
		for j := range c.config.Members {
			r.addPeer(c.config.Members[j].ID)
		}
		for _, id := range c.tombs {
			r.addPeer(id)
		}
	}
	for _, p := range r.peers {
		p.Leaving = !r.config().Contains(p.ID)
	}
}

// escort makes a new leader feed, for a while, those whom the last change removed: a leader that removed itself has yet to
// learn how what it was asked for ended.
func (r *Replica) escort() {
	for _, id := range r.lastConfig().tombs {
		if p := r.newPeer(id); p != nil {
			p.Leaving, p.LeavesAt = true, r.now+uint64(r.opts.ElectionTicks)
		}
	}
}

func (r *Replica) addPeer(id consensus.MemberID) {
	if !r.isTombstone(id) {
		r.newPeer(id)
	}
}

// newPeer returns what it added; nil if id is known already.
func (r *Replica) newPeer(id consensus.MemberID) *progress.Peer {
	if id == r.opts.ID || r.peer(id) != nil {
		return nil
	}
	p := progress.New(id, r.log.last()+1, r.opts.MaxInflightMessages, r.opts.MaxInflightBytes)
	p.HeardAt = r.now // the benefit of the doubt, for one election timeout
	at := 0
	for at < len(r.peers) && r.peers[at].ID < id {
		at++
	}
	r.peers = slices.Insert(r.peers, at, p)
	return p
}

// forgetLeavers drops members whose removal was settled some time ago. One that still does not know learns it from the
// answer to its pre-vote.
func (r *Replica) forgetLeavers() {
	for i := 0; i < len(r.peers); {
		if p := r.peers[i]; p.Leaving && p.LeavesAt > 0 && r.now >= p.LeavesAt {
			r.peers = slices.Delete(r.peers, i, i+1)
			continue
		}
		i++
	}
}

func (r *Replica) facts() reconfig.Facts {
	facts := reconfig.Facts{
		Active:      []consensus.MemberID{r.opts.ID},
		CaughtUp:    []consensus.MemberID{r.opts.ID},
		Tombstones:  r.tombstones,
		MaxLearners: r.opts.MaxLearners,
		Strict:      r.opts.StrictReconfig,
	}
	for _, p := range r.peers {
		if !r.active(p) {
			continue
		}
		facts.Active = append(facts.Active, p.ID)
		if r.caughtUp(p) {
			facts.CaughtUp = append(facts.CaughtUp, p.ID)
		}
	}
	return facts
}

// caughtUp reports whether a member follows the log and holds nearly all of it: all that has committed, however much is on
// its way, or all but about one heartbeat's worth.
func (r *Replica) caughtUp(p *progress.Peer) bool {
	if p.State != progress.Replicate {
		return false
	}
	near := r.log.last()-p.Match <= caughtUpEntries && r.log.sizeAfter(p.Match) <= r.opts.MaxMessageBytes
	return near || (p.Match >= r.log.commit && r.log.commit >= r.noop)
}
