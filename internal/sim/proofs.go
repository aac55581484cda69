package sim

import (
	"time"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/shipping"
)

// Times of proofs in a world.
const (
	proverAway     = 2 * time.Second
	proverPatience = 4 * time.Second
)

// keepProofs appoints, on the leader, the member that proves the backup, as package member does; and on that member says how it
// ended, by turns as proven, as failed and as not tried. Some members never say.
func keepProofs(h *host) {
	if !h.run.plan.Ships {
		return
	}
	appoints, reports := false, false
	pace := h.run.buckets.pace
	prover := shipping.Prover{Away: pace * proverAway, Patience: pace * proverPatience, Settle: pace * backupPatience}
	var look func()
	look = func() {
		h.after(backupScan, look)
		if !h.serves() || h.run.shipped {
			prover.Rest()
			return
		}
		row := h.proc.Data.Machine.Backup()
		if !h.leads() {
			prover.Rest()
		} else {
			status := h.proc.Node.Replica().Status()
			view := shipping.View{Row: row, Status: &status}
			if command, due := prover.Look(h.shipClock().Add(-h.date), h.shipClock().UnixMilli(), &view); due && !appoints {
				appoints = true
				h.proc.Clients.Propose(&command, func(kv.Result, error) { appoints = false })
			}
		}
		if p := &row.Proofs; p.Member == uint64(h.id) && p.Number%4 != 3 && !reports {
			reports = true
			op := &kv.BackupOp{Kind: kv.BackupProved, Turn: p.Number, Member: p.Member, Proof: h.proof(p.Number)}
			h.proc.Clients.Propose(&kv.Command{Backup: op}, func(kv.Result, error) { reports = false })
		}
	}
	look()
}

// proof is how a try ends.
func (h *host) proof(number uint64) kv.BackupProof {
	machine := h.proc.Data.Machine
	p := kv.BackupProof{At: max(1, h.shipClock().UnixMilli()), Point: kv.BackupPoint{Index: uint64(machine.Applied().Index),
		Revision: machine.Store().Revision()}}
	switch number % 4 {
	case 0:
		p.Proven = true
	case 1:
		p.Failed, p.Why = true, "an object"
	default:
		p.Why = "no room"
	}
	return p
}
