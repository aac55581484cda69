package attempt

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/prove"
	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/base/printable"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
)

// Config is what a Machine goes by.
type Config struct {
	Member consensus.MemberID
	Look   time.Duration // between two looks whether this member is appointed, and until a report is made again
	Again  time.Duration // how long a second look at the place waits
	Behind time.Duration // how long the member may take to apply what was proven; zero: DefaultBehind
	Faults Faults
}

// Faults make a Machine wrong on purpose, for the simulator's negative controls.
type Faults struct {
	Lost bool // a state is proven though a later one was there
}

const (
	// DefaultBehind is how long a member may take to apply what was proven.
	DefaultBehind = 10 * time.Second
	lookOften     = 100 * time.Millisecond // whether an entry is applied
)

// Chain returns what the member has applied, and the hash at an index, as apply.Machine.ChainAt.
type Chain func(index consensus.Index) (applied consensus.Index, mark apply.ChainMark, known bool)

// Kind is the kind of an operation.
type Kind uint8

// Kinds of operations.
const (
	// Prove proves what the place of the row has now. It ends with Proved. It should end soon if Mine is false.
	Prove Kind = 1 + iota
	// Report replicates Command. It ends with Reported.
	Report
)

// Op is an operation that the caller does now.
type Op struct {
	Kind    Kind
	Row     *kv.BackupRow // when the look began
	Command kv.Command
	Unknown int  // of Report: bases at the place of which the cluster knows nothing
	Again   bool // of Report: it was asked for before
}

// Most is the last entry that anything at the place may be of: no later one was reported.
func (o *Op) Most() consensus.Index {
	if most := o.Row.Progress.Restorable.Index; most > 0 {
		return consensus.Index(most)
	}
	return math.MaxUint64
}

// After is the base at which the proof begins: the last one that was proven; or, where a base of an earlier entry was reported
// since then, as by a member that is behind when it begins to ship, the one before that, if one was reported before.
func (o *Op) After() backup.Hash {
	proven, known := o.Row.Proofs.Proven.Base, o.Row.Known
	at := slices.IndexFunc(known, func(b kv.BackupBase) bool { return b.Hash == proven })
	if at < 0 {
		return proven
	}
	first := known[at].Index
	for i := range known[at+1:] {
		first = min(first, known[at+1+i].Index)
	}
	if first == known[at].Index {
		return proven
	}
	from := known[at]
	for _, b := range known[:at] {
		if b.Index < first && (b.Index > from.Index || from.Hash == proven) {
			from = b
		}
	}
	return from.Hash
}

// Known reports whether members of the cluster made a base, as far as it knows: nobody else's store is opened here. The last
// base that was proven was known then.
func (o *Op) Known(h backup.Hash) bool {
	return h != (backup.Hash{}) && h == o.Row.Proofs.Proven.Base || o.Row.Knows(h)
}

// Lacks reports whether members reported that the backup lacks an entry, as far as the cluster knows.
func (o *Op) Lacks(index consensus.Index) bool { return o.Row.Lacks(uint64(index)) }

// phase is how far a try is.
type phase uint8

const (
	resting   phase = iota
	proving         // for the first or the second time
	waiting         // until the second look is due
	comparing       // until this member has applied what was proven
	reporting
)

// Machine is the state machine.
type Machine struct {
	config Config
	now    time.Time
	row    *kv.BackupRow // as it is
	chain  Chain
	ops    []Op
	under  bool // an operation is under way

	phase phase
	of    *kv.BackupRow // when the last look began
	began time.Time
	looks int
	until time.Time // of waiting and comparing
	found *prove.Proof
	proof kv.BackupProof // to be reported
	said  bool           // the report was asked for
}

// New returns a Machine that rests.
func New(c Config) *Machine {
	c.Behind = cmp.Or(c.Behind, DefaultBehind)
	return &Machine{config: c}
}

// Take returns the operation that is to begin, if there is one.
func (m *Machine) Take() (op Op, due bool) {
	if len(m.ops) == 0 {
		return op, false
	}
	op, m.ops = m.ops[0], nil
	m.under = true
	return op, true
}

