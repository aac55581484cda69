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

// restoreConfigs derives the configurations from what the log begins after and from the log.
func (r *Replica) restoreConfigs(base *consensus.SnapshotMeta) {
	r.configs.Reset(base, r.log.Commit(), r.log.Applied())
	r.pushConfigs(r.log.Slice(r.log.Base().Index+1, r.log.Last()))
	r.reviseConfig()
}

// pushConfigs notes what entries bring, and commits what they prove to be committed.
func (r *Replica) pushConfigs(entries []consensus.Entry) {
	for i := range entries {
		if proven := r.configs.Append(&entries[i]); proven > 0 {
			r.commitTo(min(proven, r.log.Last()))
		}
	}
}

// appendConfigs notes what new entries bring.
func (r *Replica) appendConfigs(entries []consensus.Entry) {
	before := r.configs.Len()
	r.pushConfigs(entries)
	if r.configs.Len() > before {
		r.reviseConfig()
	}
}

// truncateConfigs undoes what entries from from on had brought.
func (r *Replica) truncateConfigs(from consensus.Index) {
	for _, id := range r.configs.Truncate(from) {
		r.event(ConfigUndone{ID: id})
	}
	r.reviseConfig()
}

// reviseConfig acts on a configuration that came into force.
func (r *Replica) reviseConfig() {
	if r.configs.Revise() {
		r.boundTo = consensus.ConfigID{}
		r.configChanged()
	}
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

// syncPeers makes the leader's view of the others fit the configurations.
func (r *Replica) syncPeers() {
	for _, id := range r.configs.Recipients() {
		r.newPeer(id)
	}
	for _, p := range r.peers {
		p.Leaving = !r.configs.Config().Contains(p.ID)
	}
}

// escort makes a new leader feed, for a while, those whom the last change removed: a leader that removed itself has yet to
// learn how what it was asked for ended.
func (r *Replica) escort() {
	for _, id := range r.configs.Last().Tombs {
		if p := r.newPeer(id); p != nil {
			p.Leaving, p.LeavesAt = true, r.now+uint64(r.opts.ElectionTicks)
		}
	}
}

// newPeer returns what it added; nil if id is known already.
func (r *Replica) newPeer(id consensus.MemberID) *progress.Peer {
	if id == r.opts.ID || r.peer(id) != nil {
		return nil
	}
	p := progress.New(id, r.log.Last()+1, r.opts.MaxInflightMessages, r.opts.MaxInflightBytes)
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
		Tombstones:  r.configs.Tombstones(),
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
	near := r.log.Last()-p.Match <= caughtUpEntries && r.log.SizeAfter(p.Match) <= r.opts.MaxMessageBytes
	return near || (p.Match >= r.log.Commit() && r.log.Commit() >= r.noop)
}
