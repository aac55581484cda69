package membership

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/reconfig"
)

// maxDraftSteps bounds a rehearsal; every phase occurs once, and a hand-over before two of them; by protocol single there may
// be a change and a hand-over for each member that is named.
const maxDraftSteps = 16 + 2*maxMembers

// Draft returns the plan for s. It rehearses the job: Next decides each step, and reconfig foresees the configuration that
// follows it, so that the plan cannot differ from what the leader will do or refuse.
func Draft(s *Spec, v *View) Plan {
	p := Plan{Config: v.ID, Leader: v.Leader, Now: Measure(&v.Config, v.Fit())}
	if err := s.Validate(); err != nil {
		p.Blockers = strings.Split(err.Error(), "\n")
		return p
	}
	wanted := *s
	wanted.Expected = consensus.ConfigID{}
	if Next(&Job{Spec: wanted}, v).End == StateDone {
		p.Done = true
		return p
	}
	d := newDrafter(&wanted, v, &p)
	d.pending(s)
	if faults := d.goal().faults(true); len(faults) > 0 {
		p.Blockers = append(p.Blockers, faults...)
		return p
	}
	d.laggards()
	d.idle()
	d.yield()
	for range maxDraftSteps {
		if !d.step() {
			break
		}
	}
	d.settle()
	d.warn()
	if len(p.Blockers) == 0 {
		p.Undo = newGoal(s, v, nil).reverse()
	}
	return p
}

// drafter rehearses a job on a View of its own.
type drafter struct {
	plan  *Plan
	job   Job
	real  *View
	view  View // as it will be
	gone  []string
	moved bool // voters change, or a member goes
}

// newDrafter assumes that what is under way ends, and gives ids to newcomers.
func newDrafter(s *Spec, v *View, p *Plan) *drafter {
	d := &drafter{plan: p, real: v, view: *v}
	d.view.Config = v.Config.Settle()
	for i := range d.view.Config.Members { // newcomers are bound to their data directories when they are heard
		d.view.Config.Members[i].Storage = consensus.NoStorage
	}
	d.view.Settled, d.view.TermStarted = true, true
	d.view.Members = slices.Clone(v.Members)
	d.job = Job{Spec: *s, Config: d.view.ID}
	d.job.Spec.Add = slices.Clone(s.Add)
	arrivals := d.goal().arrivals
	for i := range d.job.Spec.Add {
		d.job.Spec.Add[i].ID = arrivals[i].ID
	}
	d.job.NoteNames(v)
	return d
}

func (d *drafter) goal() *goal { return newGoal(&d.job.Spec, &d.view, d.job.Names) }

func (d *drafter) block(words string) { d.plan.Blockers = append(d.plan.Blockers, words) }

func (d *drafter) warning(format string, args ...any) {
	d.plan.Warnings = append(d.plan.Warnings, fmt.Sprintf(format, args...))
}

// pending blocks while the leader would refuse any change.
func (d *drafter) pending(s *Spec) {
	v := d.real
	if s.Stale(v.ID) {
		d.block(expectedWords(v.ID, s.Expected))
	}
	if !v.TermStarted {
		d.block(fmt.Sprintf("%s has led for a moment only and a majority has not answered it yet: try again",
			d.goal().names.label(v.Leader)))
	}
	if !v.settled() {
		d.block(fmt.Sprintf("another change is under way (config %v by %v): wait until it is final", v.ID, v.Protocol))
	}
}

// laggards blocks learners that are to be promoted and have not caught up. Newcomers may lag: the job waits for them.
func (d *drafter) laggards() {
	for _, id := range d.job.Spec.Promote {
		m := d.member(id)
		if m == nil || !d.view.Config.IsLearner(id) || (m.Active && m.CaughtUp) {
			continue
		}
		g := d.goal()
		if unheard(*m) {
			d.block(fmt.Sprintf("%s cannot be promoted: %s", g.names.label(id), g.names.progress(m)))
		} else {
			d.block(fmt.Sprintf("%s has not caught up: %s; wait", g.names.label(id), g.names.progress(m)))
		}
		m.Active, m.CaughtUp, m.Started = true, true, true
	}
}

