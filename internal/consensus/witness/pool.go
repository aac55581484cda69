package witness

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
)

// Pool is the records of a member.
type Pool struct {
	records []held // in the order of arrival
	byID    map[consensus.ProposalID]int
	claims  Claims
	bytes   int
	top     uint64 // the greatest revision
	shares  map[share]usage
}

// share is the account of a record: its proposer's, and, for native clients, that of all clients together.
type share struct {
	owner   consensus.MemberID
	clients bool
}

// usage is what one account uses.
type usage struct{ records, bytes int }

// Limits of one account, in records and in bytes of payloads. All native clients together have twice as much.
const (
	MaxShareRecords = 1024
	MaxShareBytes   = 512 << 10
)

func sharesOf(id consensus.ProposalID) []share {
	if !id.Session.OfClient() {
		return []share{{owner: id.Session.Member}}
	}
	return []share{{owner: id.Session.Member, clients: true}, {clients: true}}
}

// HasRoom reports whether a proposer, and all native clients if it is one, may have another record of so many bytes.
func (p *Pool) HasRoom(id consensus.ProposalID, bytes int) bool {
	for _, s := range sharesOf(id) {
		h, times := p.shares[s], 1
		if s.owner == consensus.NoMember {
			times = 2
		}
		if h.records >= times*MaxShareRecords || h.bytes+bytes > times*MaxShareBytes {
			return false
		}
	}
	return true
}

func (p *Pool) charge(id consensus.ProposalID, records, bytes int) {
	if p.shares == nil {
		p.shares = map[share]usage{}
	}
	for _, s := range sharesOf(id) {
		h := p.shares[s]
		h.records, h.bytes = h.records+records, h.bytes+bytes
		p.shares[s] = h
		if h.records == 0 {
			delete(p.shares, s)
		}
	}
}

// held is a record, what it touches, and since when it is held.
type held struct {
	record    consensus.Record
	footprint consensus.Footprint
	since     uint64
	asked     uint64 // when Older returned it last
}

// Len returns how many records are held, and Bytes the sum of their payloads.
func (p *Pool) Len() int { return len(p.records) }

// Bytes returns the sum of the payloads.
func (p *Pool) Bytes() int { return p.bytes }

// Top returns the greatest revision among the records, zero if there are none.
func (p *Pool) Top() uint64 { return p.top }

// CountOld returns how many of the records at the head that were held before a time are what which says.
func (p *Pool) CountOld(before uint64, which func(id consensus.ProposalID) bool) int {
	n := 0
	for i := 0; i < len(p.records) && p.records[i].since < before; i++ {
		if which(p.records[i].record.Proposal) {
			n++
		}
	}
	return n
}

// Meets reports whether any record conflicts with f.
func (p *Pool) Meets(f *consensus.Footprint) bool { return p.claims.Meets(f) }

// Holds reports whether any attempt of a proposal is held.
func (p *Pool) Holds(id consensus.ProposalID) bool { return p.byID[id] > 0 }

// Attempts returns how many attempts of a proposal are held.
func (p *Pool) Attempts(id consensus.ProposalID) int { return p.byID[id] }

// Find returns the attempts of a proposal, oldest first.
func (p *Pool) Find(id consensus.ProposalID) []consensus.Record {
	if p.byID[id] == 0 {
		return nil
	}
	var found []consensus.Record
	for i := range p.records {
		if p.records[i].record.Proposal == id {
			found = append(found, p.records[i].record)
		}
	}
	return found
}

// Add holds a record from now on, a time in ticks. It reports false, and changes nothing, if the attempt is held already.
func (p *Pool) Add(r consensus.Record, footprint consensus.Footprint, now uint64) bool {
	if p.byID[r.Proposal] > 0 && slices.ContainsFunc(p.records, func(h held) bool { return h.record.Attempt == r.Attempt }) {
		return false
	}
	if p.byID == nil {
		p.byID = map[consensus.ProposalID]int{}
	}
	p.records = append(p.records, held{record: r, footprint: footprint, since: now})
	p.byID[r.Proposal]++
	p.claims.Add(&footprint)
	p.bytes += len(r.Payload)
	p.charge(r.Proposal, 1, len(r.Payload))
	p.top = max(p.top, r.Revision)
	return true
}

// Forget drops the records that drop says, and returns their attempts.
func (p *Pool) Forget(drop func(r *consensus.Record) bool) []consensus.Attempt {
	var gone []consensus.Attempt
	keep := p.records[:0]
	p.top = 0
	for i := range p.records {
		h := p.records[i]
		if !drop(&h.record) {
			keep = append(keep, h)
			p.top = max(p.top, h.record.Revision)
			continue
		}
		gone = append(gone, h.record.Attempt)
		p.claims.Remove(&h.footprint)
		p.bytes -= len(h.record.Payload)
		p.charge(h.record.Proposal, -1, -len(h.record.Payload))
		if p.byID[h.record.Proposal]--; p.byID[h.record.Proposal] == 0 {
			delete(p.byID, h.record.Proposal)
		}
	}
	clear(p.records[len(keep):])
	p.records = keep
	return gone
}

// Records returns a copy of all records, in the order of arrival. Payloads are shared.
func (p *Pool) Records() []consensus.Record {
	if len(p.records) == 0 {
		return nil
	}
	all := make([]consensus.Record, len(p.records))
	for i := range p.records {
		all[i] = p.records[i].record
	}
	return all
}

// Older returns the proposals of up to most records that were held before a time, and not returned since that time, oldest
// first. Since when they are held stays as it is.
func (p *Pool) Older(before, now uint64, most int) []consensus.ProposalID {
	var old []consensus.ProposalID
	for i := range p.records {
		h := &p.records[i]
		if max(h.since, h.asked) >= before || len(old) == most {
			continue
		}
		h.asked = now
		if !slices.Contains(old, h.record.Proposal) {
			old = append(old, h.record.Proposal)
		}
	}
	return old
}
