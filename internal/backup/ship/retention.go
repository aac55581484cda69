package ship

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/prune"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// Times of retention, in milliseconds.
const (
	pruneFirst int64 = 60_000       // a turn waits so long before its first round
	pruneEvery int64 = 3600_000     // rounds begin so long after each other
	pruneRetry int64 = 600_000      // a round that failed is begun again; the pause doubles
	pruneLimit int64 = 6 * 3600_000 // up to this
	// baseWaits is how long a base waits for a round that looks at files.
	baseWaits int64 = 600_000
	// pruneTold is how long rounds fail for passing reasons before that is told.
	pruneTold int64 = 24 * 3600_000
)

// Retention is what became of the place by the rule.
type Retention struct {
	At      int64 // the last round came to its end, in milliseconds; zero: none did
	From    int64 // any moment since can be restored, but for gaps; zero: as far back as there are bases
	Floor   consensus.Index
	Bases   int    // that are there
	Removed int    // objects, in the last round
	Bytes   int64  // of them
	Why     string // retention removes less than the rule lets it, or nothing; empty: all is well
}

// retention is the state of it.
type retention struct {
	pruner   *prune.Pruner
	under    bool  // a round is under way
	began    int64 // the last round
	next     int64 // not before
	failures int   // one after the other
	failing  int64 // since when; zero: they do not
	barred   bool  // the caller does not know whether this member is still the one that ships
	cut      bool  // the last round was stopped for that
	said     Retention
}

func (s *Shipper) beginRetention() {
	s.retention.pruner = prune.New(prune.Config{Cluster: s.config.Cluster, Epoch: s.config.Epoch, Member: s.config.Member,
		Rule: s.config.Keep, MostBytes: s.config.KeepBytes, Faults: s.config.Faults})
	s.retention.next = s.now + pruneFirst
}

// Permit says whether retention may remove anything. It may until the caller says otherwise. Without permission a round that is
// under way asks for nothing more, and none begins: the rule may be one that the cluster has replaced.
func (s *Shipper) Permit(permitted bool) { s.retention.barred = !permitted }

// turnRetention removes what the rule does not keep: never while a base is made, whose manifest is not there yet.
func (s *Shipper) turnRetention() {
	r := &s.retention
	switch {
	case r.barred:
		if r.under && !r.cut {
			r.cut = true
			r.pruner.Stop()
			s.settleRetention()
		}
	case r.pruner.Looking() && (s.lost != nil || s.baseDue() && s.now >= max(s.base.next, r.began+baseWaits)):
		r.pruner.Stop()
		s.settleRetention()
	case !r.pruner.Active() && s.config.Keep.Window > 0 && s.now >= r.next && s.base.head.Index > 0 && !s.base.asked &&
		s.lost == nil && !s.baseDue():
		r.began, r.under, r.cut = s.now, true, false
		r.pruner.Begin(s.now, s.base.head.Index, s.knownBases()...)
	}
}

// knownBases are the bases that members reported, and the newest one, which may not be reported yet.
func (s *Shipper) knownBases() []kv.BackupBase {
	b := &s.base
	if len(s.known) == 0 || slices.ContainsFunc(s.known, func(k kv.BackupBase) bool { return backup.Hash(k.Hash) == b.hash }) {
		return s.known
	}
	return append(slices.Clone(s.known), kv.BackupBase{Index: uint64(b.head.Index), Hash: b.hash})
}

// takePrune begins the operations that the pruner asks for, one after the other: what did not begin is not asked for any more
// once the round is stopped.
func (s *Shipper) takePrune() {
	for s.roads.free(toOthers) {
		op, due := s.retention.pruner.TakeOne()
		if !due {
			return
		}
		s.begin(Op{Kind: Prune, Name: op.Name, Prune: &op}, toOthers, func(o *Outcome) {
			if o.Result != OK {
				o.Pruned.Why = cmp.Or(o.Pruned.Why, o.Why, "failed")
			}
			s.retention.pruner.Done(op.ID, o.Pruned)
			s.settleRetention()
		})
	}
}

// settleRetention takes the report of a round that has ended, and says when the next one begins.
func (s *Shipper) settleRetention() {
	r := &s.retention
	if r.pruner.Active() || !r.under {
		return
	}
	r.under = false
	report := r.pruner.Report()
	if report.Lacks {
		s.base.due, s.base.lacks = true, true
		clear(s.base.known)
	}
	if report.Why != "" && !report.Done {
		if r.failing == 0 {
			r.failing = s.now
		}
		if report.Refused || s.now-r.failing >= pruneTold {
			r.said.Why = report.Why
		}
		r.next = s.now + min(pruneRetry<<min(r.failures, 10), pruneLimit)
		r.failures++
		return
	}
	r.next = s.now + max(s.config.BaseEvery, pruneEvery)
	if r.cut && !report.Done {
		r.next = s.now + pruneRetry
		return
	}
	if !report.Done || report.Plan == nil { // it was stopped
		return
	}
	r.failures, r.failing = 0, 0
	r.said = Retention{At: s.now, From: report.Plan.From, Floor: report.Plan.Floor, Removed: report.Removed,
		Bytes: report.Bytes, Why: report.Why}
	for i := range report.Plan.Fates {
		if report.Plan.Fates[i].Kept {
			r.said.Bases++
		}
	}
}