// idle warns of what is wanted and is so already.
func (d *drafter) idle() {
	g := d.goal()
	note := func(ids []consensus.MemberID, left []consensus.MemberID, state string) {
		for _, id := range ids {
			if !slices.Contains(left, id) {
				d.warning("%s %s already", g.names.label(id), state)
			}
		}
	}
	note(g.spec.Remove, g.remove, "is removed")
	note(g.spec.Promote, g.promote, "votes")
	note(g.spec.Demote, g.demote, "is a learner")
	note(g.spec.Cordon, g.cordon, "is cordoned")
	for _, id := range g.spec.Uncordon {
		if !g.marks(id, false) {
			d.warning("%s is not cordoned", g.names.label(id))
		}
	}
	for i := range g.spec.Update {
		if u := &g.spec.Update[i]; !g.differs(u) {
			d.warning("%s has these URLs already", g.names.label(u.ID))
		}
	}
}

func (d *drafter) member(id consensus.MemberID) *MemberView {
	for i := range d.view.Members {
		if d.view.Members[i].ID == id {
			return &d.view.Members[i]
		}
	}
	return nil
}

// step rehearses what Next says; false at the end.
func (d *drafter) step() bool {
	action := Next(&d.job, &d.view)
	switch {
	case action.Change != nil:
		d.change(action.Phase, action.Change)
	case action.Transfer != consensus.NoMember:
		g := d.goal()
		d.add(fmt.Sprintf("hand leadership from %s to %s", g.names.label(d.view.Leader), g.heirs()), "", nil)
		d.view.Leader = action.Transfer
	case action.Wait && (action.Phase == PhaseStart || action.Phase == PhaseSnapshot || action.Phase == PhaseCatchUp):
		d.stream()
	case action.Wait, action.End == StateFailed:
		d.block(strings.TrimPrefix(action.Message, "waits, for "))
		return false
	default:
		return false
	}
	return true
}

// add notes a step after the view has been moved on; during is nil if the step itself weakens nothing.
func (d *drafter) add(title, detail string, during *Strength) {
	step := PlanStep{Title: title, Detail: detail, After: Measure(&d.view.Config, d.view.Fit())}
	step.During = step.After
	if during != nil {
		step.During = *during
	}
	d.plan.Steps = append(d.plan.Steps, step)
}

// change rehearses one change of the configuration.
func (d *drafter) change(phase Phase, request *consensus.ChangeRequest) {
	g := d.goal()
	facts := g.view.facts()
	change, reason := reconfig.Next(&d.view.Config, d.view.ID, request, &facts)
	if reason != consensus.ReasonNone {
		d.block(g.refusal(reason, request)) // Next has asked the same, so this cannot be
		return
	}
	title, detail := g.titles(phase, &change)
	before := d.view.Config
	after := change.Config.Settle()
	under := &after // a single change is in force at once
	switch {
	case change.Config.IsJoint():
		under = &change.Config
	case change.Protocol == consensus.ProtocolApply:
		under = &before
	}
	during := Measure(under, d.view.Fit())
	voters := reconfig.VotersChanged(&before, &after) > 0
	if voters {
		d.plan.Protocol = change.Protocol
	}
	d.moved = d.moved || voters
	for _, id := range before.IDs() {
		if !after.Contains(id) {
			d.gone = append(d.gone, g.names.label(id))
			d.view.Tombstones = append(slices.Clone(d.view.Tombstones), id)
			d.moved = true
		}
	}
	if phase == PhaseMakeRoom {
		defer d.roomWarning(g)
	}
	d.view.Config = after
	d.view.ID.Index++
	d.follow()
	d.add(title, detail, &during)
	d.yield()
}

