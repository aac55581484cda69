package sim

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/sim/dice"
)

// strikeAudit has an operator set the policy of the audit, who may have seen an older one, or a member tell a head of one of
// its chains: the next one, the last one again, an older one, or another one with the number of the last.
func (w *World) strikeAudit() {
	rng, h := w.faults.rng, w.operated()
	if h == nil {
		return
	}
	h.checkAudit()
	op := &kv.AuditOp{Kind: kv.AuditHead}
	if dice.Chance(rng, 0.2) {
		op.Kind, op.Version = kv.AuditPolicy, h.proc.Data.Machine.Audit().Version
		if dice.Chance(rng, 0.2) {
			op.Version = max(op.Version, 1) - 1
		}
		op.Policy = fmt.Appendf(nil, `{"policy": %d}`, rng.IntN(1000))
	} else {
		op.Head = w.drawHead(h)
	}
	w.run.struck("audit", auditText(op))
	command := &kv.Command{Audit: op, By: h.proc.Data.Machine.Users().ByMember()}
	h.proc.Clients.Propose(command, func(kv.Result, error) {})
}

func (w *World) drawHead(h *host) kv.AuditHeadRow {
	rng := w.faults.rng
	head := kv.AuditHeadRow{Member: uint64(h.id), Chain: 1 + uint64(rng.IntN(2)), At: int64(w.run.Now()), File: []byte("log")}
	for _, known := range w.run.suite.Heads(head.Member) {
		if known.Chain == head.Chain {
			head.Sequence = known.Sequence
		}
	}
	forks := uint64(0)
	switch rng.IntN(10) {
	case 0: // once more
	case 1:
		head.Sequence--
	case 2:
		forks = 1
	default:
		head.Sequence += 1 + uint64(rng.IntN(3))
	}
	if head.Sequence == 0 || head.Sequence > 1<<40 {
		head.Sequence = 1
	}
	head.Sum = sumOf(head.Chain, head.Sequence, forks)
	return head
}

func sumOf(numbers ...uint64) []byte {
	var b []byte
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	sum := sha256.Sum256(b)
	return sum[:kv.AuditSumBytes]
}

func auditText(op *kv.AuditOp) string {
	if op.Kind == kv.AuditPolicy {
		return fmt.Sprintf("policy %s in place of version %d", op.Policy, op.Version)
	}
	return fmt.Sprintf("head %d of chain %d of member %d", op.Head.Sequence, op.Head.Chain, op.Head.Member)
}

// checkAudit compares the policy and the heads of a member with the model.
func (h *host) checkAudit() {
	machine := h.proc.Data.Machine
	a := machine.Audit()
	h.suite.Audited(h.id, machine.Applied().Index, a.Version, a.Policy, a.Heads)
}
