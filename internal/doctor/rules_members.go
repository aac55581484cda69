package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/base/typed"
)

// alarms are those that the cluster stores, and the marks of corrupt members.
func (p *patient) alarms() (all []Finding) {
	told := map[string]bool{}
	cure, distance := p.compaction()
	for _, alarm := range p.latest().GetAlarms() {
		key := fmt.Sprint(alarm.GetKind(), alarm.GetMember())
		if told[key] {
			continue
		}
		told[key] = true
		name := p.nameOf(alarm.GetMember())
		switch {
		case alarm.GetKind() == "NOSPACE":
			all = append(all, found(NoSpace, CannotWrite, []string{name}, cure,
				"the store of %s reached its quota, and no member takes writes that grow%s: delete keys and compact, or "+
					"raise --quota-backend-bytes; %s", name, p.quotaText(name), distance))
		case alarm.GetKind() == "CORRUPT" && alarm.GetMember() == 0:
			all = append(all, found(CorruptCluster, CannotWrite, nil, "quorate endpoint hashkv --cluster",
				"the data of the members differ and no majority agrees, so that none serves: keep every data directory, "+
					"any may hold the only copy of acknowledged writes"))
		case alarm.GetKind() == "CORRUPT":
			all = append(all, p.corrupt(name))
		}
	}
	for _, s := range p.answered() {
		if s.o.GetCore().GetCorrupt() && !told["CORRUPT0"] && !told[fmt.Sprint("CORRUPT", s.Id)] {
			told[fmt.Sprint("CORRUPT", s.Id)] = true
			all = append(all, p.corrupt(s.name()))
		}
	}
	return all
}

func (p *patient) corrupt(name string) Finding {
	severity := SlowerThanIs
	for _, s := range p.voters {
		if s.name() == name && p.tolerates() <= 1 {
			severity = NextFailure
		}
	}
	return found(MemberCorrupt, severity, []string{name}, cureStatus, "the data of %s differ from those of the "+
		"majority, and "+
		"it serves nothing: `quorate status` says how to give it the data of the others, once these are well", name)
}

// quotaText is how much of its quota a member has used, in brackets.
func (p *patient) quotaText(name string) string {
	for _, s := range p.answered() {
		if store := s.o.GetStore(); s.name() == name && store.GetQuotaBytes() > 0 {
			return fmt.Sprintf(" (%s of %s)", size(store.GetSizeBytes()), size(store.GetQuotaBytes()))
		}
	}
	return ""
}

// quorumLost is that too few voters are up for anything to be written.
func (p *patient) quorumLost() []Finding {
	if p.alone || len(p.voters) == 0 || p.tolerates() >= 0 {
		return nil
	}
	voters, of := p.voters, ""
	switch {
	case p.fit >= p.quorum: // a change is joint, and its old set is lost
		voters, of = p.old, " of the old set, which must agree until the change of members is done,"
	case len(p.old) > 0:
		of = " of the new set, which must agree to the change of members that is under way,"
	}
	var down []string
	for _, s := range voters {
		if s.absent {
			down = append(down, s.name())
		}
	}
	quorum, fit := len(voters)/2+1, present(voters)
	return []Finding{found(NoQuorum, CannotWrite, down, cureStatus, "%d of %s%s %s down (%s), and %d must be up: nothing "+
		"can be written until %d more %s: start them again with their data", len(down),
		plural.Of(len(voters), "voter"), of, plural.Word(len(down), "is", "are"), strings.Join(down, ", "), quorum, quorum-fit,
		plural.Word(quorum-fit, "runs", "run"))}
}

// membersDown are members that neither the collector nor the leader hears.
func (p *patient) membersDown() (all []Finding) {
	for _, s := range p.seats {
		if s.known == nil || s.o != nil {
			continue
		}
		peer := p.followed(s)
		if strings.Contains(peer.GetState(), " ") { // the leader says what is wrong with it: see identities
			continue
		}
		unheard := (peer == nil || !peer.GetActive()) && !p.follow(s)
		since := ""
		if ms := peer.GetSilentMs(); ms > 0 {
			since = ", for " + span(ms)
		}
		one, cure := []string{s.name()}, cureList
		switch {
		case !p.started(s):
			all = append(all, p.notStarted(s))
		case !s.asked && peer == nil:
		case p.linked && s.asked:
			all = append(all, p.overLinks(s, peer, unheard, since)...)
		case !s.asked && !peer.GetActive(), s.asked && slices.Contains([]string{FaultRefused, FaultUnreachable,
			FaultUnresolved, FaultClosed}, s.GetFault()) &&
			unheard && p.heardByNone(s):
			all = append(all, found(MemberDown, p.weight(s), one, cure,
				"%s is down%s: %s; its log says why, start it again with its data",
				s.name(), since, p.downText(s)))
		case s.GetFault() == FaultClosed: // a member hears it
			all = append(all, p.closed(s))
		case s.GetFault() == FaultSilent && unheard && peer != nil && peer.GetSilentMs() <= p.clocked: // it stops, or starts
		case s.GetFault() == FaultSilent && unheard:
			all = append(all, found(MemberHangs, p.weight(s), one, cure, "%s hangs%s: its process accepts connections and "+
				"does not answer; see whether it is stopped, swapped out, or waits for its disk", s.name(), since))
		case s.asked && s.GetFault() == FaultSilent:
			all = append(all, found(ClientURLWrong, SlowerThanIs, one, cure,
				"%s accepts connections and gives no answer (%s), "+
					"though other members hear %s: another program may have that address, or %s lacks a processor",
				s.GetEndpoint(), s.GetFaultText(), s.name(), s.name()))
		case s.asked && s.GetFault() != FaultUnresolved && slices.Contains(away, s.GetFault()) && !unheard:
			all = append(all, found(ClientURLWrong, SlowerThanIs, one, cure, "%s is not reached at %s (%s), though other "+
				"members hear it: see its --advertise-client-urls, and the network from here", s.name(), s.GetEndpoint(),
				s.GetFaultText()))
		}
	}
	return all
}

