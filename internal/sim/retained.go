package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/keep"
	"github.com/quorate/quorate/internal/backup/prune"
	"github.com/quorate/quorate/internal/backup/ship"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/sim/check"
	"github.com/quorate/quorate/internal/sim/dice"
)

// interrupt breaks, now and then, what a member needs in the middle of a round of retention.
func (s *shipper) interrupt(op *ship.Op) {
	r := s.h.run
	if op.Kind != ship.Prune || op.Prune.Kind != prune.Delete || r.calm || !dice.Chance(r.buckets.rules, 0.02) {
		return
	}
	h := s.h
	what := dice.Pick(r.buckets.rules, "crash", "hang", "transfer")
	lasts := dice.Between(r.buckets.rules, 100*time.Millisecond, 4*time.Second)
	r.struck("backup", "in the middle of retention: "+what)
	if leader := h.cluster.leader(); what == "transfer" && leader != nil {
		h = leader
	}
	if what == "hang" {
		s.at.hung = max(s.at.hung, r.Now()+lasts)
		return
	}
	life := h.life
	r.After(0, func() {
		if h.alive && h.life == life && !r.calm {
			h.crash()
			h.startAfter(lasts)
		}
	})
}

// removed judges what retention has removed: it was old, no base needs it, and what the rule keeps can be restored.
func (b *bucket) removed(name string, taken time.Duration) {
	report := func(format string, args ...any) {
		b.run.suite.Report("backup", fmt.Sprintf("retention removed %s from %s: %s", name, b.url, fmt.Sprintf(format, args...)))
	}
	floor, counts := b.floor(), &b.run.counts
	old := func(index consensus.Index) {
		if at, known := b.run.suite.AppliedAt(index); !known || at > floor {
			report("entry %d was applied at %v, and all since %v is to be kept", index, at, floor)
		}
	}
	if _, hash, err := backup.ParseFile(name); err == nil {
		counts.RemovedFiles++
		if age := (b.run.Now() - taken) * b.run.buckets.pace; age < prune.FileGrace {
			report("the place had it for %v", age)
		}
		for n, needs := range b.needs {
			_, there := b.taken[n.String()]
			if there && slices.ContainsFunc(needs, func(o backup.Object) bool { return o.Hash == hash }) {
				report("base %v needs it", &n)
			}
		}
	}
	if n, err := backup.ParseSegment(name); err == nil {
		counts.RemovedLog++
		old(n.End.Index)
		if dice.Chance(b.run.buckets.rules, 0.2) {
			b.judgeKept(floor, report)
		}
	}
	if n, err := backup.ParseBase(name); err == nil {
		counts.RemovedBases++
		old(n.Index)
		b.judgeOlder(&n, report)
		b.judgeKept(floor, report)
	}
}

// floor is the time since when all that can be restored is to be kept: the latest of those that the rules so far gave it.
func (b *bucket) floor() time.Duration {
	floor := time.Duration(-1)
	policies := b.run.suite.Backups().Set()
	for i := range policies {
		until, window := b.ruled(policies, i)
		if until >= 0 && window > 0 { // it counts back from the newest base
			floor = max(floor, min(until, b.based)-b.age(window))
		}
	}
	return floor
}

// ruled returns until when members may have gone by a policy at this place, and the window of its rule; -1: they never did.
func (b *bucket) ruled(policies []check.BackupPolicy, i int) (until, window time.Duration) {
	p := &policies[i]
	rule, err := keep.Parse(p.Keep)
	if p.Place != b.url || !p.On || err != nil {
		return -1, 0
	}
	until = b.run.Now()
	if i+1 < len(policies) { // a member that is cut off goes on for as long as it may trust its last report
		until = min(until, policies[i+1].From+3*backupReports)
	}
	return until, rule.Window
}

// age is how old, in virtual time, something is at least that is outside of a window, however wrong the clocks of members are.
func (b *bucket) age(window time.Duration) time.Duration {
	return (window + keep.Slack) / b.run.buckets.pace
}

