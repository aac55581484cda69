package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/base/plural"
)

// least is from how many observations on a mean or a percentile says something.
const least = 10

// leastKeys is from how many keys on a history says something.
const leastKeys = 1000

// stalls are parts of a member that have been at one piece of work for too long.
func (p *patient) stalls() (all []Finding) {
	for _, s := range p.answered() {
		core := s.o.GetCore()
		if core.GetStalled() == "" {
			continue
		}
		one := []string{s.name()}
		severity := NextFailure
		if s == p.leader || p.leader == nil && !p.alone {
			severity = CannotWrite
		}
		if strings.Contains(core.GetStalled(), "writing the log") {
			all = append(all, found(DiskHangs, severity, one, cureStatus, "the disk of %s hangs: a write of its log has "+
				"not come "+
				"back for more than %s; look at the kernel's log there, and at the machine's storage", s.name(),
				span(core.GetStalledMs())))
			continue
		}
		all = append(all, found(MemberStalls, NextFailure, one, cureStatus, "%s makes no progress for more than %s: %s",
			s.name(), span(core.GetStalledMs()), core.GetStalled()))
	}
	return all
}

// disks are the room on them, and whether anything is safe there.
func (p *patient) disks() (all []Finding) {
	answered := p.answered()
	low := slices.DeleteFunc(slices.Clone(answered), func(s *seat) bool { return !s.o.GetDisk().GetLow() })
	for _, s := range answered {
		disk, one := s.o.GetDisk(), []string{s.name()}
		switch {
		case disk.GetLow():
			severity := NextFailure
			if len(low) == len(answered) {
				severity = CannotWrite
			}
			all = append(all, found(DiskFull, severity, one, cureStatus, "the disk of %s is nearly full (%s free, "+
				"reserve %s): it "+
				"refuses its clients' writes that grow; free space beside its data directory, and nothing inside", s.name(),
				size(int64(disk.GetAvailableBytes())), size(int64(disk.GetReserveBytes()))))
		case disk.GetReserveBytes() > 0 && disk.GetAvailableBytes() < 2*disk.GetReserveBytes():
			all = append(all, found(DiskNear, SlowerThanIs, one, cureStatus, "the disk of %s has %s left, and from %s "+
				"on it refuses "+
				"writes that grow", s.name(), size(int64(disk.GetAvailableBytes())), size(int64(disk.GetReserveBytes()))))
		}
		if disk.GetUnsafeNoSync() {
			all = append(all, found(NoSync, NextFailure, one, "quorate config print", "%s does not sync its log "+
				"(--unsafe-no-fsync): a power failure loses what it acknowledged", s.name()))
		}
	}
	return all
}

// syncs are those of the log, which every write waits for.
func (p *patient) syncs() (all []Finding) {
	for _, s := range p.answered() {
		disk, work := s.o.GetDisk(), s.o.GetWork()
		slow := disk.GetSyncP99Us()*2 >= s.o.GetElectionMs()*1000 || disk.GetSyncMeanUs()*5 >= s.o.GetHeartbeatMs()*4*1000
		if disk.GetSyncs() < least || !slow || s.o.GetElectionMs() == 0 {
			continue
		}
		share := ""
		if work.GetWrites() >= least && work.GetWriteMeanUs() > 0 {
			share = ", and " + micros(disk.GetSyncMeanUs()) + " on average of the " + micros(work.GetWriteMeanUs()) +
				" that a write of its clients takes"
		}
		all = append(all, found(DiskSlow, SlowerThanIs, []string{s.name()}, cureStatus, "the disk of %s is slow: one "+
			"sync of its "+
			"log in a hundred takes %s, of an election timeout of %s%s; give the log a faster disk, or one of its own "+
			"(--wal-dir)",
			s.name(), micros(disk.GetSyncP99Us()), span(s.o.GetElectionMs()), share))
	}
	return all
}

// stores are the quota, the history and the flushes of a store.
func (p *patient) stores() (all []Finding) {
	cure, distance := p.compaction()
	for _, s := range p.answered() {
		store, one := s.o.GetStore(), []string{s.name()}
		if quota := store.GetQuotaBytes(); quota > 0 && store.GetSizeBytes() >= quota/10*9 {
			all = append(all, found(QuotaNear, NextFailure, one, cure, "the store of %s has %d %% of its quota (%s of %s): "+
				"at the quota no member takes writes that grow; %s", s.name(), percent(store.GetSizeBytes(), quota),
				size(store.GetSizeBytes()), size(quota), distance))
		}
		if store.GetStalls() > 0 {
			all = append(all, found(StoreStalls, SlowerThanIs, one, cureStatus, "the store of %s does not keep up: "+
				"writes waited "+
				"for it %s in the window, and its pressure is %.2f; it needs a faster disk or processor", s.name(),
				plural.Of(store.GetStalls(), "time"), store.GetPressure()))
		}
		if store.GetReclaimFailures() > 0 {
			all = append(all, found(ReclaimFails, SlowerThanIs, one, cureLog, "%s failed %s to give back the space of "+
				"what was compacted: its log says why, in lines about garbage that stays on disk", s.name(),
				plural.Of(store.GetReclaimFailures(), "time")))
		}
	}
	return append(all, p.history()...)
}

