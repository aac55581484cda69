package kv

import (
	"encoding/binary"
	"unicode/utf8"
)

// BackupProof is how a try to prove the backup ended: a restore proved a state, or it failed because of the backup, or
// (neither) it could not be tried. Times are milliseconds of Unix time by the clock of the member.
type BackupProof struct {
	At      int64 // when it ended; zero: there was none
	Took    int64 // milliseconds
	Member  uint64
	By      string      // the operator's user, if Member is zero; empty: users are off
	Proven  bool        // the state at Point was restored, and has the cluster's sums
	Failed  bool        // the backup is damaged, or of another state
	Point   BackupPoint // the newest state that was restored
	Bases   uint64      // that were compared with the log
	Entries uint64      // that were applied, with the cluster's sums
	Base    [32]byte    // hash of the base at which the next proof begins: those before it were compared
	Damaged uint64      // objects that are damaged, whether or not others replace them
	Why     string      // it failed or was not tried, or the first damaged object
}

// BackupProofs is what the cluster knows of proofs of its backup, since the policy names this place.
type BackupProofs struct {
	Number     uint64 // of the last try; grows with each, and with each policy
	Member     uint64 // that tries now; zero: none
	Began      int64  // when it was appointed, in milliseconds of Unix time by the clock of the leader
	Generation uint64 // of the policy when the last try ended; zero: none did
	Last       BackupProof
	Proven     BackupProof // the last one that proved a state
}

// Bounds of a proof.
const (
	MinBackupVerifySeconds = 60
	MaxBackupVerifySeconds = 30 * 24 * 3600
	MaxBackupProofBytes    = 512 // of each text
)

// Flags of a proof.
const (
	backupProven = 1 << iota
	backupFailed
)

func (p *BackupProof) append(dst []byte) []byte {
	dst = binary.AppendVarint(binary.AppendVarint(dst, p.At), p.Took)
	dst = appendText(binary.AppendUvarint(dst, p.Member), p.By)
	dst = append(dst, flag(p.Proven, backupProven)|flag(p.Failed, backupFailed))
	dst = binary.AppendUvarint(binary.AppendUvarint(p.Point.append(dst), p.Bases), p.Entries)
	return appendText(binary.AppendUvarint(append(dst, p.Base[:]...), p.Damaged), p.Why)
}

func (r *reader) backupProof() BackupProof {
	p := BackupProof{At: r.varint(), Took: r.varint(), Member: r.uvarint(), By: string(r.bytes())}
	flags := r.flags(backupProven | backupFailed)
	p.Proven, p.Failed = flags&backupProven != 0, flags&backupFailed != 0
	p.Point, p.Bases, p.Entries, p.Base = r.backupPoint(), r.uvarint(), r.uvarint(), r.hash()
	p.Damaged, p.Why = r.uvarint(), string(r.bytes())
	return p
}

func (p *BackupProofs) append(dst []byte) []byte {
	dst = binary.AppendUvarint(binary.AppendUvarint(dst, p.Number), p.Member)
	dst = binary.AppendUvarint(binary.AppendVarint(dst, p.Began), p.Generation)
	return p.Proven.append(p.Last.append(dst))
}

func (r *reader) backupProofs() BackupProofs {
	return BackupProofs{Number: r.uvarint(), Member: r.uvarint(), Began: r.varint(), Generation: r.uvarint(),
		Last: r.backupProof(), Proven: r.backupProof()}
}

// Valid reports whether the bounds hold, and the parts agree.
func (p *BackupProof) Valid() bool {
	for _, text := range [...]string{p.By, p.Why} {
		if len(text) > MaxBackupProofBytes || !utf8.ValidString(text) {
			return false
		}
	}
	return p.At > 0 && p.Took >= 0 && !(p.Proven && p.Failed) && (!p.Proven || p.Point.Index > 0)
}

// reset is what is known after a policy was set: a try that is under way belongs to the former one.
func (p *BackupProofs) reset(samePlace bool) {
	number := p.Number + 1
	if !samePlace {
		*p = BackupProofs{}
	}
	p.Number, p.Member, p.Began = number, 0, 0
}

// prove returns the row after a BackupProve, BackupProved or BackupClaim.
func (b *BackupRow) prove(op *BackupOp, removed func(member uint64) bool) (next BackupRow, ok bool) {
	next = *b
	p := &next.Proofs
	switch op.Kind {
	case BackupProve:
		if op.Turn != p.Number || !b.Policy.On || op.Member == 0 || removed(op.Member) {
			return *b, false
		}
		p.Number++
		p.Member, p.Began = op.Member, op.Proof.At
		return next, true
	case BackupProved:
		if op.Turn != p.Number || p.Member == 0 || op.Member != p.Member || removed(op.Member) || !op.Proof.Valid() {
			return *b, false
		}
		p.Member, p.Began, p.Generation = 0, 0, b.Generation
		next.proved(op.Proof, op.Member, "")
		return next, true
	}
	if op.Generation != b.Generation || b.Generation == 0 || !op.Proof.Valid() || op.Proof.Proven == op.Proof.Failed {
		return *b, false
	}
	next.proved(op.Proof, 0, op.Proof.By)
	return next, true
}

// proved takes a proof into the row.
func (b *BackupRow) proved(proof BackupProof, member uint64, by string) {
	p := &b.Proofs
	proof.Member, proof.By = member, by
	p.Last = proof
	if proof.Proven {
		if proof.Base == ([32]byte{}) { // the next proof begins where the last one of a member ended
			proof.Base = p.Proven.Base
		}
		p.Proven = proof
	}
}
