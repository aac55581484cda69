package operators

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/quorum"
	"github.com/quorate/quorate/internal/membership"
)

// changed judges the configuration that a change led to, from one whose majority worked.
func (w *world) changed(moves bool, request *consensus.ChangeRequest) {
	switch {
	case w.works():
	case moves:
		w.breaks("addresses: after %v only %d of %d voters are where somebody dials them, and work", request.Steps,
			among(w.config.Voters, w.fit()), len(w.config.Voters))
	default:
		w.breaks("writes go on: %d of %d voters work after %v", among(w.config.Voters, w.fit()), len(w.config.Voters),
			request.Steps)
	}
	if n := len(w.config.Voters); n > w.budget {
		w.breaks("voters: there are %d, and nobody asked for more than %d: %s", n, w.budget, w.titles())
	}
	for i := range w.config.Members {
		for k := range i {
			if a, b := &w.config.Members[i], &w.config.Members[k]; a.Name != "" && a.Name == b.Name {
				w.breaks("names: members %v and %v are both called %s", b.ID, a.ID, a.Name)
			}
		}
	}
}

// ended judges a job that has ended.
func (w *world) ended(j *job) {
	if n := len(w.config.Voters); j.State == membership.StateDone && j.unknown && n < j.promised {
		w.breaks("plan: %q is done with %d voters, its plan showed %d, and nobody told its operator of the jobs before it: %s",
			j.Title(), n, j.promised, w.titles())
	}
}

// outlook judges what can become of a world without an operator's help, or with only so much of it.
func (w *world) outlook() string {
	if w.leader() == consensus.NoMember {
		return w.broken // nothing can be done but to start members
	}
	for _, look := range []func(*world){(*world).passing, (*world).expiring, (*world).moving} {
		if c := w.clone(); w.broken == "" {
			look(c)
			w.broken = c.broken
		}
	}
	return w.broken
}

// cures reports whether a job does more than add members.
func cures(s *membership.Spec) bool {
	return len(s.Remove)+len(s.Demote)+len(s.Update) > 0
}

// passing starts the newcomers of one job that cures: it must not wait for those of others.
func (w *world) passing() {
	for i := range w.jobs {
		if w.jobs[i].State.Ended() || !cures(&w.jobs[i].Spec) {
			continue
		}
		c := w.clone()
		for range 4 {
			c.drive()
			for _, n := range c.jobs[i].Spec.Add {
				c.run(n.ID)
			}
		}
		held := slices.IndexFunc(c.jobs[:i], func(j job) bool { return !j.State.Ended() && j.Phase == membership.PhaseStart })
		if c.jobs[i].State == membership.StateQueued && held >= 0 {
			w.breaks("queue: %q waits until somebody starts the newcomer of %q", c.jobs[i].Title(), c.jobs[held].Title())
			return
		}
	}
}

// expiring lets hours pass in which no operator starts anything; then all jobs are cancelled.
func (w *world) expiring() {
	for range 4 {
		w.drive()
		w.anHour()
	}
	w.drive()
	for i := range w.jobs {
		if j := &w.jobs[i]; !j.State.Ended() && j.Phase == membership.PhaseStart {
			w.breaks("queue: after four hours %q still waits for somebody to start its newcomer", j.Title())
		}
	}
	for i := range w.jobs {
		w.cancel(i)
	}
	w.drive()
	if slices.ContainsFunc(w.jobs, func(j job) bool { return !j.State.Ended() }) {
		w.breaks("queue: all jobs were cancelled, and not all ended: %s", w.titles())
	}
}

// moving lets members tell where they are: then all that are up must be found.
func (w *world) moving() {
	for range len(w.processes) + 1 {
		w.announce()
	}
	for i := range w.processes {
		p := &w.processes[i]
		if w.config.Contains(p.id) && p.up && !w.heard(p.id) {
			w.breaks("addresses: %s is at %s, and nobody finds it there", name(p.id), p.url)
		}
	}
	if among(w.config.Voters, w.fit()) < quorum.Majority(len(w.config.Voters)) {
		w.breaks("addresses: only %d of %d voters are found", among(w.config.Voters, w.fit()), len(w.config.Voters))
	}
}