// yield rehearses that a leader hands over once it is cordoned.
func (d *drafter) yield() {
	if g := d.goal(); g.yields() {
		title := fmt.Sprintf("hand leadership from %s to %s", g.names.label(d.view.Leader), g.heirs())
		d.add(title, "it does so by itself", nil)
		d.view.Leader = g.successor()
	}
}

// follow makes the members of the view those of its configuration.
func (d *drafter) follow() {
	c := &d.view.Config
	members := make([]MemberView, 0, len(c.Members))
	for i := range c.Members {
		m := &c.Members[i]
		seen := d.member(m.ID)
		if seen == nil {
			seen = &MemberView{ID: m.ID, Name: m.Name, PeerURLs: m.PeerURLs, State: "probe"}
		}
		members = append(members, *seen)
	}
	d.view.Members = members
	if !slices.Contains(c.Voters, d.view.Leader) {
		if m := d.member(d.view.Leader); m != nil {
			m.Active, m.CaughtUp = true, true
		}
		d.view.Leader = c.Voters[0]
		for _, id := range c.Voters {
			if m := d.member(id); m.Active && m.CaughtUp {
				d.view.Leader = id
				break
			}
		}
	}
}

// titles name a change, and how it is made.
func (g *goal) titles(phase Phase, change *consensus.ConfigChange) (title, detail string) {
	switch phase {
	case PhaseMakeRoom:
		return "remove " + g.names.list(g.dueRoom()) + " first: its URL is taken over", ""
	case PhaseJoin:
		var words []string
		for _, a := range g.arrivals.missing() {
			urls := strings.Join(a.PeerURLs, ",")
			if a.Name != "" {
				urls = a.Name + " (" + urls + ")"
			}
			words = append(words, urls)
		}
		return "add " + join(words) + " as " + plural.Word(len(words), "a learner", "learners"),
			"learners count in no quorum"
	case PhaseCordon:
		return g.cordonMarks.words(&g.names, ""), ""
	}
	title = g.swapTitle()
	switch {
	case change.Config.IsJoint():
		title += " in one joint step"
		detail = fmt.Sprintf("%v: until it is final, both sets of voters decide", change.Protocol)
	default:
		title += " in one step"
		detail = change.Protocol.String()
	}
	if slices.Contains(slices.Concat(g.remove, g.demote), g.view.Leader) {
		detail += fmt.Sprintf("; %s leads and hands over once it has committed", g.names.label(g.view.Leader))
	}
	return title, detail
}

// stream rehearses that learners start and catch up.
func (d *drafter) stream() {
	g := d.goal()
	var ids, fresh []consensus.MemberID
	var details []string
	for _, m := range g.awaited() {
		ids = append(ids, m.ID)
		if !m.Started {
			fresh = append(fresh, m.ID)
		}
		if unheard(m) {
			d.warning("somebody must start %s: `%s`, with your flags for data, clients and TLS", g.names.label(m.ID),
				g.names.startCommand(m.ID))
		} else {
			details = append(details, g.names.progress(&m))
		}
	}
	title := "let " + g.names.list(ids) + " catch up with the log"
	if len(fresh) > 0 {
		title = "stream the state to " + g.names.list(ids) + ", then the log"
	}
	for _, id := range ids {
		if m := d.member(id); m != nil {
			m.Started, m.Active, m.CaughtUp = true, true, true
		}
	}
	d.add(title, strings.Join(details, "; "), nil)
}

func (d *drafter) settle() {
	if !d.moved || len(d.plan.Blockers) > 0 {
		return
	}
	title := "settle: the change is final"
	switch before := newGoal(&d.job.Spec, d.real, nil); {
	case len(d.gone) == 0:
	case before.inItsOwnPlace(): // "m3 may be switched off" would be read as the new m3
		title = "settle: the former " + join(d.gone) + " is gone for ever"
	default:
		title = "settle: " + join(d.gone) + " may be switched off"
	}
	d.add(title, "", nil)
}