// Pause is how long after the last call Look is due.
func (m *Machine) Pause() time.Duration {
	switch m.phase {
	case waiting:
		return max(0, m.until.Sub(m.now))
	case comparing:
		return min(lookOften, m.config.Behind)
	}
	return m.config.Look
}

// Rests reports whether no try is under way.
func (m *Machine) Rests() bool { return m.phase == resting && !m.under }

// Mine reports whether the try of an operation is still this member's, by a row.
func (m *Machine) Mine(o *Op, row *kv.BackupRow) bool { return m.mine(row, o.Row.Proofs.Number) }

func (m *Machine) mine(row *kv.BackupRow, number uint64) bool {
	return row.Policy.On && row.Proofs.Member == uint64(m.config.Member) && row.Proofs.Number == number
}

// Look tells the time, the row, and the member's chain.
func (m *Machine) Look(now time.Time, row *kv.BackupRow, chain Chain) {
	m.now, m.row, m.chain = now, row, chain
	if m.phase != resting && !m.mine(row, m.of.Proofs.Number) {
		m.rest()
	}
	switch {
	case m.under:
	case m.phase == resting && m.mine(row, row.Proofs.Number):
		m.of, m.began, m.looks, m.found = row, now, 0, nil
		m.prove()
	case m.phase == waiting && !now.Before(m.until):
		m.prove()
	case m.phase == comparing:
		m.compare()
	case m.phase == reporting && len(m.ops) == 0:
		m.report()
	}
}

func (m *Machine) rest() { m.phase, m.ops, m.of, m.found = resting, nil, nil, nil }

// errEncrypted is why members cannot prove a backup that is encrypted to recipients: they have none of the identities.
var errEncrypted = errors.New("it is encrypted, and members cannot read what they write: only an operator can prove it, by " +
	"`quorate backup verify --from URL --identity FILE --report --endpoints MEMBERS`")

func (m *Machine) prove() {
	if m.of.Policy.Recipients != "" {
		m.end(proofOf(nil, errEncrypted))
		return
	}
	m.phase = proving
	m.of = m.row // of a second look: retention may have removed, by rule, all that was there when the try began
	m.looks++
	m.ops = []Op{{Kind: Prove, Row: m.of}}
}

// Proved tells how Prove ended, as prove.Run does.
func (m *Machine) Proved(now time.Time, found *prove.Proof, err error) {
	m.now, m.under = now, false
	if m.phase != proving {
		return // the try is over
	}
	missing := err != nil && prove.Verdict(err) || found != nil && (len(found.Damaged) > 0 || m.lost(found))
	switch {
	case missing && m.looks == 1:
		m.phase, m.until = waiting, now.Add(m.config.Again) // what is removed by rule is missing for a moment
	case err != nil:
		m.end(proofOf(nil, err))
	default:
		m.found, m.phase, m.until = found, comparing, now.Add(m.config.Behind)
		m.compare()
	}
}

// lost reports whether the place leads to an earlier entry than was reported.
func (m *Machine) lost(found *prove.Proof) bool {
	return uint64(found.At.Index) < m.of.Progress.Restorable.Index && !m.config.Faults.Lost
}

// compare compares what was proven with this member's own chain once it has applied that.
func (m *Machine) compare() {
	index := m.found.At.Index
	applied, mark, known := m.chain(index)
	switch {
	case applied >= index:
		proof := proofOf(m.found, nil)
		m.holes(&proof)
		switch {
		case m.lost(m.found):
			fail(&proof, fmt.Sprintf("objects are gone: those that are left lead to entry %d, and entry %d was there", index,
				m.of.Progress.Restorable.Index))
		case known && m.foreign(&mark), m.otherEnd():
			fail(&proof, fmt.Sprintf("the place has another history of this cluster: entry %d has another sum there", index))
		}
		m.end(proof)
	case !m.now.Before(m.until):
		m.end(proofOf(nil, fmt.Errorf("the place leads to entry %d, and this member, which cannot compare it, has applied "+
			"%d entries so far", index, applied)))
	}
}

// foreign reports whether the state that was proven is none that this member had.
func (m *Machine) foreign(mark *apply.ChainMark) bool {
	at := &m.found.At
	return mark.Index == at.Index && mark.Since == m.found.Since && mark.Sum != at.Sum
}

