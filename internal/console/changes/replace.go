package changes

import (
	"context"
	"slices"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/console/observed"
	"github.com/quorate/quorate/internal/console/page"
	"github.com/quorate/quorate/internal/console/prose"
	"github.com/quorate/quorate/internal/ctl/wording"
	"github.com/quorate/quorate/internal/doctor"
	"github.com/quorate/quorate/internal/membership"
)

// The steps of a replacement. Up to its plan the query of the page says at which it is, from then on its job.
const (
	stepChoose = 1 + iota
	stepNewcomer
	stepPlan
	stepStart
	stepProgress
	stepDone
)

var stepNames = []string{"Choose the member", "Name the newcomer", "Read the plan", "Start the newcomer", "Wait", "Switch off"}

// stepKey in the query of the page goes back to a step whose answers are kept.
const stepKey = "step"

// replaceOf reads the query of a replacement, and tells at which step it is.
func replaceOf(r *page.Request) (a *asked, step int) {
	a = askedOf(r.Query)
	a.verb = "replace"
	switch {
	case len(a.members) == 0:
		return a, stepChoose
	case r.Query.Get(stepKey) == "2" || !a.begun() || a.check() != nil:
		return a, stepNewcomer
	}
	return a, stepPlan
}

// flowView are the steps, with the one at which the reader is.
type flowView struct{ Steps []flowStep }

type flowStep struct {
	Number    int
	Name, To  string // To: where to go back to; empty: nowhere
	Past, Now bool
}

func flowAt(now int, to map[int]string) flowView {
	v := flowView{}
	for i, name := range stepNames {
		v.Steps = append(v.Steps, flowStep{Number: i + 1, Name: name, To: to[i+1], Past: i+1 < now, Now: i+1 == now})
	}
	return v
}

func replaceSteps(_ context.Context, r *page.Request) (any, error) {
	a, step := replaceOf(r)
	to := map[int]string{}
	if step > stepChoose {
		to[stepChoose] = replacePath
	}
	if step > stepNewcomer {
		to[stepNewcomer] = a.address(replacePath) + "&" + stepKey + "=2"
	}
	return flowAt(step, to), nil
}

// chooseView are the members, with what speaks for replacing one.
type chooseView struct {
	Members   []suspectView
	Unjudged  bool // the doctor did not answer
	Zoned     bool
	Tolerates string
	Class     string
}

// suspectView is a member, and how it is.
type suspectView struct {
	choiceView
	State, Class, Contact, Zone string
	Lag                         uint64
	Leader                      bool
	Findings                    []findingView
}

type findingView struct {
	Severity, Class, Code string
	Sentence, Cure        []prose.Piece
}

func replaceChoose(ctx context.Context, r *page.Request) (any, error) {
	if _, step := replaceOf(r); step != stepChoose {
		return nil, page.ErrHidden
	}
	cluster, err := describe(ctx, r)
	if err != nil {
		return nil, err
	}
	found, judged := findings(ctx, r)
	v := chooseView{Unjudged: !judged, Tolerates: wording.Tolerance(cluster.GetStrength()),
		Class: strengthClass(cluster.GetStrength())}
	for _, m := range byName(cluster) {
		v.Members = append(v.Members, suspectOf(cluster, m, found))
		v.Zoned = v.Zoned || m.Zone != ""
	}
	return v, nil
}

func suspectOf(cluster *quoratepb.Cluster, m *quoratepb.Member, found []doctor.Finding) suspectView {
	v := suspectView{choiceView: choiceOf(cluster, m), State: observed.StateOf(m), Class: "good",
		Contact: wording.Contact(m, true), Zone: m.Zone, Lag: m.Lag, Leader: m.Leader}
	v.Is = wording.MemberRole(m)
	switch {
	case !m.Active && !m.Leader || m.State == membership.MarkedCorrupt:
		v.Class = "bad"
	case !m.CaughtUp && !m.Leader:
		v.Class = "warn"
	}
	for i := range found {
		if f := &found[i]; slices.Contains(f.Members, m.Name) {
			v.Findings = append(v.Findings, findingOf(f))
		}
	}
	return v
}

// findingClasses are the classes of the tags of severities.
var findingClasses = map[doctor.Severity]string{
	doctor.CannotWrite: "bad", doctor.NextFailure: "bad", doctor.SlowerThanIs: "warn",
}

func findingOf(f *doctor.Finding) findingView {
	return findingView{Severity: f.Severity.String(), Class: findingClasses[f.Severity], Code: string(f.Code),
		Sentence: prose.Of(f.Sentence), Cure: prose.Of(f.Cure)}
}

// collectPatience is how long the other members are waited for: a page must end, also where one of them hangs.
const collectPatience = 1600 * time.Millisecond

// findings is what the doctor finds by what all members observe. judged is false if it did not answer.
func findings(ctx context.Context, r *page.Request) (found []doctor.Finding, judged bool) {
	ctx, cancel := context.WithTimeout(ctx, collectPatience)
	defer cancel()
	all, err := observed.Ask(ctx, r)
	if err != nil {
		return nil, false
	}
	return doctor.Judge(all.Collected), true
}

