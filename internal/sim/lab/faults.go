package lab

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/consensus"
)

// FaultHelp describes the faults, one on each line.
const FaultHelp = `leader-crash@WHEN              the leader's process dies
leader-restart@WHEN+TIME       it dies and starts again TIME later
crash-member:M@WHEN            member M dies
restart-member:M@WHEN          member M starts again
partition@WHEN:1,2|3,4,5       the groups do not hear each other; who is not named hears nobody
heal@WHEN                      they do again
drop-config-to:M               entries with a configuration never reach M
lag:M                          messages to and from M take ten times as long
`

// StageHelp describes the values of WHEN.
const StageHelp = `0      the change is in the log of the leader, on its disk, and nothing was sent
1      it is on the disk of one other member, and no other gets it from this leader
2      it has committed at the leader (with two entries: the first), and nobody else knows
3      the new configuration is in force at another member (one entry: known to be committed there)
120ms  so long after the beginning
`

// stageCount is the number of stages.
const stageCount = 4

// Fault is one fault of a run.
type Fault struct {
	text   string
	kind   string
	member memberID
	staged bool
	stage  int
	at     time.Duration
	again  time.Duration // after which the leader starts again
	groups [][]memberID
}

func (f Fault) String() string { return f.text }

var faultWords = map[string]string{
	"leader-crash": "when", "leader-restart": "when again", "crash-member": "member when", "restart-member": "member when",
	"partition": "when groups", "heal": "when", "drop-config-to": "member", "lag": "member",
}

// ParseFault reads a fault as FaultHelp describes it.
func ParseFault(text string) (Fault, error) {
	f := Fault{text: text}
	head, rest, timed := strings.Cut(text, "@")
	kind, member, named := strings.Cut(head, ":")
	f.kind = kind
	words, known := faultWords[kind]
	if !known {
		return f, fmt.Errorf("no fault %q: there are %s", text, faultForms())
	}
	fail := func(what string) (Fault, error) { return f, fmt.Errorf("fault %q: %s", text, what) }
	if named != strings.Contains(words, "member") {
		return fail("it names a member as crash-member, restart-member, drop-config-to and lag do, and only they: KIND:M")
	}
	if named {
		ids, err := ParseMembers(member)
		if err != nil || len(ids) != 1 {
			return fail("there is no member " + strconv.Quote(member))
		}
		f.member = ids[0]
	}
	if timed != strings.Contains(words, "when") {
		return fail("drop-config-to and lag hold all the time, all others need @WHEN, a stage 0 to 3 or a time like 120ms")
	}
	if strings.Contains(words, "again") {
		var again string
		var err error
		rest, again, _ = strings.Cut(rest, "+")
		if f.again, err = time.ParseDuration(again); err != nil || f.again <= 0 {
			return fail("it needs the time after which the leader starts again, like leader-restart@1+200ms")
		}
	}
	if strings.Contains(words, "groups") {
		var groups string
		rest, groups, _ = strings.Cut(rest, ":")
		for group := range strings.SplitSeq(groups, "|") {
			ids, err := ParseMembers(group)
			if err != nil || len(ids) == 0 {
				return fail("it needs groups, like partition@2:1,2|3,4,5")
			}
			f.groups = append(f.groups, ids)
		}
	}
	if timed && !f.when(rest) {
		return fail("WHEN is a stage, 0 to 3, or a time like 120ms")
	}
	return f, nil
}

// faultForms lists the forms of faults.
func faultForms() string {
	var forms []string
	for line := range strings.Lines(FaultHelp) {
		forms = append(forms, strings.Fields(line)[0])
	}
	return strings.Join(forms, ", ")
}

func (f *Fault) when(text string) bool {
	if stage, err := strconv.Atoi(text); err == nil {
		f.staged, f.stage = true, stage
		return stage >= 0 && stage < stageCount
	}
	at, err := time.ParseDuration(text)
	f.at = at
	return err == nil && at >= 0
}

// ParseMembers reads "1,2,3".
func ParseMembers(text string) ([]memberID, error) {
	var ids []memberID
	if text == "" {
		return nil, nil
	}
	for word := range strings.SplitSeq(text, ",") {
		id, err := strconv.ParseUint(word, 10, 8)
		if err != nil || id == 0 || id > maxMembers {
			return nil, fmt.Errorf("%q is no member: they are 1 to %d", word, maxMembers)
		}
		ids = append(ids, memberID(id))
	}
	return ids, nil
}

// named lists the members that f names.
func (f *Fault) named() []memberID {
	var ids []memberID
	if f.member != consensus.NoMember {
		ids = append(ids, f.member)
	}
	for _, group := range f.groups {
		ids = append(ids, group...)
	}
	return ids
}

// happen makes f strike now.
func (w *world) happen(f *Fault) {
	switch f.kind {
	case "leader-crash", "leader-restart":
		leader := w.leader()
		if proposer := w.stages.proposer; leader == nil && f.staged && w.member(proposer).running() {
			leader = w.member(proposer) // it handed over in the very step in which its change committed
		}
		if leader == nil {
			w.journal.add(KindFault, consensus.NoMember, "%s: nobody leads", f)
			return
		}
		leader.crash(fmt.Sprintf("%v crashes (%s)", leader.id, f))
		if f.again > 0 {
			w.stages.timed++
			w.After(f.again, func() {
				w.stages.timed--
				leader.restart()
			})
		}
	case "crash-member":
		w.member(f.member).crash(fmt.Sprintf("%v crashes (%s)", f.member, f))
	case "restart-member":
		w.member(f.member).restart()
	case "partition":
		w.net.groups = f.groups
		w.journal.add(KindFault, consensus.NoMember, "network cut: %s", drawGroups(f.groups))
	case "heal":
		w.net.groups = nil
		w.journal.add(KindFault, consensus.NoMember, "network healed")
	case "drop-config-to":
		w.net.noConfig = append(w.net.noConfig, f.member)
		w.journal.add(KindFault, consensus.NoMember, "no configuration entry will reach %v", f.member)
	case "lag":
		w.net.lagging = append(w.net.lagging, f.member)
		w.journal.add(KindFault, consensus.NoMember, "messages from and to %v take ten times as long", f.member)
	}
}

func drawGroups(groups [][]memberID) string {
	var parts []string
	for _, group := range groups {
		parts = append(parts, "{"+list(group)+"}")
	}
	return strings.Join(parts, " ╱ ")
}
