package kv

import (
	"encoding/binary"
	"unicode/utf8"
)

// BackupKind says what a BackupOp does.
type BackupKind uint8

const (
	BackupSet     BackupKind = 1 // sets the policy, and ends the turn of the member that ships
	BackupAppoint BackupKind = 2 // begins the turn of a member
	BackupReport  BackupKind = 3 // says how far the member got whose turn it is
	BackupProve   BackupKind = 4 // appoints the member that tries to prove the backup
	BackupProved  BackupKind = 5 // says how the try of that member ended
	BackupClaim   BackupKind = 6 // says how an operator's own try ended
)

func (k BackupKind) known() bool { return k >= BackupSet && k <= BackupClaim }

// FromClient reports whether clients propose operations of the kind. Only root may.
func (k BackupKind) FromClient() bool { return k == BackupSet || k == BackupClaim }

// BackupOp changes the row of the continuous backup (package backup). BackupSet and BackupClaim come from clients: the leader
// appoints the members that ship and prove, and these report.
type BackupOp struct {
	Kind BackupKind
	// Generation is that of the policy to replace, zero if there was none; the new policy has the next one. Of BackupSet. Of
	// BackupClaim, it is that of the policy whose place was tried.
	Generation uint64
	Policy     BackupPolicy // of BackupSet
	// Turn is that of the appointment to replace, which the next one follows, or the turn that the report is of. Of BackupProve
	// and BackupProved, it is the number of the last try (BackupProofs).
	Turn     uint64
	Member   uint64         // that is appointed, or reports
	Progress BackupProgress // of BackupReport
	Proof    BackupProof    // of BackupProved and BackupClaim; of BackupProve only At
}

// BackupPolicy says what is shipped where. The state machine does not interpret place and rule.
type BackupPolicy struct {
	On          bool
	Place       string // URL without credentials
	Keep        string // rule of what is kept (package backup/keep); empty: all
	BaseSeconds int64  // a base is made so often
	SealMillis  int64  // a segment is sealed after so long
	// Recipients are those that the backup is encrypted to, with a space between two; empty: it is in the clear.
	Recipients string
	Secret     string // of the recipients (backup.Secret): BackupSecretBytes, or nothing
	// Former are secrets of recipients that came before at this place, BackupSecretBytes each, the last ones first.
	Former string
	// VerifySeconds is how often members prove the backup; zero: they do not.
	VerifySeconds int64
	Since         int64 // when it was set, in milliseconds of Unix time by the clock of the member that was asked
}

// BackupProgress is what the member that ships knows. Times are milliseconds of Unix time by its clock; what is zero is not
// known, and does not replace what the row has.
type BackupProgress struct {
	At         int64       // when it was known
	Restorable BackupPoint // all entries up to it can be restored
	Sum        uint64      // of the chain after Restorable, as names at the place have it; zero: not known
	Base       BackupPoint // the newest one
	BaseHash   [32]byte    // of the manifest of Base; zero: not known
	Gaps       uint64      // of this turn
	Gap        BackupGap   // the last one
	Trouble    string      // why the place takes nothing now; empty: it does
	Refused    bool        // the member may not use the place: its operator did not allow it; Trouble says how to
	Retention  BackupRetention
}

// BackupPoint is a point of the log, with the time until which all that was applied is before it.
type BackupPoint struct {
	Index    uint64
	Revision Revision
	Time     int64
}

// Bounds of a BackupOp.
const (
	MaxBackupPlaceBytes   = 2048
	MaxBackupKeepBytes    = 256
	MaxBackupTroubleBytes = 512

	MaxBackupRecipientBytes = 8 << 10
	BackupSecretBytes       = 32
	MaxBackupFormer         = 4 // secrets

	MinBackupBaseSeconds = 60
	MaxBackupBaseSeconds = 30 * 24 * 3600
	MinBackupSealMillis  = 100
	MaxBackupSealMillis  = 3600 * 1000
)

// Flags of a policy and of progress.
const (
	backupOn      = 1
	backupRefused = 2
)

func (op *BackupOp) append(dst []byte) []byte {
	dst = append(dst, byte(op.Kind))
	switch op.Kind {
	case BackupSet:
		return op.Policy.Append(binary.AppendUvarint(dst, op.Generation))
	case BackupReport:
		return op.Progress.Append(binary.AppendUvarint(binary.AppendUvarint(dst, op.Turn), op.Member))
	case BackupProve:
		return binary.AppendVarint(binary.AppendUvarint(binary.AppendUvarint(dst, op.Turn), op.Member), op.Proof.At)
	case BackupProved:
		return op.Proof.append(binary.AppendUvarint(binary.AppendUvarint(dst, op.Turn), op.Member))
	case BackupClaim:
		return op.Proof.append(binary.AppendUvarint(dst, op.Generation))
	}
	return binary.AppendUvarint(binary.AppendUvarint(dst, op.Turn), op.Member)
}

