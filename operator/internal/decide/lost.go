package decide

import "slices"

const otherLoss = "the loss is another one than was accepted: nothing was recovered"

// loses tells whether the recovery gives up the member as one that was lost when it began.
func (r *Recovery) loses(name string) bool {
	return slices.ContainsFunc(r.Lost, func(l LostVoter) bool { return l.Member == name })
}

// stopLost deletes pods of voters that a recovery gives up, but on claims that go with them.
func (o *Observed) stopLost(r *Recovery) *Action {
	for _, l := range r.Lost {
		if p := o.pod(l.Member); p != nil && !p.Leaving && !o.leaves(l.Member) {
			return &Action{Kind: DeletePod, Member: l.Member, Why: "the command that leaves it out was started"}
		}
	}
	return nil
}

// lostCameBack names a voter that was lost when the recovery began, and is not any more or was not meanwhile: then a quorum
// may work, or have worked.
func (o *Observed) lostCameBack() string {
	if len(o.Kept.Recovery.Lost) == 0 {
		return "status.recovery does not say which voters were lost"
	}
	for _, l := range o.Kept.Recovery.Lost {
		p := o.pod(l.Member)
		gone := p == nil && o.startsNever(l.Member) || p != nil && (p.NodeLost || p.Homeless)
		if !gone || o.life(l.Member) != l.Life {
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
