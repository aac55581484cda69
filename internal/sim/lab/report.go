package lab

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/sim/check"
)

// Counts are the numbers of messages by kind.
type Counts struct{ Messages, Appends, Votes, Notices int }

func (c *Counts) note(kind consensus.MessageKind) {
	c.Messages++
	switch kind {
	case consensus.MsgAppend:
		c.Appends++
	case consensus.MsgPreVote, consensus.MsgPreVoteReply, consensus.MsgVote, consensus.MsgVoteReply:
		c.Votes++
	case consensus.MsgHeartbeat:
		c.Notices++
	}
}

// Report is the result of a run.
type Report struct {
	Title      string
	About      []string // for the top of a story: whether its rule is in force, and what the story shows
	Records    []Record
	Acks       []time.Duration
	Violations []Violation
	Laws       []check.Violation // of the simulator; shown if none of Violations is
	Outcome    string            // "new configuration", "old configuration", "between" or "nobody leads"
	InForce    string            // at the end
	Leaders    string
	Acked      int
	Fast       bool // clients offered their writes to all voters
	Early      int  // writes that a superquorum decided
	Lost       int
	Stall      time.Duration
	StallAt    time.Duration
	Done       time.Duration // time from the request; zero: never
	Settled    time.Duration
	Counts     Counts
	Members    int
	Stuck      bool  // no write was acknowledged any more, until all faults ended
	Tape       *Tape // if it was asked for
	delay      time.Duration
	round      time.Duration // to another member, to its disk, and back
	asked      bool
	missed     []string // faults that never struck
	took       time.Duration
}

// Broken reports whether a law was broken.
func (r *Report) Broken() bool { return len(r.Violations)+len(r.Laws) > 0 }

func (w *world) report(title string) *Report {
	r := &Report{
		Title: title, Records: w.journal.soFar(), Acks: w.journal.acks, Violations: w.laws.violations, Counts: w.counts,
		Members: len(w.members), Stuck: w.stuck, Tape: w.recorder.finish(),
		delay: w.delay, round: 2*w.delay + w.pace.sync, took: w.Now() - w.origin,
		Acked: len(w.clients.acked), Fast: w.clients.fast, Early: w.clients.early, asked: len(w.operator.requests) > 0,
	}
	var terms []string
	for _, led := range w.laws.leaders {
		terms = append(terms, fmt.Sprintf("term %d: %v", led.term, led.leader))
	}
	r.Leaders = strings.Join(terms, ", ")
	r.Stall, r.StallAt = w.clients.stall()
	r.StallAt -= w.origin
	if last := w.mostAdvanced(); last != nil {
		r.InForce = w.names.full(last.status.ConfigID, &last.status.Config)
		for _, a := range w.clients.acked {
			if !last.keeps(a.number) {
				r.Lost++
			}
		}
	}
	if o := &w.operator; o.doneAt > 0 {
		r.Done = o.doneAt - o.askedAt
		if o.settledAt > 0 && o.phase == phaseSettled {
			r.Settled = o.settledAt - o.askedAt
		}
	}
	r.Outcome = w.outcome()
	for _, f := range w.stages.faults {
		r.missed = append(r.missed, f.String())
	}
	return r
}

// outcome says which configuration is in force in the end.
func (w *world) outcome() string {
	leader := w.leader()
	if leader == nil || !leader.status.TermStarted {
		return "nobody leads"
	}
	in := &leader.status
	requests := w.operator.requests
	switch {
	case len(requests) == 0 || in.Config.IsJoint():
		return "between"
	case sameVoters(in, requests[len(requests)-1].target):
		return "new configuration"
	case sameVoters(in, requests[0].before()):
		return "old configuration"
	}
	return "between"
}

func sameVoters(in *raft.Status, ids []memberID) bool { return list(in.Config.Voters) == list(ids) }

// summary writes the summary of a run for a reader.
func (r *Report) summary(out io.Writer) {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(out, "%-11s %s\n", name, fmt.Sprintf(format, args...))
	}
	if r.asked {
		line("outcome", "%s, %s", r.Outcome, r.InForce)
		if r.Done > 0 {
			settled := "not settled"
			if r.Settled > 0 {
				settled = fmt.Sprintf("settled after %s ms (%.1f)", ms(r.Settled), r.rounds(r.Settled))
			}
			line("change", "done %s ms after it was logged (%.1f rounds: there, to the disk, and back), %s",
				ms(r.Done), r.rounds(r.Done), settled)
		}
	} else {
		line("in force", "%s", r.InForce)
	}
	line("leaders", "%s", r.Leaders)
	line("writes", "%d acknowledged, %d lost; none acknowledged for %s ms from %s ms on, at worst", r.Acked, r.Lost,
		ms(r.Stall), ms(r.StallAt))
	if r.Fast {
		line("fast path", "%d writes decided by a superquorum", r.Early)
	}
	line("messages", "%d in %s ms: %d appends, %d commit notices, %d of elections", r.Counts.Messages, ms(r.took),
		r.Counts.Appends, r.Counts.Notices, r.Counts.Votes)
	for _, missed := range r.missed {
		line("note", "%s never happened: the change did not get there", missed)
	}
	switch {
	case !r.Broken():
		line("violations", "none")
	case len(r.Violations) == 0:
		line("VIOLATION", "%s: %s", r.Laws[0].Property, r.Laws[0].Detail)
	}
	for _, v := range r.Violations {
		line("VIOLATION", "%v", v)
	}
}

func (r *Report) rounds(d time.Duration) float64 { return float64(d) / float64(r.round) }

func ms(d time.Duration) string {
	return fmt.Sprintf("%.1f", float64(d)/float64(time.Millisecond))
}