func (r *reader) backup() *BackupOp {
	op := &BackupOp{Kind: BackupKind(r.byte())}
	r.known(op.Kind.known() || op.Kind == 0)
	r.shown(op.Kind != 0)
	switch op.Kind {
	case BackupSet:
		op.Generation, op.Policy = r.uvarint(), r.backupPolicy()
		return op
	case BackupClaim:
		op.Generation, op.Proof = r.uvarint(), r.backupProof()
		return op
	}
	op.Turn, op.Member = r.uvarint(), r.uvarint()
	switch op.Kind {
	case BackupReport:
		op.Progress = r.backupProgress()
	case BackupProve:
		op.Proof.At = r.varint()
	case BackupProved:
		op.Proof = r.backupProof()
	}
	return op
}

// Append appends the binary form.
func (p *BackupPolicy) Append(dst []byte) []byte {
	dst = appendText(appendText(append(dst, flag(p.On, backupOn)), p.Place), p.Keep)
	dst = binary.AppendVarint(binary.AppendVarint(dst, p.BaseSeconds), p.SealMillis)
	dst = binary.AppendVarint(binary.AppendVarint(dst, p.VerifySeconds), p.Since)
	return appendText(appendText(appendText(dst, p.Recipients), p.Secret), p.Former)
}

func (r *reader) backupPolicy() BackupPolicy {
	return BackupPolicy{On: r.flags(backupOn) != 0, Place: string(r.bytes()), Keep: string(r.bytes()), BaseSeconds: r.varint(),
		SealMillis: r.varint(), VerifySeconds: r.varint(), Since: r.varint(), Recipients: string(r.bytes()),
		Secret: string(r.bytes()), Former: string(r.bytes())}
}

// Append appends the binary form.
func (p *BackupProgress) Append(dst []byte) []byte {
	dst = p.Restorable.append(binary.AppendVarint(dst, p.At))
	dst = append(p.Base.append(binary.AppendUvarint(dst, p.Sum)), p.BaseHash[:]...)
	dst = binary.AppendUvarint(dst, p.Gaps)
	dst = p.Gap.append(dst)
	return p.Retention.append(appendText(append(dst, flag(p.Refused, backupRefused)), p.Trouble))
}

func (p *BackupPoint) append(dst []byte) []byte {
	return binary.AppendVarint(appendRevision(binary.AppendUvarint(dst, p.Index), p.Revision), p.Time)
}

func (r *reader) backupPoint() BackupPoint {
	return BackupPoint{Index: r.uvarint(), Revision: r.revision(), Time: r.varint()}
}

func (r *reader) backupProgress() BackupProgress {
	p := BackupProgress{At: r.varint(), Restorable: r.backupPoint(), Sum: r.uvarint(), Base: r.backupPoint(),
		BaseHash: r.hash(), Gaps: r.uvarint(), Gap: r.backupGap()}
	p.Refused = r.flags(backupRefused) != 0
	p.Trouble = string(r.bytes())
	p.Retention = r.backupRetention()
	return p
}

// BackupRow is what the cluster knows of its continuous backup.
type BackupRow struct {
	Generation uint64 // of the policy; zero: none was ever set
	Policy     BackupPolicy
	Turn       uint64 // number of the last appointment; grows with each, and with each policy
	Member     uint64 // that ships; zero: none is appointed
	Reports    uint64 // grows with each report
	TurnGaps   uint64 // those of Progress.Gaps that are of this turn
	// Progress is what was reported since the policy names this place and these recipients. Its Gaps are those of all turns.
	Progress BackupProgress
	Proofs   BackupProofs
	// Known are the bases that members reported since then, MaxBackupKnown at most, the newest report last. It is replaced, not
	// changed. Names at the place may be anybody's who can write there.
	Known []BackupBase
	// KnownGaps are the gaps that members reported since then, MaxBackupKnown at most, the newest report last. It is replaced,
	// not changed. Notes at the place may be anybody's who can write there.
	KnownGaps []BackupGap
}

// Knows reports whether the hash is that of the manifest of a base that a member reported, and that is not forgotten yet.
func (b *BackupRow) Knows(hash [32]byte) bool { return knows(b.Known, hash) }

// Lacks reports whether a member reported that the backup lacks an entry, and that is not forgotten yet.
func (b *BackupRow) Lacks(index uint64) bool { return lacks(b.KnownGaps, index) }

// Append appends the binary form.
func (b *BackupRow) Append(dst []byte) []byte {
	for _, n := range [...]uint64{b.Generation, b.Turn, b.Member, b.Reports, b.TurnGaps} {
		dst = binary.AppendUvarint(dst, n)
	}
	return appendGaps(appendKnown(b.Proofs.append(b.Progress.Append(b.Policy.Append(dst))), b.Known), b.KnownGaps)
}

