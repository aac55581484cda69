package lab

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// Story is a script that leads to a known disaster, unless a rule holds.
type Story struct {
	Name   string
	Title  string // subject, with its source where there is one
	About  []string
	Rule   string   // the rule that prevents it: its switch drops this rule
	Break  string   // the switch
	Expect []Breach // at least one of these is found without the rule

	voters, learners int
	play             func(d *director)
}

// FindStory returns the story called name.
func FindStory(name string) (Story, error) {
	var known []string
	for _, s := range Stories() {
		if s.Name == name {
			return s, nil
		}
		known = append(known, s.Name)
	}
	return Story{}, fmt.Errorf("no story %q: there are %s", name, strings.Join(known, ", "))
}

// StoriesOf returns the stories of the dropped rules.
func StoriesOf(broken []string) []Story {
	return slices.DeleteFunc(Stories(), func(s Story) bool { return !slices.Contains(broken, s.Break) })
}

// Play plays a story, with its rule or without.
func (s Story) Play(safe bool) (*Report, error) { return s.perform(safe, false) }

// Record plays a story as Play does, and keeps a Tape.
func (s Story) Record(safe bool) (*Report, error) { return s.perform(safe, true) }

func (s Story) perform(safe, record bool) (*Report, error) {
	var broken breaks
	mode := "The rule is in force: " + s.Rule + "."
	if !safe {
		mode = "WITHOUT the rule: " + s.Rule + "."
		if s.Break != noAbort {
			var err error
			if broken, err = parseBreaks([]string{s.Break}); err != nil {
				return nil, err
			}
		}
	}
	w := newWorld(1, time.Millisecond, broken)
	if record {
		w.record()
	}
	w.start(s.voters, s.learners, s.voters+s.learners, false)
	w.begin(6 * w.delay)
	w.clients.told = true
	w.journal.opening("")
	d := &director{world: w, safe: safe}
	s.play(d)
	w.clients.closed = w.Now()
	w.laws.finish()
	r := w.report(s.Name + ": " + s.Title)
	r.About = append([]string{mode}, s.About...)
	r.Laws = w.brokenLaws()
	return r, nil
}

// Kept reports whether a story ended as it should: without a violation with the rule, and with an expected violation without
// it.
func (s Story) Kept(r *Report, safe bool) bool {
	if safe {
		return !r.Broken()
	}
	return slices.ContainsFunc(r.Violations, func(v Violation) bool { return slices.Contains(s.Expect, v.Breach) })
}

// noAbort is the break of a story in which no member or operator aborts a change that can be aborted.
const noAbort = "no-abort"

// director has the steps of scripts as methods. Clocks stand still in a script, so that no member campaigns by itself, until
// the script makes them tick.
type director struct {
	*world
	safe  bool
	asked uint64
}

func (d *director) say(format string, args ...any) {
	d.journal.add(KindNote, consensus.NoMember, "» "+format, args...)
}

// rest lets all messages under way arrive, and be answered, a few times.
func (d *director) rest() { d.runFor(12 * d.delay) }

func (d *director) moment(parts float64) { d.runFor(time.Duration(float64(d.delay) * parts)) }

func (d *director) split(groups ...[]memberID) {
	d.net.groups = groups
	d.journal.add(KindFault, consensus.NoMember, "network cut: %s", drawGroups(groups))
}

func (d *director) heal() {
	d.net.groups = nil
	d.journal.add(KindFault, consensus.NoMember, "network healed")
}

// change requests a change from a member, which leads.
func (d *director) change(id memberID, protocol consensus.Protocol, steps ...consensus.ChangeStep) {
	d.journal.add(KindRequest, id, "operator asks %v for %s by %s", id, describeSteps(steps), d.broken.named(protocol))
	d.asked++
	d.member(id).step(changeInput(1000+d.asked, &consensus.ChangeRequest{Steps: steps, Protocol: protocol}))
}

func (d *director) abort(id memberID) {
	d.journal.add(KindRequest, id, "operator asks %v to abort the change", id)
	d.asked++
	d.member(id).step(changeInput(1000+d.asked, &consensus.ChangeRequest{Abort: true}))
}

func step(kind consensus.ChangeKind, id memberID) consensus.ChangeStep {
	return consensus.ChangeStep{Kind: kind, Member: consensus.Member{ID: id}}
}

// write gives a write to a member.
func (d *director) write(id memberID) {
	d.clients.next++
	d.journal.add(KindRequest, id, "a client writes w%d at %v", d.clients.next, id)
	d.clients.give(d.member(id), d.clients.next)
}

// elect makes a member campaign among the members that receive its messages, which all consider their leader dead.
func (d *director) elect(id memberID) {
	d.campaign(id)
	d.rest()
}

// campaign is elect, but ends as soon as the member leads.
func (d *director) campaign(id memberID) {
	for _, m := range d.members {
		if m.running() && !d.net.cut(id, m.id) && m.status.Leader != consensus.NoMember && m.status.Role != raft.Leader {
			m.step(raft.Unreachable{Member: m.status.Leader})
		}
	}
	m := d.member(id)
	for range 4 { // members that are behind learn the term first
		m.step(raft.Campaign{})
		if d.runUntil(12*d.delay, func() bool { return m.status.Role == raft.Leader }) {
			return
		}
	}
	d.journal.add(KindNote, id, "%v is not elected", id)
}

// tick makes the clocks of members tick.
func (d *director) tick(count int, ids ...memberID) {
	for range count {
		for _, m := range d.members {
			if slices.Contains(ids, m.id) {
				m.step(raft.Tick{})
			}
		}
		d.runFor(d.pace.tick)
	}
}

// end connects all remaining members and makes their clocks tick. They must be able to go on: a last write is acknowledged.
func (d *director) end() {
	d.say("now all who are left hear each other again, and clocks go on")
	d.net.groups = nil
	for _, m := range d.members {
		m.restart()
	}
	everybody := numbered(len(d.members))
	d.clients.next++
	last := d.clients.next
	for range 8 {
		d.tick(10, everybody...)
		if leader := d.leader(); leader != nil && !d.clients.isAcked(last) {
			d.clients.give(leader, last)
		}
		d.rest()
		if d.clients.isAcked(last) && d.quiet() {
			return
		}
	}
	if !d.clients.isAcked(last) {
		d.laws.breach(consensus.NoMember, BreachUnavailable, "no write is acknowledged any more, whoever asks")
	}
}
