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

// configRecord is a configuration and where it stands in the log.
type configRecord struct {
	id     consensus.ConfigID
	config consensus.Config // never written to: outputs share it
	tombs  []consensus.MemberID
}

func (r *Replica) inForce() *configRecord       { return &r.configs[len(r.configs)-1] }
func (r *Replica) config() *consensus.Config    { return &r.inForce().config }
func (r *Replica) configID() consensus.ConfigID { return r.inForce().id }

// restoreConfigs derives the configurations from the base and the log: there is no second store of them that could
// disagree.
func (r *Replica) restoreConfigs(base *consensus.SnapshotMeta) {
	r.configs = append(r.configs[:0], configRecord{id: base.ConfigID, config: base.Config.Clone()})
	r.configSeen = base.ConfigID.Index
	r.pushConfigs(r.log.entries)
}

func (r *Replica) pushConfigs(entries []consensus.Entry) bool {
	pushed := false
	for i := range entries {
		e := &entries[i]
		if e.Kind != consensus.EntryConfig {
			continue
		}
		change, _, err := consensus.DecodeConfigChange(e.Payload)
		if err != nil {
			continue // it changes nothing, here as on every other member
		}
		r.configs = append(r.configs, configRecord{
			id:     consensus.ConfigID{Index: e.Index, Term: e.Term},
			config: change.Config,
			tombs:  change.Tombs,
		})
		pushed = true
	}
	return pushed
}

// appendConfigs puts into force what entries bring: at append (Raft thesis, section 4.1).
func (r *Replica) appendConfigs(entries []consensus.Entry) {
	if r.pushConfigs(entries) {
		r.configChanged()
	}
}

// truncateConfigs undoes what entries from from on had brought.
func (r *Replica) truncateConfigs(from consensus.Index) {
	n := len(r.configs)
	for n > 1 && r.configs[n-1].id.Index >= from {
		n--
	}
	if n < len(r.configs) {
		r.configs = slices.Delete(r.configs, n, len(r.configs))
		r.configChanged()
	}
}

func (r *Replica) configChanged() {
	in := r.inForce()
	r.out.Config = &ConfigInForce{ID: in.id, Config: in.config}
	if r.role == Leader {
		r.syncPeers()
	}
}

// configAt returns the configuration that the log up to index brings into force.
func (r *Replica) configAt(index consensus.Index) *configRecord {
	at := 0
	for i := range r.configs {
		if i == 0 || r.configs[i].id.Index <= index {
			at = i
		}
	}
	return &r.configs[at]
}

// syncPeers makes the leader's view of the others fit the configuration in force. A member that an uncommitted change
// removes is still fed, counting nowhere, so that it learns of its removal.
func (r *Replica) syncPeers() {
	c := r.config()
	for i := range c.Members {
		r.addPeer(c.Members[i].ID)
	}
	if n := len(r.configs); n > 1 && r.configs[n-1].id.Index > r.log.commit {
		for _, id := range r.configs[n-1].tombs {
			r.addPeer(id)
		}
	}
	for _, p := range r.peers {
		p.Leaving = !c.Contains(p.ID)
	}
}

func (r *Replica) addPeer(id consensus.MemberID) {
	if id == r.opts.ID || r.peer(id) != nil {
		return
	}
	p := progress.New(id, r.log.last()+1, r.opts.MaxInflightMessages, r.opts.MaxInflightBytes)
	p.HeardAt = r.now // the benefit of the doubt, for one election timeout
	at := 0
	for at < len(r.peers) && r.peers[at].ID < id {
		at++
	}
	r.peers = slices.Insert(r.peers, at, p)
}

// forgetLeavers drops members whose removal committed some time ago. One that still does not know learns it from the
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

// proposeChange turns a request into a configuration entry, or says why not.
func (r *Replica) proposeChange(p *consensus.Proposal) consensus.RefusalReason {
	request, rest, err := consensus.DecodeChangeRequest(p.Payload)
	if err != nil || len(rest) > 0 {
		return consensus.ReasonBadRequest
	}
	// One change at a time, and only once an entry of this term has committed: else two configurations whose majorities
	// do not meet could be in use at once (the single-server bug of 2015).
	r.advanceCommit()
	id := r.configID()
	if r.log.commit < r.noop || id.Index > r.log.applied {
		if request.Expected != (consensus.ConfigID{}) && request.Expected != id {
			return consensus.ReasonStaleConfig
		}
		return consensus.ReasonChangePending
	}
	facts := r.facts()
	change, reason := reconfig.Next(r.config(), id, &request, &facts)
	if reason != consensus.ReasonNone {
		return reason
	}
	index := r.appendEntry(consensus.Entry{
		Kind:     consensus.EntryConfig,
		Proposal: p.ID,
		Proposer: p.Proposer,
		Payload:  consensus.AppendConfigChange(nil, &change),
	})
	r.appendConfigs(r.log.slice(index, index))
	return consensus.ReasonNone
}

func (r *Replica) facts() reconfig.Facts {
	facts := reconfig.Facts{
		Active:      []consensus.MemberID{r.opts.ID},
		Tombstones:  r.tombstones,
		MaxLearners: r.opts.MaxLearners,
		Strict:      r.opts.StrictReconfig,
	}
	for _, p := range r.peers {
		if !r.active(p) {
			continue
		}
		facts.Active = append(facts.Active, p.ID)
		if p.State == progress.Replicate && r.log.last()-p.Match <= caughtUpEntries &&
			r.log.sizeAfter(p.Match) <= r.opts.MaxMessageBytes {
			facts.CaughtUp = append(facts.CaughtUp, p.ID)
		}
	}
	return facts
}
