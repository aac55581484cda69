package fast

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raftlog"
	"github.com/quorate/quorate/internal/consensus/witness"
)

// unapplied is the part of the log that is not applied: its footprints, its proposals, and the revisions that it may take.
type unapplied struct {
	opts *Options
	log  *raftlog.Log
	pool *witness.Pool

	claims   witness.Claims
	entries  []claim // of the entries up to index upTo
	known    []claim // footprints of entries after upTo that the leader admitted, by index
	inLog    map[consensus.ProposalID]int
	unlogged int // records of the pool whose proposals are not in inLog
	upTo     consensus.Index
	bytes    int

	revision  uint64 // of the store, after log.Applied
	bound     uint64 // no entry up to boundAt has a greater revision
	boundFrom consensus.Index
	boundAt   consensus.Index
	keepBound bool // a test drops rules.TruncateKeepsBound
}

// claim is one logged entry that is not applied.
type claim struct {
	index     consensus.Index
	id        consensus.ProposalID
	footprint consensus.Footprint
	bytes     int
}

// update adds the entries up to the end of the log; false if too much of the log is not applied.
func (u *unapplied) update() bool {
	last := u.log.Last()
	u.upTo = max(u.upTo, u.log.Applied())
	if last-u.log.Applied() > maxUnapplied {
		return false
	}
	entries := u.log.Slice(u.upTo+1, last)
	for i := range entries {
		u.add(&entries[i])
	}
	u.upTo = last
	return u.bytes <= maxUnappliedBytes
}

func (u *unapplied) add(e *consensus.Entry) {
	c := claim{index: e.Index, id: e.Proposal, bytes: e.SizeBytes()}
	switch e.Kind {
	case consensus.EntryCommand:
		c.footprint = u.footprintOf(e)
	case consensus.EntryConfig:
		c.footprint.Barrier = true
	}
	u.claims.Add(&c.footprint)
	u.entries = append(u.entries, c)
	u.bytes += c.bytes
	if !c.id.IsZero() {
		if u.inLog == nil {
			u.inLog = map[consensus.ProposalID]int{}
		}
		if u.inLog[c.id] == 0 {
			u.unlogged -= u.pool.Attempts(c.id)
		}
		u.inLog[c.id]++
	}
}

// know keeps the footprint of an entry that the leader just appended, so that the command is decoded once.
func (u *unapplied) know(index consensus.Index, footprint consensus.Footprint) {
	u.known = append(u.known, claim{index: index, footprint: footprint})
}

// footprintOf returns the footprint of an entry's command.
func (u *unapplied) footprintOf(e *consensus.Entry) consensus.Footprint {
	u.forgetKnown(e.Index - 1)
	if len(u.known) > 0 && u.known[0].index == e.Index {
		return u.known[0].footprint
	}
	return u.opts.Footprint(e.Payload)
}

// forgetKnown drops the footprints in known up to index.
func (u *unapplied) forgetKnown(index consensus.Index) {
	n := 0
	for n < len(u.known) && u.known[n].index <= index {
		n++
	}
	if u.known = u.known[n:]; len(u.known) == 0 {
		u.known = nil
	}
}

func (u *unapplied) remove(c *claim) {
	u.claims.Remove(&c.footprint)
	u.bytes -= c.bytes
	switch n := u.inLog[c.id]; n {
	case 0: // the entry names no proposal
	case 1:
		delete(u.inLog, c.id)
		u.unlogged += u.pool.Attempts(c.id)
	default:
		u.inLog[c.id] = n - 1
	}
}

// drop removes the entries that are applied.
func (u *unapplied) drop() {
	n := 0
	for n < len(u.entries) && u.entries[n].index <= u.log.Applied() {
		u.remove(&u.entries[n])
		n++
	}
	u.entries = slices.Delete(u.entries, 0, n)
	u.upTo = max(u.upTo, u.log.Applied())
	u.forgetKnown(u.upTo)
}

// truncate removes the entries from index from on, and the bound of revisions.
func (u *unapplied) truncate(from consensus.Index) {
	n := len(u.entries)
	for n > 0 && u.entries[n-1].index >= from {
		n--
		u.remove(&u.entries[n])
	}
	u.entries = slices.Delete(u.entries, n, len(u.entries))
	u.upTo = min(u.upTo, from-1)
	u.known = slices.DeleteFunc(u.known, func(c claim) bool { return c.index >= from })
	if !u.keepBound {
		u.boundAt = 0
	}
}

// holds reports whether an entry of a proposal is logged and not applied.
func (u *unapplied) holds(id consensus.ProposalID) bool { return u.inLog[id] > 0 }

// recorded notes that an attempt entered the pool, forgotten that one left it.
func (u *unapplied) recorded(id consensus.ProposalID) {
	if u.inLog[id] == 0 {
		u.unlogged++
	}
}

func (u *unapplied) forgotten(id consensus.ProposalID) {
	if u.inLog[id] == 0 {
		u.unlogged--
	}
}

// revisionBound returns the greatest revision that an entry of the log can have, as far as this member can tell without
// applying it: a command takes the next revision or none, a command at an exact revision takes that one or none.
func (u *unapplied) revisionBound() uint64 {
	if u.boundFrom != u.log.Applied() || u.boundAt < u.log.Applied() || u.boundAt > u.log.Last() {
		u.bound, u.boundFrom, u.boundAt = u.revision, u.log.Applied(), u.log.Applied()
	}
	entries := u.log.Slice(u.boundAt+1, u.log.Last())
	for i := range entries {
		switch e := &entries[i]; {
		case e.Kind != consensus.EntryCommand:
		case e.ExactRevision != 0:
			u.bound = max(u.bound, e.ExactRevision)
		case u.opts.Revises != nil && !u.opts.Revises(e.Payload):
		default:
			u.bound++
		}
	}
	u.boundAt = u.log.Last()
	return u.bound
}
