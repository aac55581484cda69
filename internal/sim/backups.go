package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/shipping"
	"github.com/quorate/quorate/internal/sim/dice"
)

// Times of a backup in a world: a tenth of a member's or less.
const (
	backupScan     = 150 * time.Millisecond
	backupReports  = 600 * time.Millisecond
	backupPatience = 4 * time.Second
	backupAway     = 2 * time.Second
	backupMoves    = 12 * time.Second
)

// startBackups makes the operator of a world whose members ship a backup: the policy is set, stopped, and moved to another
// place, through any member, which may know an earlier one.
func (w *World) startBackups(seed uint64) {
	if !w.run.plan.Ships {
		return
	}
	rng := dice.Stream(seed, streamBackups)
	var set func()
	set = func() {
		w.setBackup(rng, !dice.Chance(rng, 0.2))
		w.run.After(dice.Exponential(rng, 5*time.Second), set)
	}
	w.run.After(dice.Exponential(rng, time.Second), set)
}

// setBackup proposes a policy through some member.
func (w *World) setBackup(rng *rand.Rand, on bool) {
	all := w.cluster.up()
	if len(all) == 0 || w.run.calm {
		return
	}
	h := all[rng.IntN(len(all))]
	if !h.serves() || h.proc.Data.Machine.ActiveLevel() < level.Second {
		return
	}
	w.proposePolicy(h, on, fmt.Sprintf("file:///%d", rng.IntN(2)))
}

func (w *World) proposePolicy(h *host, on bool, place string) {
	machine := h.proc.Data.Machine
	command := kv.Command{By: machine.Users().ByMember(), Backup: &kv.BackupOp{Kind: kv.BackupSet,
		Generation: machine.Backup().Generation, Policy: kv.BackupPolicy{On: on, Place: place, BaseSeconds: 3600,
			SealMillis: 1000, LogBytes: 1 << 20}}}
	h.proc.Clients.Propose(&command, func(kv.Result, error) {})
}

// keepBackup appoints, on the leader, the member that ships, and reports on that member, as package member does. It proposes
// nothing more before its last command has a result.
func keepBackup(h *host) {
	if !h.run.plan.Ships {
		return
	}
	waits := false
	appointer := shipping.Appointer{Patience: backupPatience, Away: backupAway, MoveAfter: backupMoves}
	reported, turn := time.Time{}, uint64(0)
	propose := func(command *kv.Command) {
		waits = true
		h.proc.Clients.Propose(command, func(kv.Result, error) { waits = false })
	}
	var look func()
	look = func() {
		h.after(backupScan, look)
		if !h.serves() || h.run.shipped {
			appointer.Rest()
			return
		}
		machine, now := h.proc.Data.Machine, h.monotonic()
		row := machine.Backup()
		if !h.leads() {
			appointer.Rest()
		} else {
			status := h.proc.Node.Replica().Status()
			if command, due := appointer.Look(now, &shipping.View{Row: row, Status: &status}); due && !waits {
				propose(&command)
			}
		}
		if row.Member == uint64(h.id) && (row.Turn != turn || now.Sub(reported) >= backupReports) && !waits {
			reported, turn = now, row.Turn
			at := h.clock().UnixMilli()
			propose(&kv.Command{Backup: &kv.BackupOp{Kind: kv.BackupReport, Turn: row.Turn, Member: uint64(h.id),
				Progress: kv.BackupProgress{At: at, Restorable: kv.BackupPoint{Index: uint64(machine.Applied().Index),
					Revision: machine.Store().Revision(), Time: at}}}})
		}
	}
	look()
}

// shipsOn waits, in a world with a backup, until a member reports whatever happened before. Then members rest, so that the log
// ends.
func (w *World) shipsOn() bool {
	defer func() { w.run.shipped = true }()
	if !w.run.plan.Ships {
		return true
	}
	model := w.run.suite.Backups()
	_, before := model.Ships()
	asked := time.Duration(-1)
	ships := func() bool {
		on, reports := model.Ships()
		if on {
			return reports > before
		}
		before = reports
		for _, h := range w.cluster.members() { // whatever the operator has said: it is on now
			if h.serves() && h.proc.Data.Machine.ActiveLevel() >= level.Second && w.run.Now() > asked+time.Second {
				asked = w.run.Now()
				w.proposePolicy(h, true, "file:///0")
			}
		}
		return len(w.cluster.members()) == 0 || w.belowBackups()
	}
	if w.runUntil(w.run.Now()+w.patience()+2*backupPatience, ships) {
		return true
	}
	if !w.run.suite.Failed() && !w.cluster.quorumGivenAway() {
		w.run.suite.Report("backup", fmt.Sprintf("no member ships: %+v; %s", *model, w.cluster.describe()))
	}
	return false
}

// belowBackups reports whether the level that backups need is not active, as where earlier builds remain.
func (w *World) belowBackups() bool {
	active, _ := w.run.suite.Levels()
	return active < level.Second
}
