package reconfig_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/quorum"
	"github.com/quorate/quorate/internal/consensus/reconfig"
)

// Ensure that whatever is asked, in whatever configuration, a change that is made obeys the laws of the package, and so do
// what it leads to and its abort. The configurations are those that earlier changes lead to.
func TestNext_laws(t *testing.T) {
	made, refused := map[consensus.Protocol]int{}, map[consensus.RefusalReason]int{}
	for seed := range uint64(300) {
		w := &walk{rng: rand.New(rand.NewPCG(seed, 7))}
		w.now = config(ids{1, 2, 3, 4, 5, 6, 7}[w.rng.IntN(7):], nil)
		for i := range 40 {
			request, facts := w.request(), w.facts()
			before, current := roles(&w.now), w.now.Clone()
			change, reason := reconfig.Next(&w.now, consensus.ConfigID{Index: consensus.Index(i + 1), Term: 1}, &request, &facts)
			if after := roles(&w.now); after != before {
				t.Fatalf("seed %d: wrote to the current configuration: %s, was %s", seed, after, before)
			}
			if reason != consensus.ReasonNone {
				refused[reason]++
				continue
			}
			made[change.Protocol]++
			err := w.accept(&change, &facts)
			if err == nil {
				err = untouched(&current, &change.Config, request.Steps)
			}
			if err != nil {
				t.Fatalf("seed %d, change %d: %v\nfrom %s\nby %v %+v\nto %s", seed, i, err, before, change.Protocol, request.Steps,
					roles(&change.Config))
			}
		}
	}
	for protocol := consensus.ProtocolSingle; protocol.Known(); protocol++ {
		if made[protocol] < 100 {
			t.Errorf("only %d changes by %v", made[protocol], protocol)
		}
	}
	t.Logf("made %v, refused %v", made, refused)
}

// walk goes from configuration to configuration.
type walk struct {
	rng  *rand.Rand
	now  consensus.Config
	dead ids
}

// unused draws an id that no member ever had. Ids are drawn in the product, too, so that a new one may lie before those of others.
func (w *walk) unused() consensus.MemberID {
	for {
		id := consensus.MemberID(1 + w.rng.IntN(1000))
		if !w.now.Contains(id) && !slices.Contains(w.dead, id) {
			return id
		}
	}
}

func (w *walk) facts() reconfig.Facts {
	facts := reconfig.Facts{Tombstones: w.dead, Strict: w.rng.IntN(2) == 0, MaxLearners: w.rng.IntN(6)}
	for _, id := range w.now.IDs() {
		if w.rng.IntN(5) > 0 {
			facts.Active = append(facts.Active, id)
			if w.rng.IntN(4) > 0 {
				facts.CaughtUp = append(facts.CaughtUp, id)
			}
		}
	}
	return facts
}

func (w *walk) request() consensus.ChangeRequest {
	request := consensus.ChangeRequest{Protocol: consensus.Protocol(w.rng.IntN(6))}
	for range 1 + w.rng.IntN(4) {
		s := consensus.ChangeStep{Kind: consensus.ChangeKind(1 + w.rng.IntN(9))}
		known := w.now.IDs()
		switch {
		case s.Kind <= consensus.ChangeAddLearner && w.rng.IntN(8) > 0 && len(known) < 9:
			s.Member = member(w.unused())
			s.Member.Promote = w.rng.IntN(3) == 0
		case len(w.dead) > 0 && w.rng.IntN(8) == 0:
			s.Member = member(w.dead[w.rng.IntN(len(w.dead))])
		default:
			s.Member = member(known[w.rng.IntN(len(known))])
		}
		request.Steps = append(request.Steps, s)
	}
	return request
}

