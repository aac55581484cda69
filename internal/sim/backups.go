package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/shipping"
	"github.com/quorate/quorate/internal/sim/dice"
	"github.com/quorate/quorate/internal/sim/plan"
	"github.com/quorate/quorate/internal/storage/objects/objectstest"
)

// Times of a backup in a world: a tenth of a member's or less.
const (
	backupScan     = 150 * time.Millisecond
	backupReports  = 600 * time.Millisecond
	backupPatience = 4 * time.Second
	backupTroubled = 5 * time.Second
	backupSlow     = 2 * time.Second
	backupAway     = 2 * time.Second
	backupMoves    = 12 * time.Second
	bucketsFail    = 8 * time.Second
)

// startBackups makes the operator of a world whose members ship a backup: the policy is set, stopped, and moved to another
// place, through any member, which may know an earlier one.
func (w *World) startBackups(seed uint64) {
	if !w.run.plan.Ships {
		return
	}
	w.run.buckets = newBuckets(w.run, seed)
	rng := dice.Stream(seed, streamBackups)
	often := dice.Between(rng, 3*time.Second, 30*time.Second)
	var set func()
	set = func() {
		w.setBackup(rng, !dice.Chance(rng, 0.2))
		w.run.After(dice.Exponential(rng, often), set)
	}
	w.run.After(dice.Exponential(rng, time.Second), set)
	if !slices.ContainsFunc(w.run.plan.Named, func(n *plan.Nemesis) bool { return n.Name == "backup" }) {
		w.run.After(dice.Exponential(rng, bucketsFail), func() { w.failBuckets(rng) })
	}
}

// failBuckets makes places fail now and then, in a world without the nemesis that does.
func (w *World) failBuckets(rng *rand.Rand) {
	if !w.run.calm {
		w.strikeBackup()
		w.run.After(dice.Exponential(rng, bucketsFail), func() { w.failBuckets(rng) })
	}
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
	place := rng.IntN(len(w.run.buckets.all))
	if w.run.buckets.forges { // a place to which a backup returns has names of which the cluster has forgotten whose they are
		place = 0
	}
	w.proposePolicy(h, on, w.run.buckets.all[place].url)
}

func (w *World) proposePolicy(h *host, on bool, place string) {
	machine := h.proc.Data.Machine
	policy := kv.BackupPolicy{On: on, Place: place, BaseSeconds: kv.MinBackupBaseSeconds, SealMillis: w.run.buckets.seal,
		VerifySeconds: kv.MinBackupVerifySeconds}
	if w.run.buckets.pace > 1 {
		w.run.buckets.drawHours(&policy)
	}
	w.run.buckets.drawRecipients(&policy, &machine.Backup().Policy)
	command := kv.Command{By: machine.Users().ByMember(), Backup: &kv.BackupOp{Kind: kv.BackupSet,
		Generation: machine.Backup().Generation, Policy: policy}}
	h.proc.Clients.Propose(&command, func(kv.Result, error) {})
}

// keepBackup appoints, on the leader, the member that ships, as package member does. It proposes nothing more before its last
// command has a result.
func keepBackup(h *host) {
	if !h.run.plan.Ships {
		return
	}
	waits := false
	appointer := shipping.Appointer{Patience: backupPatience, Away: backupAway, Troubled: backupTroubled,
		MoveAfter: backupMoves}
	var look func()
	look = func() {
		h.after(backupScan, look)
		if !h.serves() || h.run.shipped || !h.leads() {
			appointer.Rest()
			return
		}
		status := h.proc.Node.Replica().Status()
		view := shipping.View{Row: h.proc.Data.Machine.Backup(), Status: &status}
		if command, due := appointer.Look(h.monotonic(), &view); due && !waits {
			waits = true
			h.proc.Clients.Propose(&command, func(kv.Result, error) { waits = false })
		}
	}
	look()
}

