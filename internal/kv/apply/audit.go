package apply

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/engine"
)

// Audit is what the cluster says about the audit. It is replaced, not changed.
type Audit struct {
	Policy  []byte // the text of the policy; package audit knows its meaning
	Version uint64 // of the policy; zero: none was set
	Heads   []kv.AuditHeadRow

	numbers []uint64 // of the rows of Heads
	sum     uint64   // of all rows, for the chain
}

// Bounds of the heads. Both are parts of the form of the command: see kv.Needs.
const (
	// maxHeads is how many heads of one member are kept. If there are more, every second one of each chain in the older half is
	// deleted: so the last ones are a minute apart, and older ones ever more.
	maxHeads = 64
	// maxHeadMembers is of how many members, removed ones included, heads are kept.
	maxHeadMembers = 64
)

// auditForm is the number of the form of a row of the policy, and of a head.
const auditForm = 1

// auditTable holds the policy of the audit, and heads of the members' chains of records. The goroutine that calls Apply changes
// it; any goroutine may read it.
//
// Heads are sorted by member, and then in the order in which they were added.
type auditTable struct {
	state   atomic.Pointer[Audit]
	members *memberTable
	most    int // maxHeads, or Options.MostHeads
}

func (t *auditTable) load(eng engine.Engine) error {
	state := new(Audit)
	row, found, err := eng.Get(rowAudit)
	if err != nil {
		return fmt.Errorf("apply: read the audit's policy: %w", err)
	}
	if found {
		if state.Version, state.Policy, err = decodePolicy(row); err != nil {
			return err
		}
		state.sum = rowSum(rowAudit, row)
	}
	err = scan(eng, []byte{tableState, rowHead}, func(rest, value []byte) error {
		head, number, err := decodeHead(rest, value)
		if err != nil {
			return err
		}
		state.Heads, state.numbers = append(state.Heads, head), append(state.numbers, number)
		state.sum ^= headSum(&head, number)
		return nil
	})
	t.state.Store(state)
	return err
}

func appendPolicy(dst []byte, version uint64, text []byte) []byte {
	return appendBytes(binary.AppendUvarint(append(dst, auditForm), version), text)
}

func decodePolicy(row []byte) (version uint64, text []byte, err error) {
	rest, err := openRow("policy of the audit", nil, row, auditForm)
	if err != nil {
		return 0, nil, err
	}
	version, n := binary.Uvarint(rest)
	if n > 0 && version > 0 {
		if text, ok := onlyBytes(rest[n:]); ok && len(text) <= kv.MaxAuditPolicyBytes {
			return version, bytes.Clone(text), nil
		}
	}
	return 0, nil, fmt.Errorf("%w: policy of the audit", ErrCorruptRow)
}

func appendHead(dst []byte, head *kv.AuditHeadRow) []byte { return head.Append(append(dst, auditForm)) }

// decodeHead decodes a head from its key, behind the letters of the table, and its row.
func decodeHead(key, row []byte) (head kv.AuditHeadRow, number uint64, err error) {
	rest, err := openRow("head of an audit", key, row, auditForm)
	if err != nil {
		return head, 0, err
	}
	head, ok := kv.DecodeAuditHead(bytes.Clone(rest))
	if !ok || len(key) != 16 || head.Member != binary.BigEndian.Uint64(key) {
		return head, 0, fmt.Errorf("%w: head of an audit %x", ErrCorruptRow, key)
	}
	return head, binary.BigEndian.Uint64(key[8:]), nil
}

// headSum is what a head adds to Audit.sum.
func headSum(head *kv.AuditHeadRow, number uint64) uint64 {
	return rowSum(headRow(head.Member, number), appendHead(nil, head))
}