// accept checks a change and takes its way, sometimes back by an abort.
func (w *walk) accept(change *consensus.ConfigChange, facts *reconfig.Facts) error {
	first := &change.Config
	if err := w.sound(first); err != nil {
		return err
	}
	differ := reconfig.VotersChanged(&w.now, first)
	settled, tombs := first.Settle(), change.Tombs
	switch {
	case !first.IsJoint() && differ > 1:
		return fmt.Errorf("invariant 1: %d voters differ at once", differ)
	case first.IsJoint() && !slices.Equal(first.Outgoing, w.now.Voters):
		return fmt.Errorf("invariant 1: %v decide beside the new, not %v", first.Outgoing, w.now.Voters)
	case facts.Strict && differ > 0 && len(settled.Voters) > 2 && count(settled.Voters, facts.Active) < quorum.Majority(len(settled.Voters)):
		return fmt.Errorf("invariant 2: no majority of %v was heard", settled.Voters)
	}
	if first.IsJoint() {
		for _, id := range w.now.IDs() {
			if !first.Contains(id) {
				return fmt.Errorf("invariant 4: %v is not reached while both decide", id)
			}
		}
		left := reconfig.Leave(first, consensus.ConfigID{Index: 1}, change.Protocol)
		if roles(&left.Config) != roles(&settled) {
			return fmt.Errorf("left %s, settled %s", roles(&left.Config), roles(&settled))
		}
		if len(tombs) > 0 && change.Protocol != consensus.ProtocolActivate {
			return fmt.Errorf("%v removed by the first of two entries", tombs)
		}
		tombs = left.Tombs
	}
	if err := w.sound(&settled); err != nil {
		return err
	}
	for _, id := range w.now.IDs() {
		if settled.Contains(id) == slices.Contains(tombs, id) {
			return fmt.Errorf("invariant 3: %v is a member, or removed, not both: %v", id, tombs)
		}
	}
	if first.IsJoint() && w.rng.IntN(4) == 0 {
		back := reconfig.Abort(first, consensus.ConfigID{Index: 1}, change.Protocol)
		if !slices.Equal(back.Config.Voters, w.now.Voters) || back.Config.IsJoint() || len(back.Tombs) > 0 {
			return fmt.Errorf("aborted: %s, tombs %v", roles(&back.Config), back.Tombs)
		}
		w.now = back.Config
		return w.sound(&w.now)
	}
	w.dead = append(w.dead, tombs...)
	w.now = settled
	return nil
}

// untouched checks that steps leave the attributes of members that they do not name as they were.
func untouched(before, after *consensus.Config, steps []consensus.ChangeStep) error {
	for i := range before.Members {
		was := &before.Members[i]
		is, there := after.Member(was.ID)
		named := slices.ContainsFunc(steps, func(s consensus.ChangeStep) bool { return s.Member.ID == was.ID })
		if there && !named && !reflect.DeepEqual(is, *was) {
			return fmt.Errorf("%v, which no step names, was %+v and is %+v", was.ID, *was, is)
		}
	}
	return nil
}

// sound checks what every configuration is: sorted sets, a voter at least, one role for each member, no member from the dead.
func (w *walk) sound(c *consensus.Config) error {
	for _, set := range []ids{c.Voters, c.Outgoing, c.Learners, c.LearnersNext, c.IDs()} {
		if !slices.IsSorted(set) || len(slices.Compact(slices.Clone(set))) != len(set) {
			return fmt.Errorf("%v is no sorted set", set)
		}
		for _, id := range set {
			if !c.Contains(id) {
				return fmt.Errorf("%v has no attributes", id)
			}
			if slices.Contains(w.dead, id) {
				return fmt.Errorf("invariant 3: %v is back", id)
			}
		}
	}
	if len(c.Voters) == 0 {
		return fmt.Errorf("invariant 2: no voter")
	}
	for _, id := range c.IDs() {
		voter := slices.Contains(c.Voters, id)
		learns, next, out := c.IsLearner(id), slices.Contains(c.LearnersNext, id), slices.Contains(c.Outgoing, id)
		switch {
		case voter && (learns || next), learns && (next || out), next && !out:
			return fmt.Errorf("%v has two roles: %s", id, roles(c))
		case !voter && !learns && !next && !c.IsJoint():
			return fmt.Errorf("%v has no role: %s", id, roles(c))
		}
	}
	urls := map[string]bool{}
	for _, m := range c.Members {
		for _, url := range m.PeerURLs {
			if urls[url] {
				return fmt.Errorf("%s is taken twice", url)
			}
			urls[url] = true
		}
	}
	return nil
}

func count(set, in ids) int {
	n := 0
	for _, id := range set {
		if slices.Contains(in, id) {
			n++
		}
	}
	return n
}
