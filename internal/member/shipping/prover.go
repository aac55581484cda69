package shipping

import (
	"cmp"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// A backup that was not proven is tried again sooner: by these parts of what the policy says.
const (
	failedPart  = 4
	untriedPart = 24
	// leastPause is between two tries in any case.
	leastPause = time.Minute
	// proposePause is between two proposals, of which the first may have been lost.
	proposePause = 5 * time.Second
	// DefaultProverAway is after how long another member is appointed when the leader does not hear the one that proves.
	DefaultProverAway = 6 * ReportEvery
	// DefaultProverPatience is how long a proof may take, where the policy does not say that one is due less often.
	DefaultProverPatience = 6 * time.Hour
)

// Prover decides for one leader when the backup is to be proven, and by which member. The zero value is ready; Rest ends a
// term.
type Prover struct {
	Away     time.Duration // zero: DefaultProverAway
	Patience time.Duration // zero: DefaultProverPatience
	Settle   time.Duration // zero: DefaultPatience; how long a leader waits for others before it proves itself

	led       time.Time // when this member first looked in its term; zero: not yet
	number    uint64    // of the try that was seen last
	since     time.Time // when it was first seen
	heard     time.Time // when the member that tries was heard last
	ended     int64     // when the last try ended, by the clock of that member
	seen      time.Time // when that was first seen
	appointed time.Time // when a member was appointed last, as this leader saw it; zero: not in this term
	proposed  time.Time // when this leader proposed that last
}

// Rest forgets what was seen: this member does not lead.
func (p *Prover) Rest() { *p = Prover{Away: p.Away, Patience: p.Patience, Settle: p.Settle} }

// Look returns the command to propose now, if there is one. now is of the leader's monotonic clock, wall its time in
// milliseconds of Unix time.
func (p *Prover) Look(now time.Time, wall int64, v *View) (command kv.Command, due bool) {
	proofs := &v.Row.Proofs
	if p.led.IsZero() {
		p.led, p.number, p.since, p.heard, p.seen = now, proofs.Number, now, now, now
	}
	if proofs.Number != p.number {
		p.number, p.since, p.heard = proofs.Number, now, now
		if proofs.Member != 0 {
			p.appointed = now
		}
	}
	if proofs.Last.At != p.ended {
		p.ended, p.seen = proofs.Last.At, now
	}
	if !p.due(now, wall, v) || !p.proposed.IsZero() && now.Sub(p.proposed) < proposePause {
		return command, false
	}
	to, found := p.choose(now, v)
	if !found {
		return command, false
	}
	p.proposed = now
	command.Backup = &kv.BackupOp{Kind: kv.BackupProve, Turn: proofs.Number, Member: uint64(to),
		Proof: kv.BackupProof{At: wall}}
	return command, true
}

// due reports whether a member is to be appointed.
func (p *Prover) due(now time.Time, wall int64, v *View) bool {
	policy, proofs := &v.Row.Policy, &v.Row.Proofs
	every := time.Duration(policy.VerifySeconds) * time.Second
	switch {
	case policy.Recipients != "": // no member can read it, and a try would only hide how an operator's ended
		return false
	case !policy.On || every == 0 || v.Row.Progress.Base.Index == 0 || v.Row.Progress.Trouble != "":
		return false
	case proofs.Member != 0:
		return p.lost(now, every, v)
	case proofs.Generation != v.Row.Generation:
		return true // none was tried since the policy was set
	}
	wait := every
	switch {
	case proofs.Last.Failed:
		wait /= failedPart
	case !proofs.Last.Proven:
		wait /= untriedPart
	}
	wait = max(wait, leastPause)
	// Clocks differ: one that is ahead makes no proof follow the other, and one that is behind does not end them.
	late := time.Duration(wall-proofs.Last.At)*time.Millisecond >= wait || now.Sub(p.seen) >= wait
	return late && (p.appointed.IsZero() || now.Sub(p.appointed) >= wait)
}

// lost reports whether the member that tries is gone, or takes too long.
func (p *Prover) lost(now time.Time, every time.Duration, v *View) bool {
	id := consensus.MemberID(v.Row.Proofs.Member)
	if !away(v, id) {
		p.heard = now
	}
	return !v.Status.Config.Contains(id) || now.Sub(p.heard) >= cmp.Or(p.Away, DefaultProverAway) ||
		now.Sub(p.since) >= max(every, cmp.Or(p.Patience, DefaultProverPatience))
}

// choose returns the member that proves best: one that neither ships nor leads, and that did not try last.
func (p *Prover) choose(now time.Time, v *View) (consensus.MemberID, bool) {
	type prover struct {
		id    consensus.MemberID
		ranks [4]bool // true is worse, the first counts most
	}
	ships, last := consensus.MemberID(v.Row.Member), consensus.MemberID(v.Row.Proofs.Last.Member)
	present := consensus.MemberID(v.Row.Proofs.Member) // it was lost
	var all []prover
	others := 0
	for i := range v.Status.Progress {
		at := &v.Status.Progress[i]
		member, there := v.Status.Config.Member(at.ID)
		if !there || at.Leaving {
			continue
		}
		others++
		if at.RecentActive && at.CaughtUp && !member.Promote && !member.Joining {
			all = append(all, prover{at.ID, [4]bool{at.ID == present, member.Cordoned, at.ID == ships, at.ID <= last}})
		}
	}
	if len(all) == 0 && (others == 0 || now.Sub(p.led) >= cmp.Or(p.Settle, DefaultPatience)) {
		return v.Status.ID, true
	}
	if len(all) == 0 {
		return consensus.NoMember, false
	}
	return slices.MinFunc(all, func(x, y prover) int {
		for i := range x.ranks {
			if order := compareBools(x.ranks[i], y.ranks[i]); order != 0 {
				return order
			}
		}
		return cmp.Compare(x.id, y.id)
	}).id, true
}
