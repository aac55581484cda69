package membership

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/consensus"
)

// Rivals says which unfinished jobs s contradicts, one sentence each: s is refused then. Two jobs that take the place of
// the same member, say, would leave one voter too many. A job that is being cancelled is in no other's way.
func Rivals(s *Spec, jobs []Job, v *View) []string {
	var words []string
	for i := range jobs {
		if v.Faults.NoRivals {
			break
		}
		j := &jobs[i]
		if j.State.Ended() || j.CancelAsked || j.Spec.Same(s) {
			continue
		}
		if what := s.contradicts(j); what != "" {
			words = append(words, fmt.Sprintf("%s: watch it (`quorate member jobs watch %v`), or cancel it first "+
				"(`quorate member jobs cancel %v`)", what, j.ID, j.ID))
		}
	}
	return words
}

func (s *Spec) contradicts(j *Job) string {
	others := slices.Concat(s.Promote, s.Demote, s.Drain, s.Cordon, s.Uncordon)
	for i := range s.Update {
		others = append(others, s.Update[i].ID)
	}
	for _, id := range j.Spec.Remove {
		switch {
		case slices.Contains(s.Remove, id):
			return fmt.Sprintf("job %v removes %s already (%s)", j.ID, j.named(id), j.Title())
		case slices.Contains(others, id):
			return fmt.Sprintf("job %v removes %s (%s)", j.ID, j.named(id), j.Title())
		}
	}
	for _, id := range j.Spec.Promote {
		if slices.Contains(s.Promote, id) {
			return fmt.Sprintf("job %v makes a voter of %s already (%s)", j.ID, j.named(id), j.Title())
		}
	}
	for _, n := range j.Spec.Add {
		for _, mine := range s.Add {
			if mine.Name != "" && mine.Name == n.Name && !SameURLs(mine.PeerURLs, n.PeerURLs) {
				return fmt.Sprintf("job %v adds another member called %s (%s)", j.ID, n.Name, j.Title())
			}
		}
	}
	return ""
}

// Unseen lists the unfinished jobs that the planner of s has not been told of. A Spec that expects no configuration was not
// planned.
func (s *Spec) Unseen(jobs []Job) []Job {
	var unseen []Job
	for i := range jobs {
		j := &jobs[i]
		known := slices.Contains(s.After, j.ID) || j.Spec.Same(s)
		if s.Expected != (consensus.ConfigID{}) && !j.State.Ended() && !known {
			unseen = append(unseen, *j)
		}
	}
	return unseen
}

// Since says which jobs have changed the configuration after the expected one; empty if none is known.
func Since(jobs []Job, expected consensus.ConfigID) string {
	var words []string
	for i := range jobs {
		j := &jobs[i]
		switch {
		case !j.begun():
		case j.State == StateDone && j.Final.Index > expected.Index:
			words = append(words, fmt.Sprintf("job %v (%s) is done since", j.ID, j.Title()))
		case !j.State.Ended():
			words = append(words, fmt.Sprintf("job %v (%s) is under way", j.ID, j.Title()))
		}
	}
	return strings.Join(words, ", ")
}

// Title says in a few words what a job is for.
func (j *Job) Title() string {
	s := &j.Spec
	var in, words []string
	for _, n := range s.Add {
		name := n.Name
		if name == "" {
			name = strings.Join(n.PeerURLs, ",")
		}
		in = append(in, name)
	}
	each := func(ids []consensus.MemberID) (list []string) {
		for _, id := range ids {
			list = append(list, j.named(id))
		}
		return list
	}
	names := func(ids []consensus.MemberID) string { return join(each(ids)) }
	if s.kind() == KindReplace {
		return fmt.Sprintf("replace %s by %s", names(s.Remove), join(append(in, each(s.Promote)...)))
	}
	if len(in) > 0 {
		words = append(words, "add "+join(in))
	}
	for _, list := range []struct {
		verb string
		ids  []consensus.MemberID
	}{{"remove", s.Remove}, {"promote", s.Promote}, {"demote", s.Demote}, {"cordon", s.Cordon},
		{"uncordon", s.Uncordon}, {"drain", s.Drain}} {
		if len(list.ids) > 0 {
			words = append(words, list.verb+" "+names(list.ids))
		}
	}
	for i := range s.Update {
		words = append(words, "update "+j.named(s.Update[i].ID))
	}
	return strings.Join(words, ", ")
}

// named is what the member was called when the job was accepted.
func (j *Job) named(id consensus.MemberID) string {
	for _, n := range j.Names {
		if n.ID == id {
			return n.Name
		}
	}
	return id.String()
}
