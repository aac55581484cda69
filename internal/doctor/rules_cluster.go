package doctor

import (
	"slices"
	"strings"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/base/typed"
)

// followers are how far the members are that the leader replicates to.
func (p *patient) followers() (all []Finding) {
	if p.leader == nil {
		return nil
	}
	core, window := p.leader.o.GetCore(), p.leader.o.GetWindowMs()
	for _, s := range p.seats {
		peer := p.followed(s)
		if s.known == nil || peer == nil || strings.Contains(peer.GetState(), " ") {
			continue
		}
		one := []string{s.name()}
		if peer.GetSnapshots() >= 3 {
			all = append(all, found(SnapshotRepeats, SlowerThanIs, one, cureList, "%s has been sent the state %s "+
				"within %s: the log outruns each snapshot; see its disk and its link, and --snapshot-send-rate", s.name(),
				plural.Of(peer.GetSnapshots(), "time"), span(p.leader.o.GetHistoryMs())))
		}
		if !peer.GetActive() || peer.GetMatch() == 0 && votes(s.known) || core.GetLastIndex() <= peer.GetMatch() {
			continue
		}
		lag := core.GetLastIndex() - peer.GetMatch()
		behind := int64(0) // how long what it lacks took to commit
		if core.GetCommitted() > 0 {
			behind = lastingMS(lag, window, core.GetCommitted())
		}
		switch {
		case votes(s.known) && !peer.GetCaughtUp() && behind > p.clocked:
			all = append(all, found(VoterBehind, p.weightBehind(), one, cureList, "%s lacks %s, which took %s "+
				"to commit: until it has them no commit can count on it", s.name(), plural.Of(lag, "entry", "entries"),
				span(behind)))
		case !votes(s.known) && s.known.GetStarted() && !peer.GetCaughtUp() && !moves(peer) && window >= 10*p.clocked:
			all = append(all, found(LearnerStuck, SlowerThanIs, one, "quorate member jobs", "learner %s lacks %s and got "+
				"none for %s, though the leader hears it: see its log", s.name(), plural.Of(lag, "entry", "entries"),
				span(window)))
		}
	}
	return all
}

// weightBehind is the severity of a voter that is heard and lags: a commit cannot count on it.
func (p *patient) weightBehind() Severity {
	if p.tolerates() <= 1 {
		return NextFailure
	}
	return SlowerThanIs
}

// jobs are membership jobs that do not move. All members have the same rows; the leader's word is taken.
func (p *patient) jobs() (all []Finding) {
	from := p.leader
	if from == nil {
		return nil
	}
	for _, job := range from.o.GetJobs() {
		if !job.GetTurn() || job.GetQuietMs() < 60*p.clocked || p.goesOn(job) {
			continue
		}
		waits := job.GetMessage()
		if waits == "" {
			waits = job.GetPhase()
		}
		all = append(all, found(JobStuck, SlowerThanIs, nil, "quorate member jobs", "membership job %x (%s) has not "+
			"moved for %s: "+
			"%s", job.GetId(), job.GetKind(), span(job.GetQuietMs()), waits))
	}
	return all
}

// goesOn reports whether a job whose row has not changed for long moves nevertheless: it writes one for a phase, not for what a
// newcomer gets within it, nor while it waits for a newcomer that an operator has not started, which is a finding of its own.
func (p *patient) goesOn(job *quoratepb.ObservedJob) bool {
	for _, s := range p.seats {
		peer := p.followed(s)
		switch {
		case s.known == nil || s.known.GetVoter():
		case job.GetPhase() == "start" && !p.started(s):
			return true
		case s.known.GetStarted() && peer.GetActive() && !peer.GetCaughtUp() && moves(peer):
			return true
		}
	}
	return false
}

// moves reports whether a member that is behind gets entries, or the state.
func moves(peer *quoratepb.ObservedPeer) bool {
	return peer.GetGained() > 0 || peer.GetSnapshotTotalBytes() > 0
}

// elections are leaders that do not stay.
func (p *patient) elections() []Finding {
	var most *seat
	for _, s := range p.answered() {
		if s.o.GetCore().GetLeaderChanges() >= 5 && (most == nil ||
			s.o.GetCore().GetLeaderChanges() > most.o.GetCore().GetLeaderChanges()) {
			most = s
		}
	}
	if most == nil {
		return nil
	}
	return []Finding{found(LeaderChanges, SlowerThanIs, nil, cureStatus, "the leader changed %d times within %s, as %s "+
		"saw: each "+
		"time writes wait for up to about an election timeout (%s)", most.o.GetCore().GetLeaderChanges(),
		span(most.o.GetHistoryMs()),
		most.name(), span(p.clocked))}
}

