package membership

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/base/typed"
	"github.com/quorate/quorate/internal/consensus"
)

// Care looks for what is wrong with the voters, and how to cure it without an operator's help. It is meant to be asked again
// and again, with the same memory. Its rules:
//
//	a voter is dead       swap it for a standby learner; never remove one without a successor
//	voters are missing    promote standby learners, to an odd number of voters unless the target is even
//	anything is unclear   do nothing, and say why
//
// A standby is a learner that is to stay one and that could have voted at any time of the last StableMS.
func Care(p *Policy, v *View, jobs []Job, memory *HealthHistory) Advice {
	if !p.On() {
		return Advice{}
	}
	memory.record(p, v, jobs)
	c := diagnosis{policy: p, view: v, jobs: jobs, memory: memory, goal: newGoal(&Spec{}, v, nil)}
	for _, id := range c.goal.config.Voters {
		m, _ := v.Member(id)
		switch {
		case id == v.Leader:
		case !m.Active:
			c.silent = append(c.silent, id)
			if p.dead(&m) {
				c.dead = append(c.dead, id)
			}
		}
		if memory.of(id).back {
			c.back = append(c.back, id)
		}
	}
	return c.advise()
}

// diagnosis is one look at a cluster.
type diagnosis struct {
	policy *Policy
	view   *View
	jobs   []Job
	memory *HealthHistory
	goal   *goal
	// Voters other than the leader: silent ones, of them the dead, and those that were dead a moment ago.
	silent, dead, back []consensus.MemberID
}

func (c *diagnosis) advise() Advice {
	if a := c.needless(); a.Cancel != 0 {
		return a
	}
	limit := seconds(c.policy.DeadAfterMS)
	missing := c.missing()
	switch n := len(c.dead); {
	case n > 0:
		return c.held(Advice{Problem: fmt.Sprintf("%s %s been silent for more than %s", c.goal.names.list(c.dead),
			plural.Word(n, "has", "have"), limit)}, c.swap)
	case len(c.back) > 0:
		return Advice{Problem: fmt.Sprintf("%s %s silent for more than %s", c.goal.names.list(c.back),
			plural.Word(len(c.back), "was", "were"), limit), Held: c.backWords()}
	case missing > 0:
		return c.held(Advice{Problem: fmt.Sprintf("there are %s, and there should be %d",
			plural.Of(len(c.goal.config.Voters), "voter"), c.policy.Voters)}, c.grow)
	}
	return Advice{}
}

// needless finds a job that replaces a member that came back.
func (c *diagnosis) needless() Advice {
	for i := range c.jobs {
		j := &c.jobs[i]
		out := j.Spec.replaced()
		m, ok := c.view.Member(out)
		if j.State.Ended() || j.CancelAsked || !ok || !m.Active || !c.goal.config.IsVoter(out) || !ByCare(j) {
			continue
		}
		return Advice{
			Problem: fmt.Sprintf("%s answers again while it is being replaced", c.goal.names.label(out)),
			Remedy:  fmt.Sprintf("job %v is cancelled", j.ID), Cancel: j.ID,
		}
	}
	return Advice{}
}

// missing is how many voters are to be added. Learners that vote as soon as they have caught up are on their way.
func (c *diagnosis) missing() int {
	n := c.policy.Voters - len(c.goal.config.Voters)
	for _, id := range c.goal.config.Learners {
		known, _ := c.goal.config.Member(id)
		if seen, _ := c.view.Member(id); (known.Promote || known.Joining) && seen.Active {
			n--
		}
	}
	return n
}