// DecodeBackupRow reads what Append wrote.
func DecodeBackupRow(src []byte) (b BackupRow, ok bool) {
	r := reader{src: src}
	b = BackupRow{Generation: r.uvarint(), Turn: r.uvarint(), Member: r.uvarint(), Reports: r.uvarint(), TurnGaps: r.uvarint(),
		Policy: r.backupPolicy(), Progress: r.backupProgress(), Proofs: r.backupProofs(), Known: r.backupKnown(),
		KnownGaps: r.backupGaps()}
	return b, r.finish() == nil
}

// Valid reports whether the bounds hold.
func (p *BackupPolicy) Valid() bool {
	return p.Place != "" && len(p.Place) <= MaxBackupPlaceBytes && utf8.ValidString(p.Place) &&
		len(p.Keep) <= MaxBackupKeepBytes && utf8.ValidString(p.Keep) &&
		MinBackupBaseSeconds <= p.BaseSeconds && p.BaseSeconds <= MaxBackupBaseSeconds &&
		MinBackupSealMillis <= p.SealMillis && p.SealMillis <= MaxBackupSealMillis && p.validRecipients() &&
		(p.VerifySeconds == 0 || MinBackupVerifySeconds <= p.VerifySeconds && p.VerifySeconds <= MaxBackupVerifySeconds)
}

func (p *BackupPolicy) validRecipients() bool {
	secret := BackupSecretBytes
	if p.Recipients == "" {
		secret = 0
	}
	return len(p.Recipients) <= MaxBackupRecipientBytes && utf8.ValidString(p.Recipients) && len(p.Secret) == secret &&
		len(p.Former)%BackupSecretBytes == 0 && len(p.Former) <= MaxBackupFormer*BackupSecretBytes
}

// Valid reports whether the bounds hold.
func (p *BackupProgress) Valid() bool {
	for _, text := range [...]string{p.Trouble, p.Retention.Why} {
		if len(text) > MaxBackupTroubleBytes || !utf8.ValidString(text) {
			return false
		}
	}
	return p.Base.Index > 0 || p.BaseHash == [32]byte{}
}

// Next returns the row after an operation; false if the operation does not fit the row, and changes nothing. removed says which
// members are removed from the cluster.
func (b *BackupRow) Next(op *BackupOp, removed func(member uint64) bool) (next BackupRow, ok bool) {
	next = *b
	switch op.Kind {
	case BackupSet:
		if op.Generation != b.Generation || !op.Policy.Valid() {
			return next, false
		}
		if op.Policy.Place != b.Policy.Place || op.Policy.Secret != b.Policy.Secret {
			next.Progress, next.Known, next.KnownGaps = BackupProgress{}, nil, nil
		}
		next.Proofs.reset(op.Policy.Place == b.Policy.Place && op.Policy.Secret == b.Policy.Secret)
		next.Policy, next.Member, next.TurnGaps, next.Progress.Refused = op.Policy, 0, 0, false
		next.Generation++
		next.Turn++
		return next, true
	case BackupAppoint:
		if op.Turn != b.Turn || !b.Policy.On || op.Member == 0 || removed(op.Member) {
			return next, false
		}
		next.Turn++
		next.Member, next.TurnGaps, next.Progress.Refused = op.Member, 0, false // it has not said that yet
		return next, true
	case BackupReport:
		if op.Turn != b.Turn || b.Member == 0 || op.Member != b.Member || removed(op.Member) || !op.Progress.Valid() {
			return next, false
		}
		next.Reports++
		next.report(&op.Progress)
		return next, true
	case BackupProve, BackupProved, BackupClaim:
		return b.prove(op, removed)
	}
	return next, false
}

// report takes what is known into the row. A member that begins its turn may not have found the last segment yet: its report
// takes nothing back.
func (b *BackupRow) report(said *BackupProgress) {
	p := &b.Progress
	p.At, p.Trouble, p.Refused = said.At, said.Trouble, said.Refused
	p.Retention.report(&said.Retention)
	if said.Restorable.Index > p.Restorable.Index ||
		said.Restorable.Index == p.Restorable.Index && said.Restorable.Time > p.Restorable.Time {
		p.Restorable, p.Sum = said.Restorable, said.Sum
	}
	if said.Base.Index > p.Base.Index {
		p.Base, p.BaseHash = said.Base, said.BaseHash
	}
	b.Known = know(b.Known, BackupBase{said.Base.Index, said.BaseHash})
	if said.Gaps > b.TurnGaps {
		p.Gaps += said.Gaps - b.TurnGaps
		b.TurnGaps = said.Gaps
	}
	if said.Gap.Time != 0 {
		p.Gap = said.Gap
		b.KnownGaps = knowGap(b.KnownGaps, said.Gap)
	}
}
