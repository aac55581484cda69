package workload

import (
	"errors"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/tally"
	"github.com/quorate/quorate/internal/kv"
)

// TermConfig is what a member tells native clients of the cluster, so that they can propose on the fast path by themselves.
type TermConfig struct {
	Leader consensus.MemberID
	Term   consensus.Term
	Config consensus.ConfigID
	Voters []consensus.MemberID
}

// offering is the first attempt of a write that is offered to all voters at once.
type offering struct {
	TermConfig
	tally tally.Tally
}

// One in so many offers does not reach the leader, as if the client had died in between, or does not reach a voter.
const leaderMissed, voterMissed = 8, 10

// offer offers a write to all voters, as any member sees them. Whatever does not come back is asked for as ever.
func (n *native) offer(w *write) bool {
	l := n.load
	source := l.target()
	if source == nil {
		return false
	}
	termConfig := source.TermConfig()
	leader := n.member(termConfig.Leader)
	if leader == nil {
		return false
	}
	w.offered = &offering{TermConfig: termConfig}
	w.offered.tally.Rules = l.mix.Tally
	w.offered.tally.Reset(termConfig.Voters)
	w.offered.tally.Open(w.id)
	w.attempts += 2 // a new leader may find it by its records: the first answer does not speak for it
	for _, id := range termConfig.Voters {
		if t := n.member(id); t != nil && id != termConfig.Leader && l.rng.IntN(voterMissed) > 0 {
			t.Offer(n.key, w.id.Session.Number, w.id.Sequence, w.command, termConfig, nil)
		}
	}
	life, heard := leader.Life(), false
	if l.rng.IntN(leaderMissed) > 0 {
		told := func(r kv.Result, err error) {
			heard = true
			if err == nil {
				n.end(w, r, true)
			} else {
				n.retry(w)
			}
		}
		abandon := leader.Offer(n.key, w.id.Session.Number, w.id.Sequence, w.command, termConfig, told)
		w.abandons = append(w.abandons, abandon)
	}
	n.watch(leader, life, func() bool { return w.over || heard }, func() { n.retry(w) })
	return true
}

// member returns a member that is up by its id.
func (n *native) member(id consensus.MemberID) Target {
	for _, t := range n.load.world.Targets() {
		if t.ID() == id && t.Life() != 0 {
			return t
		}
	}
	return nil
}

// hear counts what members say of the write that is offered.
func (n *native) hear(m consensus.Message) {
	w := n.offers
	if w == nil || w.over || w.offered == nil || m.Term != w.offered.Term || m.Config != w.offered.Config {
		return
	}
	for i := range m.Verdicts {
		v := &m.Verdicts[i]
		if v.Proposal != w.id || v.Refusal != consensus.RefusedNot {
			continue
		}
		var win tally.Decision
		won := false
		switch m.Kind {
		case consensus.MsgRecorded:
			win, won = w.offered.tally.Accepted(m.From, v.Attempt)
		case consensus.MsgFast:
			win, won = w.offered.tally.Answered(m.From, *v)
		}
		if won {
			n.won(w, win)
			return
		}
	}
}

// won ends a write that is decided, and perhaps applied nowhere yet.
func (n *native) won(w *write, win tally.Decision) {
	l := n.load
	win.Config = w.offered.Config
	l.suite.FastDecided(w.offered.Leader, []tally.Decision{win})
	l.Direct++
	result, err := kv.DecodeResult(win.Reply)
	if err != nil {
		l.suite.Report("fast-path", "a reply does not decode: "+err.Error())
		return
	}
	n.end(w, result, true)
}

// aborted tells whether a write was given up by a leader, who found records of it and nobody who proposed it: it never
// happens.
func aborted(r kv.Result) bool { return errors.Is(r.Err, kv.ErrAborted) }