// held completes an advice: with what cure says, unless there is a reason to keep still.
func (c *diagnosis) held(a Advice, cure func(*Advice)) Advice {
	if a.Held = c.unclear(); a.Held != "" {
		return a
	}
	if cure(&a); a.Spec == nil {
		return a
	}
	a.Spec.Expected = c.view.ID
	for i := range c.jobs {
		if !c.jobs[i].State.Ended() {
			a.Spec.After = append(a.Spec.After, c.jobs[i].ID)
		}
	}
	job, why := c.attempt(a.Spec.replaced())
	plan := Draft(a.Spec, c.view)
	switch {
	case why != "":
	case c.spent():
		why = fmt.Sprintf("%s were begun within an hour, which is as many as may be",
			plural.Of(c.policy.MaxPerHour, "automatic change"))
	case len(plan.Blockers) > 0:
		why = strings.Join(plan.Blockers, "; ")
	}
	if a.Job = job; why != "" {
		a.Spec, a.Job, a.Remedy, a.Held = nil, 0, "", why
	}
	return a
}

// unclear says why nothing may be done, whatever is wrong.
func (c *diagnosis) unclear() string {
	v := c.view
	open := slices.IndexFunc(c.jobs, func(j Job) bool { return !j.State.Ended() && !j.onlyAwaits() })
	switch {
	case Measure(&v.Config, v.Fit()).Tolerates < 0:
		return "the quorum is lost: start members, or see `quorate recover`"
	case !v.TermStarted:
		return fmt.Sprintf("%s has led for a moment only", c.goal.names.label(v.Leader))
	case !v.settled():
		return "another change is under way"
	case open >= 0:
		return fmt.Sprintf("job %v has not ended", c.jobs[open].ID)
	case len(c.silent) > 1:
		return fmt.Sprintf("%s are silent at once, which is more likely to be the network: somebody must look",
			c.goal.names.list(c.silent))
	case len(c.back) > 0:
		return c.backWords()
	}
	return ""
}

func (c *diagnosis) backWords() string {
	return fmt.Sprintf("%s came back and may stay", c.goal.names.list(c.back))
}

// swap proposes a successor for the dead voter. There is one only: with more, things are unclear.
func (c *diagnosis) swap(a *Advice) {
	out := c.dead[0]
	in := c.choose(1, c.zoneOf(out), c.goal.config.Voters, out)
	if len(in) == 0 && c.view.Faults.CareShrinks {
		a.Spec = &Spec{Kind: KindChange, Remove: []consensus.MemberID{out}}
		return
	}
	if len(in) == 0 {
		a.Held = c.noStandby("to take its place")
		return
	}
	a.Remedy = fmt.Sprintf("%s can take its place: `quorate member replace %s --with %s`", c.goal.names.label(in[0]),
		typed.Word(c.goal.names.word(out)), typed.Word(c.goal.names.word(in[0])))
	a.Spec = &Spec{Kind: KindReplace, Remove: []consensus.MemberID{out}, Promote: in}
}

// grow proposes learners to vote.
func (c *diagnosis) grow(a *Advice) {
	voters := c.goal.config.Voters
	if len(c.silent) > 0 {
		a.Held = fmt.Sprintf("%s does not answer, and voters are added while all do", c.goal.names.label(c.silent[0]))
		return
	}
	missing := c.missing()
	all := c.choose(missing, "", voters, consensus.NoMember)
	n := len(all)
	for n > 0 && (len(voters)+n)%2 == 0 && n < missing {
		n--
	}
	switch {
	case len(all) == 0:
		a.Held = c.noStandby("to vote")
		return
	case n == 0:
		a.Held = fmt.Sprintf("%s stand no more failures than %d, and there is one standby learner only: add another",
			plural.Of(len(voters)+1, "voter"), len(voters))
		if c.view.MaxLearners == 1 {
			a.Held += ", after raising --max-learners"
		}
		return
	}
	in := all[:n]
	words := make([]string, n)
	for i, id := range in {
		words[i] = c.goal.names.word(id)
	}
	a.Remedy = fmt.Sprintf("%s can vote: `quorate member promote %s`", c.goal.names.list(in), typed.Line(words...))
	a.Spec = &Spec{Kind: KindChange, Promote: in}
}