// change executes an AuditOp.
func (t *auditTable) change(w rowWriter, op *kv.AuditOp) error {
	if !op.Valid() {
		return kv.ErrBadCommand
	}
	next := *t.state.Load()
	if op.Kind == kv.AuditPolicy {
		if op.Version != next.Version {
			return kv.ErrBadCommand // another one was set meanwhile
		}
		if next.Version > 0 {
			next.sum ^= rowSum(rowAudit, appendPolicy(nil, next.Version, next.Policy))
		}
		next.Version, next.Policy = op.Version+1, bytes.Clone(op.Policy)
		row := appendPolicy(nil, next.Version, next.Policy)
		next.sum ^= rowSum(rowAudit, row)
		w.Set(rowAudit, row)
		t.state.Store(&next)
		return nil
	}
	if _, removed := t.members.removed(consensus.MemberID(op.Head.Member)); removed {
		return nil
	}
	next.Heads, next.numbers = slices.Clone(next.Heads), slices.Clone(next.numbers)
	if err := t.add(w, &next, &op.Head); err != nil {
		return err
	}
	t.state.Store(&next)
	return nil
}

// add adds a head, and deletes those that it makes too many. One that was added before changes nothing: its member proposes it
// until it knows that it was.
func (t *auditTable) add(w rowWriter, a *Audit, head *kv.AuditHeadRow) error {
	from, to := a.of(head.Member)
	number := uint64(1)
	if from < to {
		for i := range a.Heads[from:to] {
			known := &a.Heads[from+i]
			switch {
			case known.Chain != head.Chain || known.Sequence < head.Sequence:
			case known.Sequence == head.Sequence && bytes.Equal(known.Sum, head.Sum):
				return nil
			default:
				return kv.ErrHeadBehind
			}
		}
		number = a.numbers[to-1] + 1
	} else if !t.makeRoom(w, a) {
		return kv.ErrTooManyHeads
	}
	from, to = a.of(head.Member)
	own := *head
	own.Sum, own.File = bytes.Clone(head.Sum), bytes.Clone(head.File)
	a.Heads, a.numbers = slices.Insert(a.Heads, to, own), slices.Insert(a.numbers, to, number)
	w.Set(headRow(head.Member, number), appendHead(nil, &own))
	a.sum ^= headSum(&own, number)
	if to+1-from > t.most {
		a.thin(w, from, t.most)
	}
	return nil
}

// thin deletes every second head of each chain in the older half of those of a member, which begin at from: a member has a
// chain for each output, and their heads come in turn. Of chains with one head each the oldest goes.
func (a *Audit) thin(w rowWriter, from, most int) {
	before, at := len(a.Heads), from
	kept := map[uint64]bool{} // by chain: whether the last one that was looked at stays
	for range most/2 - 2 {
		chain := a.Heads[at].Chain
		if kept[chain] = !kept[chain]; kept[chain] {
			at++
		} else {
			a.remove(w, at) // which moves the next one to its place
		}
	}
	if len(a.Heads) == before {
		a.remove(w, from)
	}
}

// makeRoom deletes the heads of a removed member if there is no room for those of another one.
func (t *auditTable) makeRoom(w rowWriter, a *Audit) bool {
	members, gone := 0, -1
	for i := range a.Heads {
		if i > 0 && a.Heads[i].Member == a.Heads[i-1].Member {
			continue
		}
		members++
		if _, removed := t.members.removed(consensus.MemberID(a.Heads[i].Member)); removed && gone < 0 {
			gone = i
		}
	}
	if members < maxHeadMembers {
		return true
	}
	if gone < 0 {
		return false
	}
	from, to := a.of(a.Heads[gone].Member)
	for range to - from {
		a.remove(w, from)
	}
	return true
}

// of returns where the heads of a member are.
func (a *Audit) of(member uint64) (from, to int) {
	for from < len(a.Heads) && a.Heads[from].Member < member {
		from++
	}
	for to = from; to < len(a.Heads) && a.Heads[to].Member == member; {
		to++
	}
	return from, to
}

func (a *Audit) remove(w rowWriter, at int) {
	w.DeleteRaw(headRow(a.Heads[at].Member, a.numbers[at]))
	a.sum ^= headSum(&a.Heads[at], a.numbers[at])
	a.Heads, a.numbers = slices.Delete(a.Heads, at, at+1), slices.Delete(a.numbers, at, at+1)
}

func headRow(member, number uint64) []byte {
	return binary.BigEndian.AppendUint64(memberRow(rowHead, consensus.MemberID(member)), number)
}

// Audit returns the policy of the audit, and the heads of the members' chains. It must not be modified.
func (m *Machine) Audit() *Audit { return m.audit.state.Load() }