// clocks are those of the members, and of the collector: at least three are needed to say which is wrong.
func (p *patient) clocks() (all []Finding) {
	if p.alone {
		return nil
	}
	offsets := []int64{0} // the collector's
	if p.linked {
		offsets = nil // it is the clock of a member, which is one of those below
	}
	seats := slices.DeleteFunc(p.answered(), func(s *seat) bool { return s.AskedMs == 0 || s.o.GetNowMs() == 0 })
	for _, s := range seats {
		offsets = append(offsets, s.o.GetNowMs()-s.AskedMs)
	}
	if len(offsets) < 3 {
		return nil
	}
	slices.Sort(offsets)
	middle := offsets[len(offsets)/2]
	for _, s := range seats {
		off := s.o.GetNowMs() - s.AskedMs - middle
		word := "ahead of"
		if off < 0 {
			off, word = -off, "behind"
		}
		if off <= p.clocked+s.RoundTripUs/1000 {
			continue
		}
		all = append(all, found(ClockOff, SlowerThanIs, []string{s.name()}, "quorate status", "the clock of %s is %s %s "+
			"those of the "+
			"others: see its time synchronization; certificates, tokens and times in logs are judged by it", s.name(),
			span(off),
			word))
	}
	return all
}

// voterCounts is how many failures the voters survive by their number.
func (p *patient) voterCounts() []Finding {
	cure := "quorate member plan --add NAME=URL"
	switch n := len(p.voters); {
	case n == 1:
		return []Finding{found(OneVoter, Advice, nil, cure, "%s is the only voter: no failure is survived",
			p.voters[0].name())}
	case n == 2:
		return []Finding{found(TwoVoters, NextFailure, nil, cure, "there are two voters, %s: if either fails nothing can be "+
			"written; a third survives one failure", list(names(p.voters)))}
	case n%2 == 0 && n > 0:
		return []Finding{found(EvenVoters, Advice, nil, cure, "%d voters survive as many failures as %d would, and "+
			"every write "+
			"asks one more", n, n-1)}
	}
	voters := slices.DeleteFunc(slices.Clone(p.voters), func(s *seat) bool { return !s.known.GetCordoned() })
	if n := len(voters); n > 0 && n == len(p.voters) {
		return []Finding{found(CordonedAll, SlowerThanIs, nil, typed.Line("quorate", "member", "uncordon", voters[0].name(),
			"--dry-run"), "all %d voters are cordoned, so that leadership goes anywhere: uncordon those that may lead", n)}
	}
	return nil
}

// zones are where the voters are, if all of them say so.
func (p *patient) zones() []Finding {
	count := map[string]int{}
	var zones []string
	for _, s := range p.voters {
		zone := s.known.GetZone()
		if zone == "" {
			return nil
		}
		if count[zone] == 0 {
			zones = append(zones, zone)
		}
		count[zone]++
	}
	slices.Sort(zones)
	for _, zone := range zones {
		if len(zones) < 2 || len(p.voters) < 3 || len(p.voters)-count[zone] >= p.quorum {
			continue
		}
		severity, more := Advice, "; two zones survive no failure of the larger one: a third is needed"
		if len(zones) > 2 {
			severity, more = SlowerThanIs, ": spread them better"
		}
		return []Finding{found(ZonesUneven, severity, nil, "quorate member list", "zone %s has %d of %d voters, so that "+
			"its failure stops all writes%s", zone, count[zone], len(p.voters), more)}
	}
	return nil
}

// levels are builds and feature levels that differ.
func (p *patient) levels() (all []Finding) {
	var builds []string
	var back []string
	higher := uint32(0)
	for _, known := range p.config.GetMembers() {
		if known.GetBuild() != "" && !slices.Contains(builds, known.GetBuild()) {
			builds = append(builds, known.GetBuild())
		}
		higher = max(higher, known.GetLevel())
		if known.GetLevel() <= p.config.GetLevel() {
			back = append(back, p.nameOf(known.GetId()))
		}
	}
	slices.Sort(builds)
	if len(builds) > 1 {
		all = append(all, found(BuildsMixed, Advice, nil, "quorate upgrade plan", "members run %d builds, %s: bring all to one",
			len(builds), list(builds)))
	}
	if active := p.config.GetLevel(); active > 0 && higher > active && len(back) > 0 {
		slices.Sort(back)
		all = append(all, found(LevelHeld, Advice, back, cureList, "feature level %d is active and %d is known: %s %s "+
			"it back; "+
			"upgrade, start or remove", active, higher, list(back), plural.Word(len(back), "holds", "hold")))
	}
	return all
}
