package doctor

import (
	"fmt"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/plural"
)

// watchers are clients that do not read what they asked for.
func (p *patient) watchers() (all []Finding) {
	for _, s := range p.answered() {
		work := s.o.GetWork()
		waiting, host := work.GetWatchWaitingBytes(), work.GetWatchHostBytes()
		// A client that reads catches up within a window, however much it is sent.
		stuck := work.GetWatchersBehindLeast() > 0 && waiting > 0 && s.o.GetWindowMs() >= 10*p.clocked
		if work.GetOverdrawnStreams() == 0 && !stuck && (host == 0 || waiting < host/2) {
			continue
		}
		all = append(all, found(WatcherUnread, SlowerThanIs, []string{s.name()}, cureStatus, "clients of %s do not read "+
			"their "+
			"watches: %s wait for them, of %s that one client host may have, %d of %s %s behind and %s for "+
			"others; `ss -tn` there shows which connections do not read: restart these clients", s.name(), size(waiting),
			size(host),
			work.GetWatchersBehind(), plural.Of(work.GetWatchers(), "watcher"), plural.Word(work.GetWatchersBehind(), "is",
				"are"),
			plural.Of(work.GetOverdrawnStreams(), "stream waits", "streams wait")))
	}
	return all
}

// leases are their number, and whether their clock goes.
func (p *patient) leases() (all []Finding) {
	told := false // all members grant the same leases
	for _, s := range p.answered() {
		work, one := s.o.GetWork(), []string{s.name()}
		granted, committed := int64(work.GetGranted()), int64(s.o.GetCore().GetCommitted())
		storm := granted >= least*least && granted >= work.GetLeases()/2 && granted*2 >= committed && granted <= committed
		if storm && !told && p.settled(s) {
			told = true
			all = append(all, found(LeaseStorm, SlowerThanIs, nil, "quorate lease list", "%d leases were granted within "+
				"%s, beside %d "+
				"that live: they are %d %% of what commits; some client grants a lease for each thing that it does, "+
				"instead of "+
				"renewing one", granted, span(s.o.GetWindowMs()), work.GetLeases(), percent(granted, committed)))
		}
		if stood := work.GetStoodMs(); stood > 0 && stood*20 >= s.o.GetWindowMs() {
			all = append(all, found(LeasesStood, SlowerThanIs, one, cureStatus, "the clock of leases stood still at %s "+
				"for %s of the "+
				"last %s, so that leases live longer than they should: renewals could not be served", s.name(), span(stood),
				span(s.o.GetWindowMs())))
		}
		if most := work.GetLeaseLimitBytes(); most > 0 && work.GetLeaseBytes() >= most/10*9 {
			all = append(all, found(LeasesFull, NextFailure, one, "quorate lease list", "%s %s %s of the %s "+
				"that %s has for them: soon no more are granted; end those that no client needs, or give every member more "+
				"--memory",
				plural.Of(work.GetLeases(), "lease"), plural.Word(work.GetLeases(), "has", "have"), size(work.GetLeaseBytes()),
				size(most), s.name()))
		}
	}
	return all
}

// puts are the sizes of what is written. All members apply the same puts.
func (p *patient) puts() []Finding {
	for _, s := range p.answered() {
		work := s.o.GetWork()
		if work.GetPuts() < least || work.GetMaxRequestBytes() == 0 || !p.settled(s) {
			continue
		}
		mean := int64(work.GetPutBytes() / work.GetPuts())
		if mean*16 < work.GetMaxRequestBytes() {
			continue
		}
		return []Finding{found(ValuesHuge, Advice, nil, "quorate get PREFIX --prefix --keys-only", "the %d puts of the "+
			"last %s have "+
			"%s on average, of requests of at most %s: each is written by every member, and all small writes wait behind it",
			work.GetPuts(), span(s.o.GetWindowMs()), size(mean), size(work.GetMaxRequestBytes()))}
	}
	return nil
}

// limits are those of users and prefixes that hold somebody back: as an operator wished, if the clients know of it.
func (p *patient) limits() (all []Finding) {
	full, refused := map[string]bool{}, map[string]bool{}
	for _, s := range p.answered() {
		for _, l := range s.o.GetLimits() {
			if l.GetUsedPercent() >= 90 && !full[l.GetName()] { // of the cluster, so that all members say the same
				full[l.GetName()] = true
				all = append(all, found(LimitNear, SlowerThanIs, nil, cureLimits, "%s", quotaWords(l)))
			}
			// One a second is more than a burst.
			if n := l.GetRefused(); n > 0 && n*1000 >= uint64(max(s.o.GetWindowMs(), 0)) && !refused[l.GetName()] {
				refused[l.GetName()] = true
				all = append(all, found(LimitRefuses, Advice, []string{s.name()}, cureLimits, "limit %q refused %s at %s "+
					"within %s: its clients ask for more than it allows", l.GetName(), plural.Of(n, "request"), s.name(),
					span(s.o.GetWindowMs())))
			}
		}
	}
	return all
}

// quotaWords say which quota is reached, what that does to whom, and what to do.
func quotaWords(l *quoratepb.ObservedLimit) string {
	has := fmt.Sprintf("%d %% of its quota", l.GetUsedPercent())
	switch l.GetBound() {
	case "keys":
		has = fmt.Sprintf("%d of the %d keys that it allows", l.GetUsed(), l.GetMost())
	case "bytes":
		has = fmt.Sprintf("%s of the %s of keys and values that it allows", size(l.GetUsed()), size(l.GetMost()))
	}
	const others = "all else goes on: delete keys of it, or raise it with `quorate limit set`; `quorate top` shows who writes"
	if l.GetUsedPercent() >= 100 {
		return fmt.Sprintf("limit %q is full: its prefix has %s, and puts that add to it fail now (ResourceExhausted); %s",
			l.GetName(), has, others)
	}
	return fmt.Sprintf("limit %q is nearly full: its prefix has %s; from there on puts that add to it fail "+
		"(ResourceExhausted); %s", l.GetName(), has, others)
}

// refusals are calls and writes that a member does not serve.
func (p *patient) refusals() (all []Finding) {
	for _, s := range p.answered() {
		work, one := s.o.GetWork(), []string{s.name()}
		if failed := work.GetFailedProposals(); failed >= least && failed*20 >= work.GetWrites() {
			all = append(all, found(ProposalsFail, SlowerThanIs, one, cureStatus, "%d of %s at %s ended without "+
				"a result within "+
				"%s: there was no leader for them, or no answer in time", failed, plural.Of(max(failed, work.GetWrites()),
				"write"), s.name(),
				span(s.o.GetWindowMs())))
		}
		if n := work.GetConnectionsRefused() + work.GetCallsRefused(); n > 0 {
			all = append(all, found(ClientsRefused, SlowerThanIs, one, cureStatus, "%s refused %s and %s within %s, "+
				"because some client host has too many: docs/limits.md has the bounds", s.name(),
				plural.Of(work.GetConnectionsRefused(), "connection"), plural.Of(work.GetCallsRefused(), "call"),
				span(s.o.GetWindowMs())))
		}
	}
	return all
}
