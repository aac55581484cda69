package wording

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/typed"
	"github.com/quorate/quorate/internal/membership"
)

// Protocol is a way in which voters change. docs/membership.md has the same sentences.
type Protocol struct{ Name, About string }

// Protocols are those of --protocol, in its order.
var Protocols = []Protocol{
	{"auto", "single where one voter differs, else joint-early"},
	{"single", "an entry changes one voter; a job that changes several makes several entries"},
	{"joint", "both sets of voters decide until a second entry; can be aborted until that entry is written"},
	{"joint-early", "as joint, but the change is decided once majorities of both sets have the first entry"},
	{"activate", "one entry; each member uses the new configuration once it knows that the entry has committed (as ZooKeeper)"},
	{"apply", "one entry where one voter differs, else as joint, with no way back; a member uses a configuration once it has " +
		"applied its entry (as etcd-raft)"},
}

// Phase is a phase of a job. docs/membership.md has the same sentences.
type Phase struct{ Name, Does, WaitsFor string }

// Phases are those of all jobs, in the order in which they can occur.
var Phases = []Phase{
	{"make-room", "a member whose URL the newcomer takes is removed first", "a commit"},
	{"join", "newcomers become learners: they receive the log and are not counted", "a commit"},
	{"start", "nothing, until the newcomer is heard", "you: start the newcomer"},
	{"snapshot", catchUp, "the newcomer: within 1,000 entries and one message of the leader"},
	{"catch-up", catchUp, "the newcomer: within 1,000 entries and one message of the leader"},
	{"cordon", "members are cordoned and uncordoned", "a commit"},
	{"drain", "leadership is transferred away from a member that is removed", "an election, one round trip"},
	{"swap", "the voters change in one step", "a majority of the old and of the new voters"},
	{"decided", "nobody can undo the change any more; members that leave must still run",
		"with joint-early the second entry, with activate and apply who knows that it is in force"},
	{"update", "instead of swap, if only peer URLs change", "a commit"},
	{"settle", "the removed members are told and stop themselves", "a commit in the new configuration"},
	{"undo", "the job was cancelled: newcomers are removed again", "a commit"},
}

const catchUp = "the newcomer receives the state, then the log"

// Verb is a change that people ask for, as `quorate member` calls it.
type Verb struct{ Name, About string }

// Verbs are all of them.
var Verbs = []Verb{
	{"replace", "Put a new member in the place of one, dead or alive"},
	{"add", "Add a member, which votes once it has caught up"},
	{"remove", "Remove members for ever"},
	{"reset", "Give the place of a member whose disk is lost to a new one with the same name and URLs"},
	{"promote", "Turn learners into voters"},
	{"demote", "Turn voters into learners"},
	{"update", "Change the peer URLs of a member"},
	{"drain", "Move leadership away from members, before their machines are taken down for a while"},
	{"cordon", "Keep members from leading, until they are uncordoned"},
	{"uncordon", "Let cordoned members lead again"},
	{"change", "Add, remove, promote, demote, update and cordon members, the voters in one atomic step"},
}

// About is the sentence about a verb.
func About(verb string) string {
	at := slices.IndexFunc(Verbs, func(v Verb) bool { return v.Name == verb })
	return Verbs[at].About
}

// Ended reports whether nothing more will happen to a job.
func Ended(job *quoratepb.Job) bool { return membership.State(job.GetState()).Ended() }

// Cancelling says what becomes of a job that is cancelled as it is now, and what stays.
func Cancelling(job *quoratepb.Job, names Names) []string {
	phase := membership.Phase(job.GetPhase())
	switch {
	case Ended(job):
		return []string{fmt.Sprintf("The job is %s already: there is nothing to cancel.", job.GetState())}
	case job.GetCancelAsked():
		return []string{"The job is being cancelled already."}
	case membership.State(job.GetState()) == membership.StateQueued:
		return []string{"The job has not begun: it ends at once, and nothing is to be undone."}
	case job.GetSpec().GetKind() == string(membership.KindDrain):
		return []string{"The job hands leadership on and does nothing else. A hand-over that has happened is not taken back."}
	case phase == membership.PhaseDecided || phase == membership.PhaseSettle:
		return []string{"It is too late: the change is decided and cannot be undone. The job goes on, and ends as done."}
	}
	var out []string
	if added := job.GetSpec().GetAdd(); len(added) > 0 {
		var who []string
		for i, n := range added {
			switch {
			case n.GetName() != "":
				who = append(who, n.GetName())
			case i < len(job.GetNewcomers()):
				who = append(who, names.Of(job.Newcomers[i]))
			}
		}
		out = append(out, "Newcomers that the job has added are removed again: "+strings.Join(who, ", ")+".")
	}
	out = append(out, "A change of voters that is decided by then is not undone: the job ends as done.")
	return append(out, staying(job, names)...)
}

// staying says what a job has done already that cancelling it does not undo.
func staying(job *quoratepb.Job, names Names) (out []string) {
	at := slices.Index(job.GetPhases(), job.GetPhase())
	past := func(phase membership.Phase) bool {
		i := slices.Index(job.GetPhases(), string(phase))
		return i >= 0 && i < at
	}
	if past(membership.PhaseMakeRoom) {
		out = append(out, "A member that was removed because the newcomer takes its URL cannot come back: "+
			names.List(job.GetSpec().GetRemove())+".")
	}
	if past(membership.PhaseCordon) {
		for _, id := range job.GetSpec().GetCordon() {
			out = append(out, fmt.Sprintf("%s stays cordoned: `%s` ends that.", names.Of(id),
				typed.Line("quorate", "member", "uncordon", names.Of(id))))
		}
	}
	return out
}

// Outcome says how a job has ended, with what may be done now. Empty: it has not, or says nothing.
func Outcome(job *quoratepb.Job, names Names) string {
	removed := job.GetSpec().GetRemove()
	switch {
	case !Ended(job):
		return ""
	case job.GetMessage() != "" || membership.State(job.GetState()) != membership.StateDone:
		return job.GetMessage()
	case len(removed) > 0:
		return "may be switched off: " + names.List(removed)
	}
	return ""
}