// shipsOn waits, in a world with a backup, until all that was written before can be restored, whatever happened. Then members
// end their turns, so that the log ends, and states are restored.
func (w *World) shipsOn() bool {
	defer func() { w.run.shipped = true }()
	if !w.run.plan.Ships || len(w.cluster.members()) == 0 || w.belowBackups() {
		return true
	}
	for _, at := range w.run.buckets.all {
		w.run.buckets.heal(at)
		at.cure()
	}
	model, want := w.run.suite.Backups(), w.run.suite.Model().Revision
	_, before := model.Ships()
	asked := time.Duration(-1)
	ships := func() bool {
		on, reports := model.Ships()
		for _, h := range w.cluster.members() { // whatever the operator has said: it is on now
			if !h.serves() {
				continue
			}
			if row := h.proc.Data.Machine.Backup(); row.Policy.On && on {
				return reports > before && row.Progress.Restorable.Revision >= want
			}
			if h.proc.Data.Machine.ActiveLevel() >= level.Second && !on && w.run.Now() > asked+time.Second {
				asked, before = w.run.Now(), reports
				w.proposePolicy(h, true, w.run.buckets.all[0].url)
			}
		}
		return false
	}
	if !w.runUntil(w.run.Now()+w.patience()+4*backupPatience, ships) {
		if !w.run.suite.Failed() && !w.cluster.quorumGivenAway() {
			w.run.suite.Report("backup", fmt.Sprintf("revision %d cannot be restored: %+v; %s", want, *model,
				w.cluster.describe()))
		}
		return false
	}
	if !w.proves() {
		return false
	}
	w.run.shipped = true
	w.runUntil(w.run.Now()+2*shipTimes.End, nil)
	w.judgeBackups()
	return !w.run.suite.Failed()
}

// provenWithin is how long it may take until a good backup is proven: where a first try ends without a verdict, the next one
// follows after a minute.
const provenWithin = 90 * time.Second

// proves waits until a member has proven the backup, by a policy that is set anew: the places are well now. A place in which
// somebody has damaged objects may be found damaged.
func (w *World) proves() bool {
	for _, at := range w.run.buckets.all {
		at.SetFaults(objectstest.Faults{})
	}
	w.run.buckets.nameBytes = 0 // a member with memory for all names can, whatever came before
	rows := func() (newest *kv.BackupRow, by *host) {
		for _, h := range w.cluster.members() {
			if !h.serves() {
				continue
			}
			if row := h.proc.Data.Machine.Backup(); newest == nil || row.Generation > newest.Generation ||
				row.Generation == newest.Generation && row.Proofs.Number > newest.Proofs.Number {
				newest, by = row, h
			}
		}
		return newest, by
	}
	first, _ := rows()
	asked := time.Duration(-1)
	proven := func() bool {
		row, h := rows()
		switch {
		case first == nil:
			first = row
		case row == nil:
		case row.Generation == first.Generation:
			if w.run.Now() > asked+time.Second {
				asked = w.run.Now()
				w.proposePolicy(h, true, row.Policy.Place)
			}
		case row.Policy.Recipients != "": // no member can
			return true
		case row.Proofs.Generation == row.Generation && row.Proofs.Member == 0:
			return row.Proofs.Last.Proven || row.Proofs.Last.Failed && w.run.buckets.at(row.Policy.Place).touched
		}
		return false
	}
	if !w.runUntil(w.run.Now()+w.patience()+4*backupPatience+provenWithin, proven) {
		if row, _ := rows(); !w.run.suite.Failed() && !w.cluster.quorumGivenAway() {
			w.run.suite.Report("backup", fmt.Sprintf("nobody has proven the backup: %+v; %s", row, w.cluster.describe()))
		}
		return false
	}
	return true
}

// belowBackups reports whether the level that backups need is not active, as where earlier builds remain.
func (w *World) belowBackups() bool {
	active, _ := w.run.suite.Levels()
	return active < level.Second
}
