package kv

import "encoding/binary"

// AuditKind says what an AuditOp sets.
type AuditKind uint8

const (
	AuditPolicy AuditKind = 1 // which calls members record
	AuditHead   AuditKind = 2 // the head of a member's chain of records
)

func (k AuditKind) known() bool { return k == AuditPolicy || k == AuditHead }

// AuditOp sets the policy of the audit, or adds the head of a member's chain of records (package audit). Members propose heads,
// and no request of a client becomes one.
type AuditOp struct {
	Kind AuditKind
	// Policy is the text of a policy: it means nothing to the state machine, and MaxAuditPolicyBytes bounds it. Version is that
	// of the policy to replace, zero if there was none. The new one has the next version.
	Policy  []byte
	Version uint64
	Head    AuditHeadRow
}

// AuditHeadRow says that a member's chain of records had a record with a sum.
type AuditHeadRow struct {
	Member, Chain, Sequence uint64
	At                      int64  // by the member's clock: milliseconds of Unix time
	Sum                     []byte // AuditSumBytes
	File                    []byte // its name at the member; MaxAuditFileBytes bounds it
}

// Bounds of an AuditOp.
const (
	MaxAuditPolicyBytes = 16 << 10
	MaxAuditFileBytes   = 255
	AuditSumBytes       = 24
)

func (op *AuditOp) append(dst []byte) []byte {
	dst = append(dst, byte(op.Kind))
	if op.Kind != AuditHead {
		return appendBytes(binary.AppendUvarint(dst, op.Version), op.Policy)
	}
	return op.Head.Append(dst)
}

// Append appends the binary form.
func (h *AuditHeadRow) Append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, h.Member)
	dst = binary.AppendUvarint(dst, h.Chain)
	dst = binary.AppendUvarint(dst, h.Sequence)
	dst = binary.AppendVarint(dst, h.At)
	return appendBytes(appendBytes(dst, h.Sum), h.File)
}

func (r *reader) audit() *AuditOp {
	op := &AuditOp{Kind: AuditKind(r.byte())}
	r.known(op.Kind.known() || op.Kind == 0)
	r.shown(op.Kind != 0)
	if op.Kind == AuditHead {
		op.Head = r.auditHead()
		return op
	}
	op.Version, op.Policy = r.uvarint(), r.bytes()
	return op
}

func (r *reader) auditHead() AuditHeadRow {
	return AuditHeadRow{Member: r.uvarint(), Chain: r.uvarint(), Sequence: r.uvarint(), At: r.varint(), Sum: r.bytes(),
		File: r.bytes()}
}

// DecodeAuditHead reads what Append of an AuditHeadRow wrote; its bytes alias src.
func DecodeAuditHead(src []byte) (h AuditHeadRow, ok bool) {
	r := reader{src: src}
	h = r.auditHead()
	return h, r.finish() == nil
}

// Valid reports whether the bounds hold.
func (op *AuditOp) Valid() bool {
	if op.Kind == AuditPolicy {
		return len(op.Policy) <= MaxAuditPolicyBytes
	}
	h := &op.Head
	return op.Kind == AuditHead && h.Sequence > 0 && len(h.Sum) == AuditSumBytes && len(h.File) <= MaxAuditFileBytes
}