// closed is a client port that is full, or has nothing behind it.
func (p *patient) closed(s *seat) Finding {
	return found(ClientsRefused, SlowerThanIs, []string{s.name()}, cureStatus,
		"%s accepts connections and closes them at once: the limit of connections of %s is reached, for this host or in total "+
			"(docs/limits.md), or a proxy in front of it reaches no member", s.GetEndpoint(), s.name())
}

func (p *patient) notStarted(s *seat) Finding {
	one := []string{s.name()}
	if votes(s.known) {
		return found(VoterNotStarted, p.weight(s), one, cureList, "%s votes and has never started: it counts in every "+
			"majority "+
			"and helps none; start it with --join", s.name())
	}
	return found(NotStarted, Advice, one, "quorate member jobs", "%s was added and has never started: start it with --join",
		s.name())
}

// leaderless is that members know no leader.
func (p *patient) leaderless() (all []Finding) {
	var seeking []*seat
	led := false
	for _, s := range p.answered() {
		core := s.o.GetCore()
		led = led || core.GetLeader() != 0
		// An election is over within a few timeouts.
		if core.GetLeader() == 0 && core.GetSuperseded() == "" && p.grown(s, 5) && core.GetLeaderlessMs() > 3*p.clocked {
			seeking = append(seeking, s)
		}
	}
	if p.linked && !led && len(seeking) > 0 && p.voices() < p.quorum {
		return []Finding{p.noMajority(seeking)}
	}
	for _, s := range seeking {
		if led || p.alone {
			severity := p.weight(s)
			if p.alone {
				severity = CannotWrite // its own clients cannot; whether others can is not known
			}
			all = append(all, found(CutOff, severity, []string{s.name()}, cureStatus, "%s has known no leader for %s%s",
				s.name(), span(s.o.GetCore().GetLeaderlessMs()), p.elsewhere()))
		}
	}
	if !led && !p.alone && len(seeking) > 0 {
		answer := p.fit
		if p.linked {
			answer = p.voices()
		}
		longest := slices.MaxFunc(seeking, func(a, b *seat) int {
			return int(a.o.GetCore().GetLeaderlessMs() - b.o.GetCore().GetLeaderlessMs())
		})
		all = append(all, found(NoLeader, CannotWrite, names(seeking), cureStatus, "no member leads, for %s: %d of %s "+
			"answer and elect none", span(longest.o.GetCore().GetLeaderlessMs()), answer, plural.Of(len(p.voters), "voter")))
	}
	return all
}

func (p *patient) elsewhere() string {
	if p.leader == nil {
		return ""
	}
	return ", and " + p.leader.name() + " leads: it serves neither writes nor linearizable reads"
}

// identities are members whose data the others refuse, and processes that should not run.
func (p *patient) identities() (all []Finding) {
	for _, s := range p.seats {
		peer := p.followed(s)
		switch state := peer.GetState(); state {
		case "lost its disk", "rolled back":
			words := map[string]string{"lost its disk": "has lost its data", "rolled back": "has older data than it " +
				"had"}[state]
			all = append(all, found(DiskLost, p.weight(s), []string{s.name()},
				typed.Line("quorate", "member", "reset", s.name(), "--dry-run"), "%s %s, and the others refuse it: if "+
					"its disk "+
					"was moved give it that disk back, else plan to give its place to an empty directory", s.name(), words))
		case "marked corrupt":
			if s.o == nil {
				all = append(all, p.corrupt(s.name()))
			}
		}
		if s.o == nil {
			continue
		}
		if text := s.o.GetCore().GetSuperseded(); text != "" {
			all = append(all, found(Superseded, SlowerThanIs, []string{s.name()}, cureList, "%s serves nothing, because the "+
				"cluster was recovered without it: stop it, and keep its data until no writes are missed", s.name()))
			continue
		}
		for _, text := range s.o.GetTroubles() {
			all = append(all, found(ForeignProcess, SlowerThanIs, []string{s.name()}, cureStatus, "%s", text))
		}
	}
	return all
}

// unobserved are members that answer and do not say what they observe.
func (p *patient) unobserved() (all []Finding) {
	if p.linked {
		return p.untold()
	}
	for _, s := range p.seats {
		switch s.GetFault() {
		case FaultUnsupported:
			all = append(all, found(NotObserved, Advice, []string{s.name()}, "quorate member list",
				"%s runs a build that does not say what it observes, so that it is judged by the others alone", s.name()))
		case FaultDenied:
			all = append(all, found(NotObserved, Advice, []string{s.name()}, "quorate doctor --user NAME",
				"%s does not let this user ask: %s", s.name(), s.GetFaultText()))
		case FaultLong:
			all = append(all, found(NotObserved, Advice, []string{s.name()}, cureList,
				"%s is judged by the others alone: %s, which is more than any member has to say", s.name(), s.GetFaultText()))
		case FaultOther:
			all = append(all, found(ClustersMixed, SlowerThanIs, []string{s.name()}, cureStatus, "another process "+
				"answers at "+
				"%s, where %s should: %s", s.GetEndpoint(), s.name(), s.GetFaultText()))
		}
	}
	return all
}
