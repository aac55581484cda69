package decide

import (
	"cmp"
	"slices"
	"strings"
)

// A command of a recovery is noted on the survivor's claim before its pod is made, and nothing but the survivor itself tells
// how it ended. A pod that ended badly may have done everything before, one that was deleted may have run although nobody
// was told so, and one that vanished tells nothing. So the survivor's process starts first, alone: others beside it may be a
// quorum without it, whose writes would be lost with the next look.

// tried returns the claim on which a command may have run; nil: there is none.
func (o *Observed) tried() *Claim {
	if i := slices.IndexFunc(o.Claims, func(c Claim) bool { return len(c.Leaves) > 0 }); i >= 0 {
		return &o.Claims[i]
	}
	return nil
}

// notes tells whether the note of a command names a member. One that somebody wrote with ids or other words tells nothing of a
// leader, as that names none of these either.
func (o *Observed) notes(c *Claim) bool {
	r := o.Kept.Recovery
	return slices.ContainsFunc(c.Leaves, func(name string) bool {
		return name != c.Member && (strings.HasPrefix(name, o.Want.Prefix) || o.claim(name) != nil ||
			r != nil && r.Survivor == c.Member && slices.Contains(r.Leaves, name))
	})
}

// recovered tells whether a leader follows from the command on the claim: it names the survivor, and none of those that were
// left out.
func (o *Observed) recovered(c *Claim) bool {
	return o.Cluster != nil && o.Cluster.member(c.Member) != nil && o.notes(c) &&
		!slices.ContainsFunc(c.Leaves, o.Cluster.named)
}

// unchanged tells whether the process on the claim shows that the command changed nothing: it follows a leader with those that
// would be left out, or tells the epoch, or the members, from before. The claim has the epoch from before. One that was
// recovered votes alone, whatever the note names.
func (o *Observed) unchanged(c *Claim) bool {
	p := o.pod(c.Member)
	if p == nil || !p.Running || p.Leaving {
		return false
	}
	if o.Cluster != nil {
		m := o.Cluster.member(c.Member)
		all, _ := o.Cluster.voters()
		return m != nil && m.Active && !o.recovered(c) && (o.notes(c) || all > 1)
	}
	return slices.ContainsFunc(o.Answers, func(a Answer) bool {
		names := len(a.Voters) > 1 ||
			slices.ContainsFunc(a.Members, func(name string) bool { return slices.Contains(c.Leaves, name) })
		return a.Member == c.Member && a.Epoch <= c.Epoch.Number && names && !(a.Hearsay && a.Term == 0)
	})
}

// survivorTells lets the survivor start, and notes what it tells. A leader that answers while it does not run has all that was
// acknowledged: then it starts no more, as it might lead an epoch of its own.
func (o *Observed) survivorTells(c *Claim) *Action {
	switch {
	case o.recovered(c):
		return &Action{Kind: Recovered, Member: c.Member, Names: c.Leaves, Why: "it leads without those that were left out"}
	case o.unchanged(c):
		return &Action{Kind: Unchanged, Member: c.Member, Why: "it is as it was before the command"}
	}
	p := o.pod(c.Member)
	switch {
	case p == nil && (o.Cluster != nil || o.ledMeanwhile(c)):
		return o.leaveOut(c)
	case o.Cluster != nil && p.Running && !o.notes(c):
		return wait("the note %s on the claim of %s names no other member (%v): correct it by %s, with the names of "+
			"those that the recovery left out", noteLeaves, c.Member, c.Leaves,
			o.kubectl("annotate pvc %s --overwrite %s=NAMES", c.Member, noteLeaves))
	case c.Leaving:
		return wait("whether %s was recovered is not known, and its claim was deleted: its data go once its pod is gone",
			c.Member)
	case p == nil:
		return &Action{Kind: CreatePod, Member: c.Member, Why: "it tells whether it was recovered"}
	case p.Leaving:
	case p.Ended:
		return &Action{Kind: DeletePod, Member: c.Member, Why: "its pod ended: " + p.Said}
	case !p.Running && p.Template != o.Want.Template && !p.NodeLost:
		return &Action{Kind: DeletePod, Member: c.Member, Why: "it does not run, and the spec changed"}
	case o.Cluster != nil && !p.Started && !p.Running && !p.NodeLost:
		return &Action{Kind: DeletePod, Member: c.Member, Unstarted: true, Why: "it has not started, and a leader answers " +
			"without it"}
	case o.Cluster == nil && !p.Started && !p.Running && !p.NodeLost && o.ledMeanwhile(c):
		return &Action{Kind: DeletePod, Member: c.Member, Unstarted: true, Why: "it has not started, and those that it would " +
			"leave out may have led meanwhile"}
	}
	if slices.ContainsFunc(o.Answers, func(a Answer) bool { return a.Member == c.Member && a.Hearsay && a.Term == 0 }) {
		return wait("whether %s was recovered is not known: its build tells no epoch, and nobody can log in. If it leads in a "+
			"moment, it was; if it does not, it was not, and other members start after %s. One of 1.1 or later tells it: "+
			"set spec.version to that, and delete the pod of %[1]s", c.Member,
			o.kubectl("annotate pvc %s %s-", c.Member, noteLeaves))
	}
	waits := cmp.Or(p.Waits, o.Trouble)
	if p.NodeLost {
		waits = "its node is lost"
	}
	if o.Cluster != nil && p.NodeLost {
		return wait("whether %s was recovered is not known before it answers, and until then no other member starts: its "+
			"node is lost. Once that machine is off: %s. A leader answers, the claim stays, and a new member takes the place",
			c.Member, o.kubectl("delete pod %s --force", c.Member))
	}
	if o.Cluster != nil {
		return wait("whether %s was recovered is not known before it answers, and until then no other member starts%s. If it "+
			"does not answer soon, delete the pod of %[1]s alone: a leader answers, the claim stays, and a new member takes "+
			"the place", c.Member, after(": ", waits))
	}
	return wait("whether %s was recovered is not known before it answers, and until then no other member starts%s. If its "+
		"data are gone for ever, delete its claim, and then its pod", c.Member, after(": ", waits))
}

// leadBeside tells whether those that a command would leave out lead while its pod is there, and so have all that was
// acknowledged: that is noted at once, whatever the status says, since they may be lost again before the command has ended. So
// it is if they may have led since it was started. A command that no node has taken has not run.
func (o *Observed) leadBeside(c *Claim, command *Pod) bool {
	if c == nil || command == nil || command.Member != c.Member || command.Homeless {
		return false
	}
	return o.Cluster != nil && !o.recovered(c) || o.Cluster == nil && command.Started && o.ledMeanwhile(c)
}

// leaveOut ends a recovery whose command may have run: those that it would leave out lead without the survivor, or may have
// led since the command was made.
func (o *Observed) leaveOut(c *Claim) *Action {
	why := "a leader answers without it"
	if o.Cluster == nil {
		why = "voters that were given up were there again since its command was made, and may have acknowledged more"
	}
	return &Action{Kind: LeaveOut, Member: c.Member, Names: c.Leaves, Forget: true,
		Why: why + ", and a recovery may have begun another epoch on its claim"}
}

// usedNoMore tells whether no process starts on the claim of a member any more, since a command may have run there.
func (o *Observed) usedNoMore(member string) bool {
	c := o.claim(member)
	return c != nil && c.LeftOut
}