// history is what no compaction deletes. All members have the same, so it is told once.
func (p *patient) history() []Finding {
	for _, s := range p.answered() {
		store := s.o.GetStore()
		past := store.GetVersions() - store.GetKeys()
		// A history counts that is nine times what lives, and of which compactions have dropped less than a tenth.
		never := store.GetCompactRevision()*10 <= store.GetRevision()
		if store.GetAutoCompaction() || !never || past < 9*max(store.GetKeys(), leastKeys) {
			continue
		}
		last := "was never compacted"
		if at := store.GetCompactRevision(); at > 0 {
			last = fmt.Sprintf("was last compacted at revision %d of %d", at, store.GetRevision())
		}
		cure, distance := p.compaction()
		return []Finding{found(HistoryKept, Advice, nil, cure, "the store keeps %d versions of %s, and %s: compact, or set "+
			"--auto-compaction-retention; %s", store.GetVersions(), plural.Of(store.GetKeys(), "key"), last, distance)}
	}
	return nil
}

// applies are members whose state lags behind what is committed.
func (p *patient) applies() (all []Finding) {
	for _, s := range p.answered() {
		core, window := s.o.GetCore(), s.o.GetWindowMs()
		// A member that starts applies its log again first.
		if core.GetCommitted() == 0 || core.GetCommit() <= core.GetApplied() || window == 0 || !p.grown(s, 10) {
			continue
		}
		gap := core.GetCommit() - core.GetApplied()
		behind := lastingMS(gap, window, core.GetCommitted())
		if behind <= s.o.GetElectionMs() {
			continue
		}
		all = append(all, found(ApplyBehind, SlowerThanIs, []string{s.name()}, cureStatus, "%s applies late: %s, "+
			"which took %s to commit; a batch takes it %s on average", s.name(), plural.Of(gap, "entry waits", "entries wait"),
			span(behind),
			micros(s.o.GetStore().GetApplyMeanUs())))
	}
	return all
}

// hotPrefix is a member that has little processor time left, so that calls wait for each other, most of whose calls are for
// one prefix of keys. Which prefix that is, is told by a member only to those who may read it.
func (p *patient) hotPrefix() (all []Finding) {
	for _, s := range p.answered() {
		process, share, window := s.o.GetProcess(), s.o.GetWork().GetBusiestPercent(), s.o.GetWindowMs()
		// In fractions: the product of what a member may tell has no room in an int64.
		used, most := float64(process.GetProcessorUs()), float64(window)*float64(process.GetProcessors())*1000
		if share < 50 || window < 10*p.clocked || most == 0 || used < most/2 {
			continue
		}
		all = append(all, found(HotPrefix, Advice, []string{s.name()}, "quorate top --by cpu", "%s has used %d %% of its "+
			"processors for %s, and calls for one prefix of keys take %d %% of the time that it works for clients: `quorate "+
			"top` names the prefix, and `quorate top --clients` the callers", s.name(),
			int64(min(100*used/most, 100)), span(window), min(share, 100)))
	}
	return all
}

// processes are what a process may have of its machine.
func (p *patient) processes() (all []Finding) {
	for _, s := range p.answered() {
		process, core, one := s.o.GetProcess(), s.o.GetCore(), []string{s.name()}
		if most := process.GetOpenFilesLimit(); most > 0 && process.GetOpenFiles() >= most/5*4 {
			all = append(all, found(FilesNear, NextFailure, one, cureStatus, "%s has %d of %d files open: it refuses "+
				"connections "+
				"soon; raise its limit (LimitNOFILE of its unit)", s.name(), process.GetOpenFiles(), most))
		}
		if most := process.GetMemoryLimitBytes(); most > 0 && process.GetMemoryBytes() > most {
			all = append(all, found(MemoryOver, SlowerThanIs, one, cureStatus, "%s has %s of memory, and %s by "+
				"--memory: the system "+
				"may end it; give it more, or see docs/limits.md for what may take it", s.name(),
				size(process.GetMemoryBytes()),
				size(most)))
		}
		for _, part := range process.GetParts() {
			if part.GetLimitBytes() > 0 && part.GetBytes() >= part.GetLimitBytes()/10*9 {
				all = append(all, found(MemoryPartFull, SlowerThanIs, one, cureStatus, "%s has %s of the %s that it may "+
					"have for "+
					"%s: clients wait or are refused; give it more --memory, or see which clients need so much", s.name(),
					size(part.GetBytes()), size(part.GetLimitBytes()), part.GetName()))
			}
		}
		beats := s.o.GetWindowMs() / max(s.o.GetHeartbeatMs(), 1)
		if late := int64(core.GetLateHeartbeats()); late >= least && late*20 >= beats {
			all = append(all, found(HeartbeatsLate, SlowerThanIs, one, cureStatus, "%s leads and was late with %d of "+
				"about %d "+
				"heartbeats of the window: it lacks a processor, or its disk holds it up", s.name(), late, beats))
		}
		if n := process.GetLogLinesDropped(); n > 0 {
			all = append(all, found(LogLinesDropped, Advice, one, cureStatus, "%s dropped %s of its log in the "+
				"window: its "+
				"output is not read fast enough", s.name(), plural.Of(n, "line")))
		}
	}
	return all
}
