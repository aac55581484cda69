package decide

import (
	"fmt"
	"slices"
)

// recovery carries on with one that has begun: all members stop, the command runs on the survivor's claim, and then that
// starts alone. The others' claims are kept. Until the command was started the loss must be the one that was accepted: if a
// leader answers, a lost voter comes back, the consent is taken out, or the survivor is lost, too, nothing is recovered.
func recovery(o *Observed) *Action {
	r := o.Kept.Recovery
	var command *Pod
	if i := slices.IndexFunc(o.Pods, func(p Pod) bool { return p.Recovers }); i >= 0 {
		command = &o.Pods[i]
	}
	runs := r != nil && !r.Done && r.Failed == ""
	c := o.tried()
	if r != nil && !r.Done && !runs && len(r.Lost) > 0 && o.Want.Paused { // what happens to these is done by hand, or may be
		return &Action{Kind: RecoverFails, Member: r.Survivor, Forget: true, Why: r.Failed}
	}
	if o.leadBeside(c, command) {
		return o.leaveOut(c)
	}
	if command != nil && o.usedNoMore(command.Member) && !slices.ContainsFunc(o.Claims, func(c Claim) bool {
		return c.Member == command.Member && len(c.Leaves) > 0
	}) {
		action := o.endCommand(command, "its claim is used no more")
		if action.Kind != Wait || o.Cluster == nil || o.holds(command) {
			return action
		}
		command = nil // it may run for long on a lost node, and holds up nothing else
	}
	switch {
	case command != nil && runs && command.Member == r.Survivor:
		return commandRuns(o, command)
	case command != nil && command.Started && !command.Ended && !command.Leaving && !o.stranded(command):
		return wait("the pod %s recovers %s, which the status does not know", command.Name, command.Member)
	case command != nil:
		return o.endCommand(command, "the recovery has ended")
	case c != nil:
		action := o.survivorTells(c)
		if runs && o.Want.Paused && !slices.Contains(whilePaused, action.Kind) { // it shall not go on after the pause
			return &Action{Kind: RecoverFails, Member: r.Survivor, Why: "spec.paused is set: after the pause " + c.Member +
				" tells whether it was recovered"}
		}
		return action
	case r != nil && r.Done:
		return leaveDropped(o)
	case !runs:
		return nil
	}
	if o.usedNoMore(r.Survivor) { // the status is an older one
		return &Action{Kind: RecoverFails, Member: r.Survivor, Forget: true,
			Why: "a leader answered without it, or may have, and its claim is used no more"}
	}
	if why := o.recoveryIsOff(); why != "" {
		return &Action{Kind: RecoverFails, Member: r.Survivor, Why: why + ": nothing was recovered"}
	}
	if !r.Stopping {
		return lossOnceMore(o)
	}
	if action := o.survivorStill(r); action != nil {
		return action
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

// stopMembers deletes the pods, the survivor's last, and waits until they are gone. Nil: they are. Pods of lost voters stay as
// they are: if one comes back that ends the recovery. The data of a claim that was deleted go with its pod, and may be more
// than anybody knew when the claim was deleted: only a consent to a loss without comparing covers that.
func (o *Observed) stopMembers(r *Recovery) *Action {
	goes := func(p *Pod) bool { return !p.Leaving && !o.Want.Uncompared && o.leaves(p.Member) }
	for _, survivor := range []bool{false, true} {
		for i := range o.Pods {
			p := &o.Pods[i]
			if !p.Leaving && !goes(p) && !r.loses(p.Member) && (p.Member == r.Survivor) == survivor {
				return &Action{Kind: DeletePod, Member: p.Member, Why: "the recovery of " + r.Survivor +
					" needs all members to stop"}
			}
		}
	}
	for i := range o.Pods {
		// nothing tells whether a process on a lost node has ended: the new epoch fences it, but not on a claim that is needed
		p := &o.Pods[i]
		needed := p.Member == r.Survivor || slices.Contains(r.Compare, p.Member)
		switch {
		case p.NodeLost && !needed, r.loses(p.Member):
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
	case o.Want.Paused:
		return "spec.paused is set"
	case o.void(o.Kept.Recovery.Accepted):
		return "its consent is void"
	case o.consentIsOut():
		return "spec.recovery is no longer the consent that began it"
	case o.unclaimed(r.Survivor):
		return "the claim of " + r.Survivor + " was deleted"
	case !o.Want.Uncompared && slices.ContainsFunc(r.Compare, o.unclaimed):
		return fmt.Sprintf("the claims of %v were deleted, which would be compared", o.NotCompared(r.Survivor, r.Compare))
	case p != nil && p.NodeLost && p.Stuck >= o.Want.ReplaceAfter:
		return "the node of " + r.Survivor + " is lost, too"
	}
	var lost []string // of which nobody knows whether their processes have ended
	for _, name := range r.Compare {
		if p := o.pod(name); p != nil && p.NodeLost && p.Stuck >= o.Want.ReplaceAfter && !o.Want.Uncompared {
			lost = append(lost, name)
		}
	}
	if len(lost) > 0 {
		return fmt.Sprintf("the nodes of %v, which would be compared, are lost, too", lost)
	}
	return o.lostCameBack()
}

func (o *Observed) consentIsOut() bool {
	return o.Want.Consent == nil || *o.Want.Consent != o.Kept.Recovery.Accepted
}

// lossOnceMore looks again at what is left before the first member is stopped: a look at which nobody answered is no proof of
// a loss, and an older status may have been put back.
func lossOnceMore(o *Observed) *Action {
	r, loss := o.Kept.Recovery, LossOf(o)
	switch {
	case loss == nil || len(loss.Silent) > 0 || len(loss.Ahead) > 0:
		if action := restoreProcesses(o); action != nil { // which nobody else does while a recovery waits
			return action
		}
		return wait("members stop for the recovery of %s once the loss that was accepted is seen again. Take spec.recovery "+
			"out to end it", r.Survivor)
	case loss.Consent() != r.Accepted || loss.Survivor.Member != r.Survivor:
		return &Action{Kind: RecoverFails, Member: r.Survivor,
			Why: otherLoss}
	case !o.Want.Uncompared && slices.ContainsFunc(loss.Survivors, func(name string) bool {
		return name != r.Survivor && !slices.Contains(r.Compare, name)
	}):
		return &Action{Kind: RecoverFails, Member: r.Survivor,
			Why: fmt.Sprintf("%v survive, of which only %v would be compared: nothing was recovered", loss.Survivors,
				r.Compare)}
	}
	return &Action{Kind: StopMembers, Member: r.Survivor, Why: "the loss is the one that was accepted"}
}

// commandRuns waits for the end of the command. One whose container was not started, as far as anybody has told, may be taken
// back. Whatever its pod tells, the survivor tells afterwards what the command did.
func commandRuns(o *Observed, p *Pod) *Action {
	r := o.Kept.Recovery
	if p.Ended && !p.Succeeded {
		return &Action{Kind: RecoverFails, Member: r.Survivor, Why: "the command failed: " + p.Said}
	}
	// the others are left out, or will be: none shall serve clients should it come back
	if p.Started && !p.Leaving && o.Cluster == nil {
		if action := o.stopLost(r); action != nil {
			return action
		}
	}
	switch {
	case p.Ended && !p.Leaving:
		return o.endCommand(p, "it ended well")
	case p.Leaving, o.stranded(p):
		return o.endCommand(p, "")
	case p.Started:
		return wait("%s is recovered", r.Survivor)
	}
	if why := o.recoveryIsOff(); why != "" {
		return o.endCommand(p, why)
	}
	switch {
	case p.Compares && o.Want.Uncompared:
		return o.endCommand(p, "the claims of the other survivors are not compared")
	case !p.Compares && len(r.Compare) > 0 && !o.Want.Uncompared:
		return o.endCommand(p, "the claims of the other survivors are compared")
	case p.Template != o.Want.Template:
		return o.endCommand(p, "the spec changed")
	case p.Homeless && p.Compares:
		return wait("no node takes the pod that recovers %s, with the claims of %v: they may hold acknowledged writes that it "+
			"lacks. Where their volumes reach no common node run `quorate recover` by hand, with --compare, or accept that "+
			"such writes are lost: spec.recovery.uncomparedLoss: %s", r.Survivor, r.Compare, r.Accepted.Loss)
	case p.Homeless:
		return wait("no node takes the pod that recovers %s%s", r.Survivor, after(": ", p.Waits))
	}
	return wait("the pod %s, which recovers %s, has not started%s. Its events say more; another spec makes another pod, and "+
		"without spec.recovery nothing is recovered", p.Name, r.Survivor, after(": ", p.Waits))
}

// stranded tells whether a pod is on a node that is lost, so that nobody knows what it does.
func (o *Observed) stranded(p *Pod) bool { return p.NodeLost && p.Stuck >= o.Want.ReplaceAfter }

// holds tells whether a command uses claims of members that the leader has, or may.
func (o *Observed) holds(command *Pod) bool {
	r := o.Kept.Recovery
	return command.Compares && (r == nil || r.Survivor != command.Member || slices.ContainsFunc(r.Compare, o.Cluster.named))
}

// endCommand deletes the pod of a recovery. A claim that was deleted goes with it: that is not for the operator to do.
func (o *Observed) endCommand(p *Pod, why string) *Action {
	r := o.Kept.Recovery
	uses := []string{p.Member}
	if r != nil && !r.Done && p.Compares {
		uses = append(uses, r.Compare...)
	}
	uses = slices.DeleteFunc(uses, func(name string) bool { return !o.leaves(name) })
	switch {
	case o.stranded(p) && (p.Leaving || !p.Ended):
		return wait("the pod %s of the recovery is on a lost node, where it may run. Once that machine is off: %s",
			p.Name, o.kubectl("delete pod %s --force", p.Name))
	case p.Leaving:
		return wait("the pod of the recovery ends")
	case len(uses) > 0:
		return wait("the claims of %v were deleted, and their data go once the pod %s stops. Let their volumes stay "+
			"(persistentVolumeReclaimPolicy: Retain), or save what they have, before you delete it", uses, p.Name)
	}
	return &Action{Kind: EndRecovery, Member: p.Member, Why: why}
}