// catalog is what the place has, whatever its lists say, and tells which objects are damaged, or lack files.
func (b *bucket) catalog() (c *backup.Catalog, lacks func(backup.Hash) bool) {
	c = &backup.Catalog{Cluster: clusterID}
	for name := range b.taken {
		content, _ := b.Bytes(name)
		_ = c.Add(name, int64(len(content))) // there are few
	}
	c.Sort()
	lacking := map[backup.Hash]bool{}
	for i := range c.Bases {
		n := &c.Bases[i].BaseName
		lacking[n.Hash] = b.spoiled[n.String()] || b.lacks(n)
	}
	for i := range c.Segments {
		n := &c.Segments[i].SegmentName
		lacking[n.Hash] = b.spoiled[n.String()]
	}
	return c, func(h backup.Hash) bool { return lacking[h] }
}

// lacks reports whether a file that a base needs is missing or damaged.
func (b *bucket) lacks(n *backup.BaseName) bool {
	return slices.ContainsFunc(b.needs[*n], func(o backup.Object) bool {
		name := backup.FileName(clusterID, o.Hash)
		_, there := b.taken[name]
		return !there || b.spoiled[name]
	})
}

// kept are the states since a time that members have called restorable.
func (b *bucket) kept(floor time.Duration) []check.Restorable {
	said := b.run.suite.Backups().Said(b.url)
	return slices.DeleteFunc(slices.Clone(said), func(s check.Restorable) bool {
		at, _ := b.run.suite.AppliedAt(consensus.Index(s.Index))
		return at <= floor
	})
}

// judgeKept wants states within the window restorable: the first one, the last one, and one between.
func (b *bucket) judgeKept(floor time.Duration, report func(string, ...any)) {
	kept := b.kept(floor)
	if len(kept) == 0 || b.touched { // retention does not know what was damaged
		return
	}
	c, without := b.catalog()
	for _, i := range []int{0, len(kept) - 1, b.run.buckets.rules.IntN(len(kept))} {
		index := consensus.Index(kept[i].Index)
		_, err := c.Plan(backup.Target{Index: index}, without)
		if unreachable := (*backup.UnreachableError)(nil); errors.As(err, &unreachable) {
			at, _ := b.run.suite.AppliedAt(index)
			report("entry %d, of %v, which member %v called restorable, cannot be restored, and all since %v is to be kept: %v",
				index, at, kept[i].By, floor, err)
			return
		}
	}
}

// forgets reports whether the cluster has forgotten, by one of some policies, which bases its members had reported.
func forgets(policies []check.BackupPolicy) bool {
	for i := 1; i < len(policies); i++ {
		if p, before := &policies[i], &policies[i-1]; p.Place != before.Place || p.Secret != before.Secret {
			return true
		}
	}
	return false
}

// judgeOlder wants a base that was removed to be none that the rules keep for its day.
func (b *bucket) judgeOlder(gone *backup.BaseName, report func(string, ...any)) {
	c, lacks := b.catalog()
	policies, days := b.run.suite.Backups().Set(), -1
	for i := range policies {
		until, window := b.ruled(policies, i)
		if until < b.run.Now() || window == 0 {
			continue
		}
		rule, _ := keep.Parse(policies[i].Keep)
		if days = rule.Daily; i > 0 {
			if before, _ := b.ruled(policies, i-1); before == b.run.Now() {
				return // two rules are in force
			}
		}
	}
	if days <= 0 || b.run.plan.Dates > 0 || !b.run.suite.Backups().Reported(gone.Hash) || b.run.buckets.late || b.touched {
		return
	}
	day := func(n *backup.BaseName) int64 { return n.Time / (24 * time.Hour).Milliseconds() }
	later := map[int64]bool{}
	for i := range c.Bases {
		n := &c.Bases[i].BaseName
		// The member that ships counts its own newest base before it has reported it, and where the cluster has forgotten which
		// bases were reported, those that were not count, too.
		switch reported := b.run.suite.Backups().Reported(n.Hash) || i == len(c.Bases)-1 || forgets(policies); {
		case lacks(n.Hash) || !reported:
		case day(n) == day(gone) && n.Index > gone.Index:
			return // another one is the last of the day
		case day(n) > day(gone):
			later[day(n)] = true
		}
	}
	if len(later) < days {
		report("it is the last base of its day, and the rule keeps those of %d days; %d of these are later", days, len(later))
	}
}
