package operators

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/reconfig"
	"github.com/quorate/quorate/internal/membership"
)

// What package member does with requests and jobs, without its goroutines: jobs.go, jobs_driver.go, addresses.go, moved.go and
// join.go there.

func (w *world) queued() []membership.Job {
	jobs := make([]membership.Job, len(w.jobs))
	for i := range w.jobs {
		jobs[i] = w.jobs[i].Job
	}
	return jobs
}

func (w *world) rivals(s *membership.Spec) bool {
	return !w.rules.NoRivals && len(membership.Rivals(s, w.queued(), w.view())) > 0
}

// draft shows a plan; nil if it is blocked or there is nothing to do.
func (w *world) draft(s membership.Spec, title string) *plan {
	if w.leader() == consensus.NoMember || s.Validate() != nil {
		return nil
	}
	v := w.view()
	drawn := membership.Draft(&s, v)
	if drawn.Done || len(drawn.Blockers) > 0 || w.rivals(&s) || w.misplaced(&s) {
		return nil
	}
	p := &plan{spec: s, title: title, voters: drawn.Now.Voters, jobs: len(w.jobs)}
	if n := len(drawn.Steps); n > 0 {
		p.voters = drawn.Steps[n-1].After.Voters
	}
	if w.rules.PlansAreWishes {
		return p
	}
	p.spec.Expected = drawn.Config
	for i := range w.jobs {
		if !w.jobs[i].State.Ended() {
			p.spec.After = append(p.spec.After, w.jobs[i].ID)
		}
	}
	return p
}

// start asks for a job; promised is what a plan showed, with so many jobs before it.
func (w *world) start(s membership.Spec, promised, before int) {
	if w.leader() == consensus.NoMember || s.Validate() != nil {
		return
	}
	jobs, v := w.queued(), w.view()
	if slices.ContainsFunc(jobs, func(j membership.Job) bool { return !j.State.Ended() && !j.CancelAsked && j.Spec.Same(&s) }) {
		return // it is this job already
	}
	if _, ok := s.Admit(jobs, v.ID); !ok {
		return
	}
	s.Add = slices.Clone(s.Add)
	for i := range s.Add {
		w.drawn++
		s.Add[i].ID = w.drawn
	}
	drawn := membership.Rehearse(&s, jobs, v)
	if w.rules.NoRivals {
		calm := membership.Draft(&s, v)
		drawn.Blockers = calm.Blockers
	}
	if drawn.Done || len(drawn.Blockers) > 0 || w.misplaced(&s) {
		return
	}
	j := job{promised: promised, unknown: promised >= 0 && len(w.jobs) > before}
	j.Job = membership.Job{ID: membership.JobID(len(w.jobs) + 1), Spec: s, State: membership.StateQueued}
	j.NoteNames(v)
	w.jobs = append(w.jobs, j)
	if s.Kind != membership.KindReplace {
		for i := range s.Add {
			if !s.Add[i].Learner {
				w.budget++
			}
		}
		w.budget += len(s.Promote)
	}
}

// misplaced reports whether a member is not to be found where an update wants it.
func (w *world) misplaced(s *membership.Spec) bool {
	for i := range s.Update {
		if u := &s.Update[i]; s.Force == "" && !w.rules.AnyAddress && !w.found(u.ID, u.PeerURLs) {
			return true
		}
	}
	return false
}

// found reports whether a member answers at one of the URLs.
func (w *world) found(id consensus.MemberID, urls []string) bool {
	p := w.process(id)
	return p != nil && p.up && slices.Contains(urls, p.url)
}

// drive lets the leader do for the jobs all that it can.
func (w *world) drive() {
	for range 200 {
		if w.broken != "" || !w.turn() {
			return
		}
	}
	w.breaks("queue: the jobs are driven for ever: %s", w.titles())
}

// turn takes one step for the job whose turn it is, and reports whether there was one.
func (w *world) turn() bool {
	if w.leader() == consensus.NoMember {
		return false
	}
	v := w.view()
	waits := false
	for i := range w.jobs {
		j := &w.jobs[i]
		if j.State.Ended() || waits && (w.rules.NobodyPasses || !j.Passes()) {
			continue
		}
		if j.State == membership.StateQueued {
			j.Spec.Expected = j.Spec.Due(w.queued()[:i], v.ID)
		}
		action := membership.Next(&j.Job, v)
		j.Note(&action, v)
		if waits = j.StandsAside(&action, v); !waits {
			return w.act(j, &action)
		}
	}
	return false
}

