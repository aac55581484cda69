package decide

import "slices"

const otherLoss = "the loss is another one than was accepted: nothing was recovered"

// loses tells whether the recovery gives up the member as one that was lost when it began.
func (r *Recovery) loses(name string) bool {
	return slices.ContainsFunc(r.Lost, func(l LostVoter) bool { return l.Member == name })
}

// stopLost deletes pods of voters that a recovery gives up, but on claims that go with them. One that no node had taken, and
// that started since, stays: it tells that, which nobody could see once its pod is gone.
func (o *Observed) stopLost(r *Recovery) *Action {
	for _, l := range r.Lost {
		p := o.pod(l.Member)
		if p != nil && !p.Leaving && !o.leaves(l.Member) && !(l.Homeless && o.cameBack(l)) {
			return &Action{Kind: DeletePod, Member: l.Member, Unstarted: l.Homeless,
				Why: "the command that leaves it out was started"}
		}
	}
	return nil
}

// cameBack tells whether a voter that was lost when the recovery began is not any more, or was not meanwhile.
func (o *Observed) cameBack(l LostVoter) bool {
	p := o.pod(l.Member)
	gone := p == nil && o.startsNever(l.Member) || p != nil && (p.NodeLost || p.Homeless)
	return !gone || o.life(l.Member) != l.Life
}

// ledMeanwhile tells whether so many of those that a recovery gave up were there again since its command was made that they may
// have led. Nobody was asked about what they acknowledged then. The survivor does not run before it has told; another one that
// survives on a node that is lost may.
func (o *Observed) ledMeanwhile(c *Claim) bool {
	r := o.Kept.Recovery
	if r == nil || r.Done || r.Survivor != c.Member || o.Want.Paused {
		return false
	}
	back := 0
	for _, l := range r.Lost {
		if o.cameBack(l) && !(l.Homeless && o.pod(l.Member) == nil) { // its pod went before it had started: see stopLost
			back++
		}
	}
	if back == 0 {
		return false
	}
	for _, name := range r.Compare {
		if o.pod(name) != nil {
			back++
		}
	}
	return back >= Quorum(len(r.Lost)+len(r.Compare)) // the survivor may be a learner
}

// lostCameBack names a voter that was lost when the recovery began, and is not any more or was not meanwhile: then a quorum
// may work, or have worked.
func (o *Observed) lostCameBack() string {
	if len(o.Kept.Recovery.Lost) == 0 {
		return "status.recovery does not say which voters were lost"
	}
	for _, l := range o.Kept.Recovery.Lost {
		if o.cameBack(l) {
			return l.Member + ", which was lost, came back"
		}
	}
	return ""
}

// survivorStill asks the survivor once more, for as long as it runs: other members must not stop because of a status that is
// older than what it has. Nil: it still has what the consent saw, or it was stopped.
func (o *Observed) survivorStill(r *Recovery) *Action {
	p := o.pod(r.Survivor)
	if p == nil || p.Leaving || p.Ended {
		return nil
	}
	i := slices.IndexFunc(o.Answers, func(a Answer) bool { return a.Member == r.Survivor })
	if i < 0 {
		return wait("members stop for the recovery of %s once it answers again. Take spec.recovery out to end it%s", r.Survivor,
			after(". ", o.why(r.Survivor)))
	}
	loss := Loss{Survivor: o.Answers[i]}
	for _, l := range r.Lost {
		loss.Lost = append(loss.Lost, l.Member)
	}
	if loss.ID = o.lossID(&loss); loss.Consent() != r.Accepted {
		return &Action{Kind: RecoverFails, Member: r.Survivor, Why: otherLoss}
	}
	return nil
}