// newcomerView is the form of the newcomer.
type newcomerView struct {
	Form     formView
	Old      suspectView
	Fault    string // of the answers, or of the member
	Unknown  bool   // there is no such member
	Disk     bool   // it lost its disk: `reset` is what its operator wants
	Unjudged bool
}

func replaceForm(ctx context.Context, r *page.Request) (any, error) {
	a, step := replaceOf(r)
	if step != stepNewcomer {
		return nil, page.ErrHidden
	}
	cluster, err := describe(ctx, r)
	if err != nil {
		return nil, err
	}
	v := newcomerView{}
	old, err := wording.FindMember(cluster, a.members[0])
	if err != nil {
		v.Fault, v.Unknown = sentence(err).Error(), true
		return v, nil
	}
	found, judged := findings(ctx, r)
	v.Unjudged = !judged
	v.Old = suspectOf(cluster, old, found)
	v.Disk = old.State == membership.LostItsDisk || old.State == membership.RolledBack
	v.Form.fill(a, cluster)
	if err := a.check(); err != nil && a.begun() {
		v.Fault = err.Error()
	}
	return v, nil
}

func replacePlan(ctx context.Context, r *page.Request) (any, error) {
	a, step := replaceOf(r)
	if step != stepPlan {
		return nil, page.ErrHidden
	}
	v, err := planOf(ctx, r, a, replacePath, beginPath)
	if err == nil {
		v.Edit = a.address(replacePath) + "&" + stepKey + "=2"
	}
	return v, err
}

func replaceCommand(r *page.Request) string {
	a, step := replaceOf(r)
	if step != stepPlan {
		return ""
	}
	return r.Command(a.command("--dry-run")...)
}

// followView is a replacement whose job was started.
type followView struct {
	jobView
	Fault   string
	Still   string
	Step    int
	Starts  []startsView    // newcomers that somebody must start
	Within  string          // how long they may take
	Outcome [][]prose.Piece // one clause each
	Failed  bool
	Removed string // the members that leave
	Admin   bool
}

// startsView is how a newcomer is started.
type startsView struct{ Name, Command, Note string }

func (c *changes) follow(ctx context.Context, r *page.Request) (*followView, error) {
	id, err := jobID(r.Query.Get("id"))
	if err != nil {
		return &followView{Fault: err.Error(), Step: stepDone}, nil
	}
	k, err := look(ctx, r)
	if err != nil {
		return nil, err
	}
	job := k.job(id)
	if job == nil {
		return &followView{Fault: gone(id), Step: stepDone}, nil
	}
	v := &followView{jobView: c.viewOf(r, k, job), Still: k.still, Admin: r.Admin, Step: stepProgress,
		Removed: k.names.List(job.GetSpec().GetRemove()), Within: page.Duration(within(job.GetSpec()))}
	switch {
	case v.Ended:
		v.Step, v.Still = stepDone, ""
		v.Outcome, v.Failed = prose.List(wording.Outcome(job, k.names)), membership.State(job.State) != membership.StateDone
	default:
		v.Starts = starts(k, job)
		before := []membership.Phase{"", membership.PhaseMakeRoom, membership.PhaseJoin, membership.PhaseStart}
		if len(job.GetSpec().GetAdd()) > 0 && slices.Contains(before, membership.Phase(job.Phase)) && !job.CancelAsked {
			v.Step = stepStart
		}
	}
	return v, nil
}

// within is how long newcomers may take to start.
func within(spec *quoratepb.ChangeSpec) time.Duration {
	if ms := spec.GetJoinWithinMs(); ms > 0 {
		return time.Duration(ms) * time.Millisecond
	}
	return time.Hour
}

// starts are the newcomers of a job that have not been heard yet, once they are members.
func starts(k *known, job *quoratepb.Job) (out []startsView) {
	for i, n := range job.GetSpec().GetAdd() {
		if i >= len(job.Newcomers) {
			break
		}
		awaited := k.cluster.GetConfig() == nil && membership.Phase(job.Phase) == membership.PhaseStart // as far as is known
		for _, m := range k.cluster.GetMembers() {
			awaited = awaited || m.Id == job.Newcomers[i] && !m.Started && !m.Active
		}
		if awaited {
			out = append(out, startsView{n.Name, wording.Start(k.cluster, n), wording.StartNote})
		}
	}
	return out
}

func (c *changes) followSteps(ctx context.Context, r *page.Request) (any, error) {
	v, err := c.follow(ctx, r)
	if err != nil {
		return nil, err
	}
	return flowAt(v.Step, nil), nil
}

func (c *changes) followNow(ctx context.Context, r *page.Request) (any, error) {
	v, err := c.follow(ctx, r)
	if err != nil {
		return nil, err
	}
	return v, nil
}