// otherEnd reports whether the state that was proven is another one than the member had that shipped it. This member may not
// know: it forgets its chain's sums when it ends.
func (m *Machine) otherEnd() bool {
	reported := &m.of.Progress
	return reported.Sum != 0 && uint64(m.found.At.Index) == reported.Restorable.Index && m.found.At.Sum != reported.Sum
}

// end reports how the try ended.
func (m *Machine) end(proof kv.BackupProof) {
	proof.At, proof.Took = m.now.UnixMilli(), max(0, m.now.Sub(m.began).Milliseconds())
	m.phase, m.proof, m.said = reporting, proof, false
	m.report()
}

func (m *Machine) report() {
	op := Op{Kind: Report, Row: m.of, Command: kv.Command{Backup: &kv.BackupOp{Kind: kv.BackupProved, Turn: m.of.Proofs.Number,
		Member: uint64(m.config.Member), Proof: m.proof}}, Again: m.said}
	m.said = true
	if m.found != nil {
		op.Unknown = m.found.Unknown
	}
	m.ops = []Op{op}
}

// Reported tells how Report ended. Without an error it was applied, or refused for ever; else the report is made again.
func (m *Machine) Reported(now time.Time, err error) {
	m.now, m.under = now, false
	if err == nil && m.phase == reporting {
		m.rest()
	}
}

// proofOf is how a try ended, in the form of the row.
func proofOf(found *prove.Proof, err error) kv.BackupProof {
	if err != nil {
		failed := prove.Verdict(err)
		proof := kv.BackupProof{Failed: failed, Why: cut(err.Error())}
		if failed {
			proof.Damaged = 1
		}
		return proof
	}
	proof := kv.BackupProof{Proven: true, Point: kv.BackupPoint{Index: uint64(found.At.Index), Revision: found.At.Revision,
		Time: found.At.Time}, Bases: uint64(found.Bases), Entries: uint64(found.Entries), Base: found.Base.Hash,
		Damaged: uint64(len(found.Damaged))}
	var why []string
	if len(found.Damaged) > 0 {
		why = append(why, found.Damaged[0].Error())
	}
	for _, left := range []struct {
		bases int
		why   string
	}{
		{found.Unknown, unknown(found.Unknown)},
		{found.Apart, " not compared with the log, which leads to another state there"},
		{found.Left, " not compared with the log: more segments are there than this member lists, or larger ones; raise its " +
			"--memory"},
	} {
		if left.bases > 0 { // first: the other text may be long
			why = slices.Insert(why, 0, plural.Of(left.bases, "base")+left.why)
		}
	}
	if len(why) > 0 {
		proof.Why = cut(strings.Join(why, "; "))
	}
	return proof
}

// holes says of a proof that notes of gaps which no member reported explain holes in the log: anybody who writes to the place
// may have put one.
func (m *Machine) holes(proof *kv.BackupProof) {
	if n := m.found.Holes; n > 0 {
		why := fmt.Sprintf("%s in the log %s explained by notes alone that no member reported: such a note is of a member "+
			"that was killed before it reported the gap, or had a later one to report by then, or of an earlier backup at "+
			"this place; else somebody removed the log, and put it", plural.Of(n, "gap"), plural.Word(n, "is", "are"))
		proof.Why = cut(strings.TrimSuffix(why+"; "+proof.Why, "; "))
	}
}

// unknown says why so many bases were not looked at. One may be a member's own.
func unknown(bases int) string {
	if bases == 1 {
		return " not looked at, since no member has reported it: one that was killed, or replaced, after it had put the base " +
			"does not come to that. If proofs name another one later, find out who else writes to the place"
	}
	return " not looked at, since the cluster knows the last " + strconv.Itoa(kv.MaxBackupKnown) + " that members reported, " +
		"and no others: prove oftener (--verify-every), or find out who else writes to the place"
}

// fail makes a proof one of damage.
func fail(proof *kv.BackupProof, why string) {
	proof.Proven, proof.Failed, proof.Damaged, proof.Why = false, true, proof.Damaged+1, why
}

// cut makes a text fit into a proof.
func cut(text string) string { return cmp.Or(printable.Within(text, kv.MaxBackupProofBytes), "-") }