// choose takes up to n stable standbys, cordoned ones last: one in the wanted zone first, then one in a zone without a voter.
func (c *diagnosis) choose(n int, wanted string, voters []consensus.MemberID, but consensus.MemberID) []consensus.MemberID {
	var zones []string
	for _, id := range voters {
		if id != but {
			zones = append(zones, c.zoneOf(id))
		}
	}
	rank := func(id consensus.MemberID) int {
		switch zone := c.zoneOf(id); {
		case zone == "":
			return 2
		case zone == wanted:
			return 0
		case !slices.Contains(zones, zone):
			return 1
		}
		return 2
	}
	marked := func(id consensus.MemberID) int { // of those that may not lead there should be few
		if c.goal.marks(id, false) {
			return 1
		}
		return 0
	}
	var chosen []consensus.MemberID
	left := pick(c.standbys(), func(id consensus.MemberID) bool { return c.memory.stable(c.policy, id) })
	for len(chosen) < n && len(left) > 0 {
		best := slices.MinFunc(left, func(a, b consensus.MemberID) int {
			return cmp.Or(cmp.Compare(marked(a), marked(b)), cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
		})
		chosen = append(chosen, best)
		zones = append(zones, c.zoneOf(best))
		left = slices.DeleteFunc(left, func(id consensus.MemberID) bool { return id == best })
	}
	slices.Sort(chosen)
	return chosen
}

// standbys lists the learners that are to stay learners.
func (c *diagnosis) standbys() []consensus.MemberID {
	return pick(c.goal.config.Learners, func(id consensus.MemberID) bool {
		m, _ := c.goal.config.Member(id)
		return !m.Promote && !m.Joining
	})
}

func (c *diagnosis) noStandby(purpose string) string {
	standbys := c.standbys()
	if n := len(standbys); n > 0 {
		return fmt.Sprintf("%s %s not been up and caught up for %s", c.goal.names.list(standbys), plural.Word(n, "has", "have"),
			seconds(c.policy.StableMS))
	}
	return fmt.Sprintf("there is no standby learner %s: add one with `quorate member add NAME --peer-urls URL --learner`",
		purpose)
}

// attempt returns the id of the next job for the same purpose, or says why it is not tried again.
func (c *diagnosis) attempt(going consensus.MemberID) (JobID, string) {
	for i := range careAttempts {
		id := careID(c.view.ID, going, i)
		at := slices.IndexFunc(c.jobs, func(j Job) bool { return j.ID == id })
		if at < 0 {
			return id, ""
		}
		if j := &c.jobs[at]; c.sinceEnd(j) < hourMS {
			return 0, fmt.Sprintf("job %v did the same and ended as %s less than an hour ago: %s", j.ID, j.State, j.Message)
		}
	}
	return 0, fmt.Sprintf("it was tried %d times: somebody must look", careAttempts)
}

// spent reports whether the last hour had as many changes as may be. A change counts until this leader has known of it for an
// hour: the leader before had another clock. So a new leader may wait for longer than it must, and never for less.
func (c *diagnosis) spent() bool {
	n := 0
	for i := range c.jobs {
		if j := &c.jobs[i]; ByCare(j) && c.sinceBegin(j) < hourMS {
			n++
		}
	}
	return c.policy.MaxPerHour > 0 && n >= c.policy.MaxPerHour
}

func (c *diagnosis) sinceBegin(j *Job) int64 {
	if c.view.Faults.CareByClocks {
		return c.view.Now - j.Created
	}
	age, _ := c.memory.ageOf(j.ID)
	return age.beganMS
}

func (c *diagnosis) sinceEnd(j *Job) int64 {
	if c.view.Faults.CareByClocks {
		return c.view.Now - j.Ended
	}
	age, _ := c.memory.ageOf(j.ID)
	return age.endMS
}

func (c *diagnosis) zoneOf(id consensus.MemberID) string {
	m, _ := c.view.Member(id)
	return m.Zone
}
