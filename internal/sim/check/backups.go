package check

import (
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// Backups is the model of the row of a continuous backup, and the law of it: each turn is of one member, only that member
// reports, and what can be restored does not shrink while the place is the same. Nor does the row confuse tries to prove it.
type Backups struct {
	Turns, Reports, Policies uint64 // that took effect
	Late                     uint64 // appointments and reports of turns that were over

	generation, turn, member uint64
	on                       bool
	place, secret            string
	restorable               uint64
	said                     map[string][]Restorable // by place
	policies                 []BackupPolicy
	bases                    map[[32]byte]bool // that were reported
	last                     consensus.Index   // that changed any of it

	Tries, Proofs uint64 // appointments of a member that proves, and ends, that took effect
	number        uint64 // of the last one
	prover        uint64
}

// Restorable is a state that a member has called restorable, in a report that took effect.
type Restorable struct {
	Index    uint64
	Revision kv.Revision
	Base     uint64 // the last entry of the newest base, by the same report
	By       consensus.MemberID
}

// BackupPolicy is a policy that took effect.
type BackupPolicy struct {
	kv.BackupPolicy
	From  time.Duration   // virtual time at which a member first applied it
	Index consensus.Index // of its entry
}

// applied returns the model's error of an operation of an entry that is first applied now.
func (b *Backups) applied(now time.Duration, op *kv.BackupOp, removed func(member uint64) bool) error {
	if op.Kind == kv.BackupSet {
		if op.Generation != b.generation {
			return kv.ErrBadCommand
		}
		if op.Policy.Place != b.place || op.Policy.Secret != b.secret {
			b.restorable = 0
		}
		b.generation, b.turn, b.member, b.on, b.place = b.generation+1, b.turn+1, 0, op.Policy.On, op.Policy.Place
		b.secret = op.Policy.Secret
		b.number, b.prover = b.number+1, 0
		b.Policies++
		b.policies = append(b.policies, BackupPolicy{op.Policy, now, b.last})
		return nil
	}
	if op.Kind >= kv.BackupProve {
		return b.proved(op, removed)
	}
	if op.Turn != b.turn || removed(op.Member) || op.Kind == kv.BackupReport && (b.member == 0 || b.member != op.Member) ||
		op.Kind == kv.BackupAppoint && !b.on {
		b.Late++
		return kv.ErrBadCommand
	}
	if op.Kind == kv.BackupAppoint {
		b.turn, b.member = b.turn+1, op.Member
		b.Turns++
		return nil
	}
	if op.Progress.BaseHash != [32]byte{} {
		if b.bases == nil {
			b.bases = map[[32]byte]bool{}
		}
		b.bases[op.Progress.BaseHash] = true
	}
	if at := &op.Progress.Restorable; at.Index > b.restorable {
		b.restorable = at.Index
		if b.said == nil {
			b.said = map[string][]Restorable{}
		}
		b.said[b.place] = append(b.said[b.place], Restorable{at.Index, at.Revision,
			op.Progress.Base.Index, consensus.MemberID(op.Member)})
	}
	b.Reports++
	return nil
}

// proved returns the model's error of an operation about a proof: each number is of one member, and ends once.
func (b *Backups) proved(op *kv.BackupOp, removed func(member uint64) bool) error {
	begins := op.Kind == kv.BackupProve && b.on
	ends := op.Kind == kv.BackupProved && b.prover != 0 && b.prover == op.Member
	if op.Turn != b.number || removed(op.Member) || !begins && !ends {
		b.Late++
		return kv.ErrBadCommand
	}
	b.prover = 0
	if ends {
		b.Proofs++
		return nil
	}
	b.number, b.prover = b.number+1, op.Member
	b.Tries++
	return nil
}

// Backed compares the row of a member that has applied the log up to an index with the model, if no member has applied more
// that concerns it.
func (s *Suite) Backed(member consensus.MemberID, index consensus.Index, row *kv.BackupRow) {
	b := &s.machine.backups
	if index < b.last {
		return
	}
	if row.Generation != b.generation || row.Turn != b.turn || row.Member != b.member || row.Policy.On != b.on ||
		row.Proofs.Number != b.number || row.Proofs.Member != b.prover ||
		row.Progress.Restorable.Index != b.restorable || row.Reports != b.Reports {
		s.report("backup", "member %v has the row %+v at index %d, the model %+v", member, *row, index, *b)
	}
}

// Backups returns the model of the backup's row.
func (s *Suite) Backups() *Backups { return &s.machine.backups }

// Said returns what members have called restorable at a place, in the order in which they said it.
func (b *Backups) Said(place string) []Restorable { return b.said[place] }

// Set returns the policies that took effect, in their order.
func (b *Backups) Set() []BackupPolicy { return b.policies }

// Reported reports whether a member reported a base whose manifest has a hash.
func (b *Backups) Reported(hash [32]byte) bool { return b.bases[hash] }

// Ships reports whether a backup is on, and how many reports there were.
func (b *Backups) Ships() (on bool, reports uint64) { return b.on, b.Reports }
