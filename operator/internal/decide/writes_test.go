package decide_test

import (
	"slices"

	"github.com/quorate/quorate/operator/internal/decide"
)

// write is one that was acknowledged, and what the same log has before it. Numbers of writes grow over all logs of a world.
type write struct {
	number int64
	term   uint64 // of the leader
	before *write
}

// last is the number of the last write of a log.
func (e *write) last() int64 {
	if e == nil {
		return 0
	}
	return e.number
}

func (e *write) lastTerm() uint64 {
	if e == nil {
		return 0
	}
	return e.term
}

// has tells whether the log has all that another one has.
func (e *write) has(other *write) bool {
	for e.last() > other.last() {
		e = e.before
	}
	return e == other
}

// configuration is that which a disk knows.
type configuration struct{ voters, learners []string }

// told is what the status told of a loss when it was reported first.
type told struct {
	survivor string
	log      *write // all that was acknowledged
}

// lineOf is that of which the data of a member are.
func (w *world) lineOf(name string) *line {
	if w.other != nil && w.other.voters[name] && w.other.epoch.Number == w.lived[name] {
		return w.other
	}
	return &w.line
}

// write lets each line that has a quorum acknowledge a write, which all of its members get that run.
func (w *world) write() {
	for _, l := range []*line{&w.line, w.other} {
		switch {
		case l == nil:
			continue
		case len(l.voters) == 0 || w.workingOf(l) < decide.Quorum(len(l.voters)):
			l.term = 0
			continue
		case l.term == 0:
			w.terms++
			l.term = w.terms
		}
		w.revision++
		l.log = &write{number: w.revision, term: l.term, before: l.log}
		for _, names := range []map[string]bool{l.voters, l.learners} {
			for name := range names {
				if w.on(l, name) {
					w.log[name], w.knows[name] = l.log, configuration{sorted(l.voters), sorted(l.learners)}
				}
			}
		}
	}
}

// accepts judges that a recovery is that of the loss that the spec accepts as it is now: that of the survivor which the status told,
// and nothing was acknowledged since. So what is lost was lost when the consent was asked for.
func (w *world) accepts(a decide.Action, breaks func(string, ...any)) {
	consent := w.want.Consent
	r := a.Recovery
	defer func() { w.passedOver(r, breaks) }()
	if a.Kind == decide.StopMembers {
		r = w.kept.Recovery
	}
	if consent == nil || *consent != r.Accepted {
		breaks("a majority is given up without a consent")
		return
	}
	switch loss, known := w.acked[consent.Loss]; {
	case !known:
		breaks("a consent counts for a loss that was never reported")
	case loss.survivor != a.Member:
		breaks("a consent to the recovery of %s counts for another member", loss.survivor)
	case w.lineOf(a.Member).log != loss.log:
		breaks("a consent counts for writes that were acknowledged after it was asked for")
	case consent.Revision != w.log[a.Member].last():
		breaks("a consent to what was written after %d counts for what was after %d", consent.Revision, w.log[a.Member].last())
	}
}

// passedOver judges that a recovery names all of its epoch whose disks have more than the survivor's.
func (w *world) passedOver(r *decide.Recovery, breaks func(string, ...any)) {
	own := w.lineOf(r.Survivor)
	for _, name := range sorted(w.disk) {
		c := w.claims[name]
		if !w.disk[name] || w.damaged[name] || c == nil || c.Leaving || c.Removed || c.LeftOut || w.lineOf(name) != own || w.lived[name] != w.lived[r.Survivor] ||
			w.log[r.Survivor].has(w.log[name]) || slices.Contains(w.kept.Dropped, name) {
			continue
		}
		if !slices.ContainsFunc(r.Lost, func(l decide.LostVoter) bool { return l.Member == name }) && !slices.Contains(r.Compare, name) {
			breaks("%s, which has writes up to %d, is passed over in epoch %d", name, w.log[name].last(), w.lived[name])
		}
	}
}

// leads judges that the survivor of a recovery does not begin to lead where those that were left out acknowledged more than the consent
// is to, as far as the operator can know: it remembers the recovery.
func (w *world) leads(a decide.Action, breaks func(string, ...any)) {
	r := w.kept.Recovery
	if !w.ran || a.Member != w.survivor() || r.Accepted != w.runs.Accepted || w.other == nil || w.asked[a.Member] {
		return
	}
	own, rest := &w.line, w.other
	if w.lineOf(a.Member) == w.other {
		own, rest = w.other, &w.line
	}
	loss := w.acked[w.runs.Accepted.Loss]
	if own.log == w.began && rest.log.last() > loss.log.last() && !own.log.has(rest.log) {
		breaks("%s leads without writes up to %d, and the consent is to those up to %d", a.Member, rest.log.last(), loss.log.last())
	}
}

// only judges that the data which go have nothing that no other disk has, whatever was accepted: a recovery may lose what its survivor
// lacks, and no claim is deleted on which that is.
func (w *world) only(name string, breaks func(string, ...any)) {
	if !w.disk[name] || w.log[name] == nil {
		return
	}
	for other, has := range w.disk {
		if c := w.claims[other]; other != name && has && !w.damaged[other] && c != nil && (!c.Leaving || w.up(other)) &&
			w.log[other].has(w.log[name]) {
			return
		}
	}
	breaks("the only copy of the writes up to %d goes", w.log[name].last())
}
