package history

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/consensus"
)

// Twin is a sequence of segments that leaves the segments of a plan with another entry, and comes back to them with a sum of
// the chain that these have, too. Either some of its sums, or of the plan's, are none that a machine has, or somebody made
// entries for the sums of the cluster's: the sums have no key.
type Twin struct {
	Chain  []*backup.Stored // each continues the one before
	Of     *backup.Stored   // the plan's segment that has another entry
	After  consensus.Index  // the last state in which both agree before that
	Differ consensus.Index  // the first entry of which they differ
	Until  consensus.Index  // the state to which both lead
}

// print is what is compared of an entry, and the chain's sum after it.
type print struct {
	sum   uint64
	entry [sha256.Size]byte
}

// prints are those of a segment.
type prints struct {
	of     *backup.Stored
	before uint64
	all    []print
}

func printsOf(of *backup.Stored, s *backup.Segment) *prints {
	p := &prints{of, s.Before, make([]print, len(s.Items))}
	var b []byte
	for i := range s.Items {
		e := &s.Items[i].Entry
		b = binary.LittleEndian.AppendUint64(append(b[:0], byte(e.Kind)), uint64(e.Term))
		b = binary.LittleEndian.AppendUint64(b, uint64(e.Proposal.Session.Member))
		b = binary.LittleEndian.AppendUint64(b, e.Proposal.Session.Number)
		b = binary.LittleEndian.AppendUint64(b, e.Proposal.Sequence)
		b = binary.LittleEndian.AppendUint64(b, uint64(e.ExactRevision))
		p.all[i] = print{s.Items[i].Sum, sha256.Sum256(append(b, e.Payload...))}
	}
	return p
}

// at returns what is known of an entry; nil: the segment does not have it.
func (p *prints) at(index consensus.Index) *print {
	if index < p.of.First || index > p.of.End.Index {
		return nil
	}
	return &p.all[index-p.of.First]
}

// sumAt is backup.Segment.SumAt.
func (p *prints) sumAt(index consensus.Index) (sum uint64, has bool) {
	if index+1 == p.of.First {
		return p.before, true
	}
	if one := p.at(index); one != nil {
		return one.sum, true
	}
	return 0, false
}

// twins is Search.Twins at work.
type twins struct {
	*Search
	ctx     context.Context
	plan    *backup.Plan
	own     map[int]*prints        // of segments of the plan, by their place in it; nil: it cannot be read
	pending map[backup.Point]*Twin // by their ends: what has left the plan's segments, and has not come back yet
	again   bool                   // a segment of the plan is damaged
}

// Twins compares the entries of a plan with those of all segments that lead where its own do, and returns the first that has
// others, and comes back to the plan's sums; nil: none has. Segments that cannot be read say nothing; if one is the plan's, and
// damaged, there is another plan (again). Not compared before, more than backup.MaxStrays that do not turn out to have the same
// entries are an error, and more than sameMost of all but the plan's own: members that ship at once make some.
func (s *Search) Twins(ctx context.Context, p *backup.Plan) (twin *Twin, again bool, err error) {
	t := &twins{Search: s, ctx: ctx, plan: p, own: map[int]*prints{}, pending: map[backup.Point]*Twin{}}
	others, read := 0, 0
	plans := map[backup.Hash]bool{}
	for i := range p.Segments {
		plans[p.Segments[i].Hash] = true
	}
	for _, twin := range s.Catalog.Twins(p, s.damaged) {
		from, to := t.over(twin)
		key := compared{twin.Hash, p.Segments[from].Hash, p.Segments[to].Hash}
		if s.same[key] && t.pending[twin.Start()] == nil {
			continue
		}
		found, same, err := t.compare(twin, from, to)
		if found != nil || t.again || err != nil {
			return found, t.again, err
		}
		switch {
		case !same:
			others++
		case !plans[twin.Hash]:
			read++
		}
		if others > backup.MaxStrays || read > sameMost {
			return nil, false, fmt.Errorf("more than %d segments at the place lead where others do: somebody else writes "+
				"there. Find out who, and remove what is not of the cluster; or ask for a state before entry %d",
				max(others, read)-1, twin.First)
		}
		if t.pending[twin.End] == nil {
			if s.same == nil || len(s.same) > sameMost {
				s.same = map[compared]bool{}
			}
			s.same[key] = true
		}
	}
	return nil, false, nil
}

// sameMost is how many segments with the same entries as the plan's are read.
const sameMost = 16 * backup.MaxStrays

// over returns the places of the plan's segments that have the states of another segment, as far as some do.
func (t *twins) over(s *backup.Stored) (from, to int) {
	n := len(t.plan.Segments)
	for from < n-1 && t.plan.Segments[from].End.Index+1 < s.First {
		from++
	}
	for to = from; to < n-1 && t.plan.Segments[to].End.Index < s.End.Index; {
		to++
	}
	return from, to
}

// read returns what is known of a segment; nil: it cannot be read, or is damaged.
func (t *twins) read(s *backup.Stored) (of *prints, bad *damage, err error) {
	segment, err := t.segment(t.ctx, s)
	switch {
	case err == nil:
		return printsOf(s, segment), nil, nil
	case t.ctx.Err() == nil && (errors.As(err, &bad) || Hidden(err)):
		return nil, bad, nil
	}
	return nil, nil, err
}

// load reads the plan's segments from one place to another, and forgets those before.
func (t *twins) load(from, to int) error {
	for i := range t.own {
		if i < from {
			delete(t.own, i)
		}
	}
	for i := from; i <= to; i++ {
		if _, known := t.own[i]; known {
			continue
		}
		of, bad, err := t.read(&t.plan.Segments[i])
		if err != nil {
			return err
		}
		if t.own[i] = of; bad != nil {
			t.Leave(bad.object, bad.err)
			t.again = true
			return nil
		}
	}
	return nil
}

// compare compares a segment with those of the plan's segments that have its states. same says that it has no other entry.
func (t *twins) compare(s *backup.Stored, from, to int) (twin *Twin, same bool, err error) {
	if err := t.load(from, to); t.again || err != nil {
		return nil, false, err
	}
	other, _, err := t.read(s)
	if other == nil {
		return nil, false, err
	}
	left := (*Twin)(nil) // since when the segment has other entries; nil: it has the same
	if before := t.pending[s.Start()]; before != nil {
		whole := *before
		whole.Chain = append(slices.Clip(before.Chain), s)
		left = &whole
	}
	agreed, agrees := consensus.Index(0), false // the last state in which both agree, and whether they still do
	for index := max(s.First-1, t.plan.Base.Index); index <= s.End.Index; index++ {
		for from < to && t.plan.Segments[from].End.Index < index {
			from++
		}
		own := t.own[from] // the first that has an entry is applied
		if own == nil {
			agrees = false
			break
		}
		sum, has := own.sumAt(index)
		if !has {
			break
		}
		mine, its := own.at(index), other.at(index)
		if left == nil && agrees && mine != nil && its != nil && mine.entry != its.entry {
			left = &Twin{Chain: []*backup.Stored{s}, Of: own.of, After: agreed, Differ: index}
		}
		held, _ := other.sumAt(index)
		switch {
		case sum == held && left != nil:
			left.Until = index
			return left, false, nil
		case sum == held:
			agreed, agrees = index, true
		default:
			agrees = false
		}
	}
	if left != nil {
		t.pending[s.End] = left
	}
	return nil, agrees && left == nil, nil
}