func (w *world) act(j *job, action *membership.Action) bool {
	switch {
	case action.End != "":
		w.ended(j)
		return true
	case action.Transfer != consensus.NoMember:
		return false // who leads does not matter here, and no leader hands over: leaders are removed as they are
	case action.Change == nil:
		return false
	}
	demand := membership.Cautious
	if j.Spec.Force != "" {
		demand = membership.Forced
	}
	request := *action.Change
	request.Steps = slices.Clone(request.Steps)
	return w.confirm(&request, demand) && w.change(&request)
}

// confirm looks for the members whose URLs a change updates.
func (w *world) confirm(request *consensus.ChangeRequest, demand membership.Caution) bool {
	var doubtful []consensus.MemberID
	for i := range request.Steps {
		step := &request.Steps[i]
		known, ok := w.config.Member(step.Member.ID)
		if step.Kind != consensus.ChangeUpdate || !ok || w.rules.AnyAddress || w.found(known.ID, step.Member.PeerURLs) {
			continue
		}
		if !demand.Accepts(w.somebody(step.Member.PeerURLs)) {
			return false
		}
		doubtful = append(doubtful, known.ID)
		step.Member.FormerURLs = membership.Former(&known, w.found(known.ID, known.PeerURLs), step.Member.PeerURLs)
	}
	return len(doubtful) == 0 || demand == membership.Forced || membership.EnoughWithout(w.view(), doubtful)
}

func (w *world) somebody(urls []string) bool {
	return slices.ContainsFunc(w.processes, func(p process) bool { return p.up && slices.Contains(urls, p.url) })
}

// change makes a change of the configuration, at once.
func (w *world) change(request *consensus.ChangeRequest) bool {
	fit := w.fit()
	v := w.view()
	facts := reconfig.Facts{Tombstones: w.tombs, Strict: true, CaughtUp: fit, CountLaggards: w.rules.Planner.CountLaggards}
	for i := range v.Members {
		if v.Members[i].Active {
			facts.Active = append(facts.Active, v.Members[i].ID)
		}
	}
	change, reason := reconfig.Next(&w.config, w.id(), request, &facts)
	if reason != consensus.ReasonNone {
		return false
	}
	before := w.config.IDs()
	moves := slices.ContainsFunc(request.Steps, func(s consensus.ChangeStep) bool { return s.Kind == consensus.ChangeUpdate })
	w.config = change.Config.Settle()
	w.index++
	for _, id := range before {
		if !w.config.Contains(id) {
			w.tombs = append(w.tombs, id)
		}
	}
	w.changed(moves, request)
	return true
}

// join is a process that is started with --join and perhaps --replaces.
func (w *world) join(who, url string, replaces consensus.MemberID) {
	v := w.view()
	s := membership.Spec{
		Kind: membership.KindReplace, Add: []membership.Newcomer{{Name: who, PeerURLs: []string{url}}},
		Remove: []consensus.MemberID{replaces},
	}
	works := v.Works(replaces)
	if v.Leader == consensus.NoMember || works && !w.rules.JoinTakesVotes {
		return
	}
	jobs := len(w.jobs)
	w.start(s, -1, 0)
	if works && len(w.jobs) > jobs {
		w.breaks("vote: %s works, and %s joins in its place", name(replaces), who)
	}
}

// joinAsLearner is the same without --replaces: it needs no job.
func (w *world) joinAsLearner(who, url string) {
	v := w.view()
	_, taken := v.NameOwner(who, consensus.NoMember)
	if v.Leader == consensus.NoMember || taken && !w.rules.Planner.AnyName {
		return
	}
	request := consensus.ChangeOne(consensus.ChangeAddLearner, consensus.Member{
		ID: w.drawn + 1, Name: who, PeerURLs: []string{url},
	})
	if w.change(&request) {
		w.drawn++
	}
}

func (w *world) titles() string {
	var words []string
	for i := range w.jobs {
		j := &w.jobs[i]
		words = append(words, fmt.Sprintf("%v %s: %s %s (%s)", j.ID, j.Title(), j.State, j.Phase, j.Message))
	}
	return strings.Join(words, "; ")
}
