package model

import (
	"fmt"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// machine is the state machine: it applies the entries of a log to a store.
type machine struct {
	rules     rules.Set
	footprint *[MaxProposals]uint8 // keys of each proposal, as bits
	lies      *[MaxProposals]uint8 // keys of its second payload; nil: no client lies
}

// keys are the keys that a payload of a proposal touches, as bits.
func (m machine) keys(proposal, payload int8) uint8 {
	if payload == 1 {
		return m.lies[proposal]
	}
	return m.footprint[proposal]
}

// apply changes the store by one entry.
func (m machine) apply(st *store, e *entry) {
	if e.Kind == abortEntry {
		if r := &st.Rows[e.Proposal]; !r.Done && !m.rules[rules.AbortNoRow] {
			r.Aborted = true
		}
		return
	}
	if !e.command() {
		return
	}
	r := &st.Rows[e.Proposal]
	skipped := m.rules[rules.SkipIsResult] && st.Skipped[e.Proposal] != [2]uint32{}
	if (r.Done || r.Aborted) && !m.rules[rules.ApplyTwice] || skipped {
		return
	}
	revision := st.Revision + 1
	if e.Kind == exactEntry {
		revision = e.Revision
		if revision <= st.Revision {
			switch {
			case m.rules[rules.SkipTakesNext]:
				revision = st.Revision + 1
			case m.rules[rules.SkipApplies]:
				st.Bad = fmt.Sprintf("L2: P%d applied at revision %d on a store at %d", e.Proposal, revision, st.Revision)
			default:
				st.Skipped[e.Proposal][e.Payload] |= 1 << uint(revision)
				return
			}
		}
	}
	if r.Done {
		st.Bad = fmt.Sprintf("L1: P%d applied twice, at revisions %d and %d", e.Proposal, r.Revision, revision)
	}
	r.Done, r.Revision, r.Result = true, revision, result{}
	for k := range int8(maxKeys) {
		if Has(m.keys(e.Proposal, e.Payload), k) {
			r.Result[k] = st.Changed[k]
			st.Changed[k] = revision
		}
	}
	st.Revision = revision
}

// StoreAt is the store after the first n entries of a log.
func (m machine) StoreAt(l *journal, n int8) (st store) {
	st.Revision = 1
	for i := range n {
		m.apply(&st, &l.E[i])
	}
	return st
}

// Applied is a member's store.
func (m machine) Applied(x *member) (st store) {
	if x.RowsLost == 0 {
		return m.StoreAt(&x.Log, x.Applied)
	}
	st = m.StoreAt(&x.Log, x.RowsLost)
	st.Rows, st.Skipped = [MaxProposals]row{}, [MaxProposals][2]uint32{}
	for i := x.RowsLost; i < x.Applied; i++ {
		m.apply(&st, &x.Log.E[i])
	}
	return st
}

// Bound is an upper bound of the revision of every entry in the member's log.
func (m machine) Bound(x *member, st *store) int8 {
	b := st.Revision
	for i := x.Applied; i < x.Log.N; i++ {
		switch e := &x.Log.E[i]; e.Kind {
		case slowEntry:
			b++
		case exactEntry:
			b = max(b, e.Revision)
		}
	}
	return b
}

// evaluate computes a command's result on an applied state.
func (m machine) evaluate(st *store, proposal, payload int8) (res result) {
	for k := range int8(maxKeys) {
		if Has(m.keys(proposal, payload), k) {
			res[k] = st.Changed[k]
		}
	}
	return res
}

// logged reports whether the member knows the proposal as an entry that is open or decided. An applied entry that was skipped
// does not count.
func (m machine) logged(x *member, proposal int8) bool {
	for i := x.Applied; i < x.Log.N; i++ {
		if e := &x.Log.E[i]; (e.command() || e.Kind == abortEntry) && e.Proposal == proposal {
			return true
		}
	}
	st := m.Applied(x)
	return st.Rows[proposal].Done || st.Rows[proposal].Aborted
}
