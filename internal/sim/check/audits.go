package check

import (
	"bytes"
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// audits are the policy of the audit and the heads of the members' chains of records in the model.
type audits struct {
	version uint64
	policy  []byte
	heads   map[uint64][]kv.AuditHeadRow // by member, in the order in which they were added
	most    int                          // Suite.MostHeads
}

// change executes an AuditOp. Those of the simulator are within their bounds.
func (a *audits) change(op *kv.AuditOp, removed map[consensus.MemberID]bool) error {
	if op.Kind == kv.AuditPolicy {
		if op.Version != a.version {
			return kv.ErrBadCommand
		}
		a.version, a.policy = a.version+1, bytes.Clone(op.Policy)
		return nil
	}
	h := op.Head
	if removed[consensus.MemberID(h.Member)] {
		return nil
	}
	heads := a.heads[h.Member]
	for i := range heads {
		if heads[i].Chain == h.Chain && heads[i].Sequence >= h.Sequence {
			if heads[i].Sequence == h.Sequence && bytes.Equal(heads[i].Sum, h.Sum) {
				return nil
			}
			return kv.ErrHeadBehind
		}
	}
	h.Sum, h.File = bytes.Clone(h.Sum), bytes.Clone(h.File)
	if heads = append(heads, h); len(heads) > a.most {
		heads = thinned(heads, a.most/2-2)
	}
	a.heads[h.Member] = heads
	return nil
}

// thinned leaves out every second one of each chain among the first heads, or the first of all if that is none.
func thinned(heads []kv.AuditHeadRow, first int) (kept []kv.AuditHeadRow) {
	of := map[uint64]int{}
	for i := range heads {
		if of[heads[i].Chain]++; i >= first || of[heads[i].Chain]%2 == 1 {
			kept = append(kept, heads[i])
		}
	}
	if len(kept) == len(heads) {
		return kept[1:]
	}
	return kept
}

// Audited compares the policy and the heads of a member that has applied the log up to an index with the model.
func (s *Suite) Audited(
	member consensus.MemberID, index consensus.Index, version uint64, policy []byte, heads []kv.AuditHeadRow,
) {
	if int(index) != len(s.machine.outcomes) {
		return
	}
	a := &s.machine.audits
	if version != a.version || !bytes.Equal(policy, a.policy) {
		s.report("audit", "member %v has version %d of the policy at index %d, %q, not %d, %q", member, version, index, policy,
			a.version, a.policy)
	}
	want := 0
	for _, of := range a.heads {
		want += len(of)
	}
	if len(heads) != want {
		s.report("audit", "member %v has %d heads at index %d, not %d", member, len(heads), index, want)
	}
	at := map[uint64]int{}
	for i := range heads {
		h := &heads[i]
		of := a.heads[h.Member]
		if n := at[h.Member]; n >= len(of) || !sameHead(h, &of[n]) {
			s.report("audit", "member %v has the head %+v at index %d, the model %+v", member, *h, index, of)
			return
		}
		at[h.Member]++
	}
}

func sameHead(a, b *kv.AuditHeadRow) bool {
	return a.Chain == b.Chain && a.Sequence == b.Sequence && a.At == b.At && bytes.Equal(a.Sum, b.Sum) &&
		bytes.Equal(a.File, b.File)
}

// Heads returns the heads of a member in the model.
func (s *Suite) Heads(member uint64) []kv.AuditHeadRow {
	return slices.Clone(s.machine.audits.heads[member])
}
