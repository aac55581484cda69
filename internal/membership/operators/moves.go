package operators

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/quorum"
	"github.com/quorate/quorate/internal/membership"
)

// move is something that may happen.
type move struct {
	name string
	do   func(w *world)
}

// wish is a change that operators ask for.
type wish struct {
	title string
	spec  membership.Spec
}

func add(who, url string) membership.Spec {
	return membership.Spec{Add: []membership.Newcomer{{Name: who, PeerURLs: []string{url}}}}
}

func replace(id consensus.MemberID, who, url string) membership.Spec {
	s := add(who, url)
	s.Kind, s.Remove = membership.KindReplace, []consensus.MemberID{id}
	return s
}

func update(force string, moved ...consensus.MemberID) membership.Spec {
	s := membership.Spec{Force: force}
	for _, id := range moved {
		s.Update = append(s.Update, consensus.Member{ID: id, PeerURLs: []string{elsewhere(id)}})
	}
	return s
}

// elsewhere is where a member moves to, or where an operator thinks that it is.
func elsewhere(id consensus.MemberID) string { return fmt.Sprintf("http://elsewhere%d:2380", id) }

// wishes are what operators ask for, of members 2 and 3: member 1 stands for those that nothing happens to.
func wishes() []wish {
	return []wish{
		{"remove m2", membership.Spec{Remove: []consensus.MemberID{2}}},
		{"remove m3", membership.Spec{Remove: []consensus.MemberID{3}}},
		{"replace m3 by new3", replace(3, "new3", "http://new3:2380")},
		{"replace m3 by other3", replace(3, "other3", "http://other3:2380")},
		{"add m4", add("m4", "http://host4:2380")},
		{"add another m2", add("m2", "http://second2:2380")},
		{"update m3", update("", 3)},
		{"update m2 and m3", update("", 2, 3)},
		{"update m2 and m3 by force", update("somebody's reason", 2, 3)},
	}
}

// moves are all that may happen next. The leader does at once what it can, so that what is left waits for an operator.
func (w *world) moves(all []wish) []move {
	var list []move
	note := func(do func(w *world), format string, args ...any) {
		list = append(list, move{fmt.Sprintf(format, args...), do})
	}
	for i := range all {
		wanted := &all[i]
		if w.plan == nil {
			note(func(w *world) { w.plan = w.draft(wanted.spec, wanted.title) }, "an operator is shown the plan to %s",
				wanted.title)
		}
		note(func(w *world) {
			if p := w.draft(wanted.spec, wanted.title); p != nil {
				w.start(p.spec, p.voters, p.jobs)
			}
		}, "another operator plans to %s, and starts it", wanted.title)
		note(func(w *world) { w.start(wanted.spec, -1, 0) }, "a script starts, without a plan, to %s", wanted.title)
	}
	if w.plan != nil {
		note(func(w *world) {
			w.start(w.plan.spec, w.plan.voters, w.plan.jobs)
			w.plan = nil
		}, "the operator starts the plan to %s", w.plan.title)
	}
	for i := range w.jobs {
		if !w.jobs[i].State.Ended() && !w.jobs[i].CancelAsked {
			note(func(w *world) { w.cancel(i) }, "somebody cancels %q", w.jobs[i].Title())
		}
	}
	for _, id := range w.config.Learners {
		if known, _ := w.config.Member(id); w.process(id) == nil {
			note(func(w *world) { w.run(id) }, "somebody starts %s", known.Name)
		}
	}
	note(func(w *world) { w.anHour() }, "an hour passes")
	return append(list, w.accidents()...)
}

// accidents happen to members 2 and 3. None takes the majority: then only starting members would help.
func (w *world) accidents() (list []move) {
	note := func(do func(w *world), format string, args ...any) {
		list = append(list, move{fmt.Sprintf(format, args...), do})
	}
	for _, id := range []consensus.MemberID{2, 3} {
		p := w.process(id)
		if !w.config.Contains(id) {
			continue
		}
		without := slices.DeleteFunc(w.fit(), func(fit consensus.MemberID) bool { return fit == id })
		if among(w.config.Voters, without) >= quorum.Majority(len(w.config.Voters)) {
			what := map[bool]string{true: "dies", false: "comes back"}[p.up]
			note(func(w *world) { w.process(id).up = !p.up }, "%s %s", name(id), what)
			if p.up && !p.old {
				note(func(w *world) { w.process(id).old = true }, "%s comes back with an old data directory", name(id))
			}
			if p.up && p.url == home(id) {
				note(func(w *world) { w.process(id).url = elsewhere(id) }, "%s restarts at other peer URLs", name(id))
			}
		}
		note(func(w *world) { w.askEtcd(id) }, "somebody updates the peer URLs of %s by etcd's call", name(id))
		note(func(w *world) { w.join("joined", "http://joined:2380", id) }, "a process joins and replaces %s", name(id))
	}
	note(func(w *world) { w.joinAsLearner("m3", "http://m3again:2380") }, "a process that calls itself m3 joins")
	note((*world).announce, "members that moved tell it")
	return list
}

// run starts the process of a newcomer, if it is one.
func (w *world) run(id consensus.MemberID) {
	known, ok := w.config.Member(id)
	if ok && w.process(id) == nil {
		w.processes = append(w.processes, process{id: id, up: true, url: known.PeerURLs[0]})
	}
}

// askEtcd is etcd's MemberUpdate, which is no job.
func (w *world) askEtcd(id consensus.MemberID) {
	w.updateTo(id, elsewhere(id), membership.Lenient)
}
