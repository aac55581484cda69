package decide

import (
	"fmt"
	"slices"
)

// recovery carries on with one that has begun: all members stop, the command runs on the survivor's claim, and then that
// starts alone. The others' claims are kept. Until the command was started the loss must be the one that was accepted: if a
// leader answers, the consent is taken out, or the survivor is lost, too, nothing is recovered.
func recovery(o *Observed) *Action {
	r := o.Kept.Recovery
	var command *Pod
	if i := slices.IndexFunc(o.Pods, func(p Pod) bool { return p.Recovers }); i >= 0 {
		command = &o.Pods[i]
	}
	switch {
	case (r == nil || r.Done || r.Failed != "") && command != nil:
		return endCommand(command, "the recovery has ended")
	case r != nil && r.Done:
		return leaveDropped(o)
	case r == nil || r.Failed != "":
		return nil
	case command != nil:
		return commandRuns(o, command)
	}
	if why := o.recoveryIsOff(); why != "" {
		return &Action{Kind: RecoverFails, Member: r.Survivor, Why: why + ": nothing was recovered"}
	}
	if !r.Stopping {
		return lossOnceMore(o)
	}
	run := *r
	if o.Want.Uncompared {
		run.Compare = nil
	}
	if action := o.stopMembers(&run); action != nil {
		return action
	}
	return &Action{Kind: RunRecovery, Member: r.Survivor, Recovery: &run, Why: "the spec accepts the loss"}
}

// stopMembers deletes the pods, and waits until they are gone. Nil: they are. The data of a claim that was deleted go with its
// pod, and may be more than anybody knew when the claim was deleted: only a consent to a loss without comparing covers that.
func (o *Observed) stopMembers(r *Recovery) *Action {
	goes := func(p *Pod) bool { return !p.Leaving && !o.Want.Uncompared && o.leaves(p.Member) }
	for i := range o.Pods {
		if p := &o.Pods[i]; !p.Leaving && !goes(p) {
			return &Action{Kind: DeletePod, Member: p.Member, Why: "the recovery of " + r.Survivor +
				" needs all members to stop"}
		}
	}
	for i := range o.Pods {
		// nothing tells whether a process on a lost node has ended: the new epoch fences it, but not on a claim that is needed
		p := &o.Pods[i]
		needed := p.Member == r.Survivor || slices.Contains(r.Compare, p.Member)
		switch {
		case p.NodeLost && !needed:
		case goes(p):
			return wait("%s stops before %s is recovered. Its claim was deleted, and its data go with its pod: delete the pod "+
				"if they are gone for ever", p.Member, r.Survivor)
		default:
			return wait("%s stops before %s is recovered", p.Member, r.Survivor)
		}
	}
	return nil
}

// recoveryIsOff says why a recovery whose command was not started is none any more.
func (o *Observed) recoveryIsOff() string {
	r := o.Kept.Recovery
	p := o.pod(r.Survivor)
	switch {
	case o.Cluster != nil:
		return "a leader answers again"
	case o.consentIsOut():
		return "spec.recovery is no longer the consent that began it"
	case o.unclaimed(r.Survivor):
		return "the claim of " + r.Survivor + " was deleted"
	case !o.Want.Uncompared && slices.ContainsFunc(r.Compare, o.unclaimed):
		return fmt.Sprintf("the claims of %v were deleted, which would be compared", o.NotCompared(r.Survivor, r.Compare))
	case p != nil && p.NodeLost && p.Stuck >= o.Want.ReplaceAfter:
		return "the node of " + r.Survivor + " is lost, too"
	}
	return ""
}

func (o *Observed) consentIsOut() bool {
	return o.Want.Consent == nil || *o.Want.Consent != o.Kept.Recovery.Accepted
}

// lossOnceMore looks again at what is left before the first member is stopped: a look at which nobody answered is no proof of
// a loss, and an older status may have been put back.
func lossOnceMore(o *Observed) *Action {
	r, loss := o.Kept.Recovery, LossOf(o)
	switch {
	case loss == nil || len(loss.Silent) > 0:
		return wait("members stop for the recovery of %s once the loss that was accepted is seen again", r.Survivor)
	case loss.Consent() != r.Accepted || loss.Survivor.Member != r.Survivor:
		return &Action{Kind: RecoverFails, Member: r.Survivor,
			Why: "the loss is another one than was accepted: nothing was recovered"}
	case !o.Want.Uncompared && slices.ContainsFunc(loss.Survivors, func(name string) bool {
		return name != r.Survivor && !slices.Contains(r.Compare, name)
	}):
		return &Action{Kind: RecoverFails, Member: r.Survivor,
			Why: fmt.Sprintf("%v survive, of which only %v would be compared: nothing was recovered", loss.Survivors,
				r.Compare)}
	}
	return &Action{Kind: StopMembers, Member: r.Survivor, Why: "the loss is the one that was accepted"}
}

// commandRuns waits for the end of the command. One that no node takes has not run, and may be taken back.
func commandRuns(o *Observed, p *Pod) *Action {
	r := o.Kept.Recovery
	switch {
	case p.Ended && p.Succeeded:
		return &Action{Kind: Recovered, Member: r.Survivor, Names: r.Leaves, Why: "the survivor was recovered"}
	case p.Ended:
		return &Action{Kind: RecoverFails, Member: r.Survivor, Why: p.Said}
	case p.Homeless && o.consentIsOut():
		return &Action{Kind: RecoverFails, Member: r.Survivor, Why: "spec.recovery is no longer the consent that began it: " +
			"nothing was recovered"}
	case p.Homeless && p.Compares && o.Want.Uncompared || p.Leaving:
		return endCommand(p, "the claims of the other survivors are not compared")
	case p.Homeless && p.Compares:
		return wait("no node takes the pod that recovers %s, with the claims of %v: they may hold acknowledged writes that it "+
			"lacks. Where their volumes reach no common node run `quorate recover` by hand, with --compare, or accept that "+
			"such writes are lost: spec.recovery.withoutComparing", r.Survivor, r.Compare)
	case p.Homeless:
		return wait("no node takes the pod that recovers %s", r.Survivor)
	}
	return wait("%s is recovered", r.Survivor)
}

func endCommand(p *Pod, why string) *Action {
	if p.Leaving {
		return wait("the pod of the recovery ends")
	}
	return &Action{Kind: EndRecovery, Member: p.Member, Why: why}
}
