package lab

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/sim/check"
)

// Run plays one change.
func Run(o Options) (*Report, error) {
	if o.Delay == 0 {
		o.Delay = time.Millisecond
	}
	if o.Seed == 0 {
		o.Seed = 1
	}
	p, err := o.plan()
	if err != nil {
		return nil, err
	}
	broken, err := parseBreaks(o.Breaks)
	if err != nil {
		return nil, err
	}
	w := newWorld(o.Seed, o.Delay, broken)
	if o.Record {
		w.record()
	}
	w.start(o.From, len(p.joining), o.total(p), true)
	w.clients.fast = o.Fast
	w.clients.start()
	w.begin(20 * w.delay)
	w.journal.opening("; clients write all the time")
	w.stages.plan(o.Faults)
	requests := o.requests(p)
	w.After(10*w.delay, func() { w.operator.begin(o.Protocol, requests) })
	w.play(lastFault(o.Faults))
	w.laws.finish()
	r := w.report(o.title())
	r.Laws = w.brokenLaws()
	return r, nil
}

func (o *Options) title() string {
	parts := []string{fmt.Sprintf("from %d voters", o.From)}
	if o.To > 0 {
		parts[0] += fmt.Sprintf(" to %d", o.To)
	}
	broken, _ := parseBreaks(o.Breaks)
	parts[0] += " by " + broken.named(o.Protocol)
	if o.Fast {
		parts[0] += ", writes by the fast path"
	}
	for _, f := range o.Faults {
		parts = append(parts, f.String())
	}
	for _, b := range o.Breaks {
		if b == ProtocolSwitched {
			continue
		}
		parts = append(parts, "without the rule: "+b)
	}
	return strings.Join(parts, "; ")
}

// opening writes the opening line of a chart.
func (j *journal) opening(more string) {
	leader := j.w.leader()
	in := &leader.status
	j.add(KindNote, leader.id, "%v leads term %d; %s in force%s", leader.id, in.Term,
		j.w.names.full(in.ConfigID, &in.Config), more)
}

// play runs the world until the change is over, whatever its outcome. A cluster without a majority is stuck, as it must be:
// then all members start again and all links are whole, and the cluster must go on.
func (w *world) play(lastFault time.Duration) {
	patience := lastFault + w.tick*patienceTicks
	over := func() bool { return w.over(lastFault) }
	for calm := false; ; {
		if w.runUntil(patience, over) {
			w.runFor(12 * w.delay) // messages under way may still bring news
			if over() {
				break
			}
			continue
		}
		if calm {
			w.laws.breach(consensus.NoMember, BreachUnavailable, "nothing is settled although everybody runs again")
			break
		}
		calm, w.stuck = true, !w.clients.answeredSince(w.Now()-w.tick*patienceTicks/2)
		w.calm()
	}
	w.clients.stop()
	w.runUntil(w.tick*electionTicks, w.quiet)
}

// calm ends all faults.
func (w *world) calm() {
	w.journal.add(KindFault, consensus.NoMember, "nothing moves any more: all faults end, who crashed starts again")
	w.net.groups, w.net.lagging, w.net.noConfig, w.net.onlyOne = nil, nil, nil, 0
	for _, m := range w.members {
		m.restart()
	}
}

// brokenLaws returns the laws of the simulator that were broken. Before it asks, it applies the decisions of the fast path,
// which the chart does not show.
// By the experiment no entry says that a change is in force (ADR 63): that it counts as settled without one is no news.
func (w *world) brokenLaws() []check.Violation {
	w.journal.silent = true
	if w.clients.fast {
		w.runFor(w.tick * patienceTicks)
	}
	for _, m := range w.members {
		if m.running() {
			meta := m.store.meta()
			w.judge.Stored(m.id, &meta, slices.Sorted(slices.Values(m.store.tombs)))
		}
	}
	w.judge.Finish()
	return slices.DeleteFunc(w.judge.Violations, func(v check.Violation) bool {
		return w.broken.switched && v.Property == "settled"
	})
}

// over reports whether nothing more is to be seen: the operator is done, faults are over, and whoever can know does.
func (w *world) over(lastFault time.Duration) bool {
	if !w.operator.idle() || w.stages.timed > 0 || w.Now() < w.origin+lastFault {
		return false
	}
	return w.quiet()
}

// quiet reports whether the members that a leader reaches have applied as much as it has.
func (w *world) quiet() bool {
	leader := w.leader()
	if leader == nil || !leader.status.TermStarted || !leader.status.ConfigSettled {
		return false
	}
	for _, id := range leader.status.Config.IDs() {
		m := w.member(id)
		if m == leader || !m.running() || w.net.cut(leader.id, id) || slices.Contains(w.net.noConfig, id) {
			continue
		}
		if m.status.ConfigID != leader.status.ConfigID || !m.status.ConfigSettled {
			return false
		}
	}
	return true
}

// before returns the voters before a request.
func (r *request) before() []memberID {
	voters := slices.Clone(r.target)
	for _, step := range r.steps {
		if step.Kind == consensus.ChangePromote {
			voters = slices.DeleteFunc(voters, func(id memberID) bool { return id == step.Member.ID })
		} else {
			voters = append(voters, step.Member.ID)
		}
	}
	slices.Sort(voters)
	return voters
}
