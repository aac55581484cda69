package decide

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// Loss is what is left when so many voters are lost that no quorum comes back.
type Loss struct {
	ID        string   // differs for each loss: see lossID
	Survivor  Answer   // with the most advanced log
	Survivors []string // voters that answer, and the survivor, which may be a learner
	Lost      []string // voters that are gone
	Silent    []string // that do not answer, and may be a better survivor: voters that are not gone, and other members
	Ahead     []string // that answer, know that they were removed, and have more than the survivor
	Voters    []string
}

// Consent is that which accepts the loss.
func (l *Loss) Consent() Consent { return Consent{Revision: l.Survivor.Revision, Loss: l.ID} }

// LossOf returns what is left; nil: a quorum may come back, or no survivor answers. The voters are those that the best
// survivor knows. Members that a recovery left out are no survivors.
func LossOf(o *Observed) *Loss {
	loss := o.left()
	if loss == nil || len(loss.Survivors) == 0 || len(loss.Voters)-len(loss.Lost) >= Quorum(len(loss.Voters)) {
		return nil
	}
	loss.ID = o.lossID(loss)
	return loss
}

// left is what is left of the voters while no leader answers, however many are lost. Nil: nobody tells.
func (o *Observed) left() *Loss {
	if o.Cluster != nil || !o.Kept.Founded && !o.forgotten() {
		return nil
	}
	able, others := o.survivors()
	loss, answers := &Loss{}, slices.Concat(able, others)
	if len(able) == 0 {
		for i := range others {
			if others[i].Index > 0 {
				loss.Ahead = append(loss.Ahead, others[i].Member)
			}
		}
		return loss
	}
	best := slices.MaxFunc(able, o.compareLogs)
	loss.Survivor, loss.Voters = best, best.Voters
	for _, name := range best.Voters {
		switch {
		case slices.ContainsFunc(answers, func(a Answer) bool { return a.Member == name }):
			loss.Survivors = append(loss.Survivors, name)
		case o.leftOutAlone(name) && !o.claim(name).covered(&best): // it may have more, and is asked first
			loss.Silent = append(loss.Silent, name)
		case o.gone(name):
			loss.Lost = append(loss.Lost, name)
		default:
			loss.Silent = append(loss.Silent, name)
		}
	}
	if !best.votes() {
		loss.Survivors = append(loss.Survivors, best.Member)
	}
	o.others(loss, answers)
	return loss
}

// others notes members that the best survivor does not count as voters: it may be behind a change of members. They are waited
// for, wherever they are; one that answers has less, or is ahead. Its log is compared alone, as names tell nothing here.
func (o *Observed) others(loss *Loss, answers []Answer) {
	for i := range o.Claims {
		c := &o.Claims[i]
		if !c.Used || c.Empty || c.Leaving || c.Removed || o.leftOut(c) || slices.Contains(loss.Voters, c.Member) {
			continue
		}
		at := slices.IndexFunc(answers, func(a Answer) bool { return a.Member == c.Member })
		switch {
		case at < 0:
			loss.Silent = append(loss.Silent, c.Member)
		case answers[at].compare(&loss.Survivor) > 0:
			loss.Ahead = append(loss.Ahead, c.Member)
		}
	}
}

// LeftOutTerm is the term that a left-out claim notes, of the leader that answered beside a command: a log with an entry of it
// has all that the claim has. 0: that does not hold. A leader of the term in which the claim's log ends, or of an earlier one,
// may have been cut off from it, and have left entries on it alone.
func LeftOutTerm(r *Recovery, member string, leads uint64) uint64 {
	if r == nil || r.Survivor != member || r.Term == 0 || leads <= r.Term {
		return 0
	}
	return leads
}

// covered tells whether a log has an entry of the leader that answered without the member of a claim: then it has all that was
// acknowledged before, and the claim may be given up as that of any voter.
func (c *Claim) covered(a *Answer) bool { return c.LeftOutTerm > 0 && a.Term >= c.LeftOutTerm }

// leftOutAlone tells whether the claim of a member is used no more since a leader answered without it, and no recovery has left
// the member out since: if that leader is gone for ever, too, nobody else may have what is on the claim.
func (o *Observed) leftOutAlone(name string) bool {
	c := o.claim(name)
	return c != nil && c.LeftOut && !c.Leaving && !slices.Contains(o.Kept.Dropped, name) &&
		!(c.Epoch.Name != "" && c.Epoch.Former(Newest(o.Claims)))
}

// UsedNoMore names such claims while no leader answers, and how they are used again; empty: there are none, or the best
// survivor knows other voters.
func (o *Observed) UsedNoMore() string {
	if o.Cluster != nil {
		return ""
	}
	loss, said := o.left(), []string{}
	told := loss != nil && len(loss.Survivors) > 0
	cost := ""
	if told {
		cost = fmt.Sprintf(", though %v answer, and what they alone have is lost by that", loss.Survivors)
	}
	for i := range o.Claims {
		name := o.Claims[i].Member
		if !o.leftOutAlone(name) || told && (!slices.Contains(loss.Voters, name) || o.Claims[i].covered(&loss.Survivor)) {
			continue
		}
		others := o.members()
		if r := o.Kept.Recovery; r != nil && r.Survivor == name {
			others = append(others, r.Leaves...)
		}
		slices.SortFunc(others, ByNumber)
		others = slices.DeleteFunc(slices.Compact(others), func(other string) bool { return other == name })
		said = append(said, fmt.Sprintf("The claim of %s is used no more, since a leader answered without it, or may have, "+
			"and may hold what the others lack. If these are gone for ever: %s: it starts first, alone, and tells whether it "+
			"was recovered%s. Only if its own data are gone for ever, delete the claim", name, o.kubectl("annotate pvc %s "+
			"--overwrite %s=%s quorate.io/left-out-", name, noteLeaves, strings.Join(others, ",")), cost))
	}
	return strings.Join(said, ". ")
}

// noLeader says who is missing while a quorum may come back.
func (o *Observed) noLeader() *Action {
	loss := o.left()
	switch {
	case loss != nil && len(loss.Survivors) == 0 && len(loss.Ahead) > 0:
		return wait("no leader answers. %s%s%s", o.removedMore(loss.Ahead), after(". ", o.whyAny(o.members())),
			after(". ", o.UsedNoMore()))
	case loss == nil || len(loss.Silent) == 0:
		return wait("no leader answers%s%s%s", after(": ", o.Trouble), after(". ", o.whyAny(o.members())),
			after(". ", o.UsedNoMore()))
	}
	said := ""
	if len(loss.Lost) > 0 {
		said = fmt.Sprintf(", and %v are lost", loss.Lost)
	}
	return wait("no leader answers. %v do not answer%s: look at their pods, and delete the claims, and then the pods, of "+
		"those whose data are gone for ever%s%s", loss.Silent, said, after(". ", o.whyAny(loss.Silent)),
		after(". ", o.UsedNoMore()))
}

// deletedRuns returns those of lost voters whose claims were deleted and whose pods may run.
func (o *Observed) deletedRuns(lost []string) []string {
	return slices.DeleteFunc(slices.Clone(lost), func(name string) bool {
		p := o.pod(name)
		return p == nil || p.NodeLost || p.Homeless
	})
}

// lossID is another one if a quorum may have worked meanwhile: then the survivor's log went on, or voters that are lost had
// been back without it. Nobody can see the latter at the survivor, but their nodes, pods or processes tell.
func (o *Observed) lossID(l *Loss) string {
	s := &l.Survivor
	text := fmt.Sprintf("%s %d %d %d %d", s.Member, s.Epoch, s.Term, s.Index, s.Revision)
	for _, name := range l.Lost {
		text += "\n" + name
		if p := o.pod(name); p != nil {
			text += " " + p.Life
		}
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
}

// life is what a recovery remembers of a voter's pod; empty: it has none.
func (o *Observed) life(name string) string {
	p := o.pod(name)
	if p == nil {
		return ""
	}
	sum := sha256.Sum256([]byte(p.Life))
	return hex.EncodeToString(sum[:6])
}

func (o *Observed) isHomeless(name string) bool {
	p := o.pod(name)
	return p != nil && p.Homeless && !p.NodeLost
}

// compareLogs orders answers by what their logs hold; where that is the same a claim that stays is better, and a voter: it may
// hold writes of the fast path. Then the member that was made first counts.
func (o *Observed) compareLogs(a, b Answer) int {
	stays := func(a *Answer) int { return toInt(!o.unclaimed(a.Member)) }
	return cmp.Or(a.compare(&b), cmp.Compare(stays(&a), stays(&b)), cmp.Compare(toInt(a.votes()), toInt(b.votes())),
		ByNumber(b.Member, a.Member))
}

// gone tells whether a voter will not come back by itself, as far as Kubernetes knows.
func (o *Observed) gone(name string) bool {
	if o.startsNever(name) {
		return true
	}
	p := o.pod(name)
	return p != nil && (p.NodeLost || p.Homeless) && p.Stuck >= o.Want.ReplaceAfter
}

// startsNever tells whether the operator makes no pod for the member any more, whatever happens.
func (o *Observed) startsNever(name string) bool {
	return o.unclaimed(name) || o.claim(name).LeftOut || o.claim(name).Removed
}

// unclaimed tells whether the claim of a member is gone, or goes once no pod uses it.
func (o *Observed) unclaimed(name string) bool {
	c := o.claim(name)
	return c == nil || c.Leaving
}

// leaves tells whether the claim of a member is there, and goes once no pod uses it.
func (o *Observed) leaves(name string) bool {
	c := o.claim(name)
	return c != nil && c.Leaving
}

// NotCompared returns the survivors beside the best whose claims a recovery cannot read, since they were deleted.
func (o *Observed) NotCompared(best string, survivors []string) []string {
	return slices.DeleteFunc(slices.Clone(survivors), func(name string) bool { return name == best || !o.unclaimed(name) })
}

// quorumLoss begins the recovery of the best survivor, if the spec consents to what that loses: to the loss that the status
// reports.
func quorumLoss(o *Observed) *Action {
	loss := LossOf(o)
	if loss == nil {
		return nil
	}
	s := &loss.Survivor
	said := fmt.Sprintf("%d of %d voters are lost (%v). The best survivor is %s%s, at revision %d", len(loss.Lost),
		len(loss.Voters), loss.Lost, s.Member, s.role(), s.Revision)
	why := after(". ", o.WhyLost(loss.Lost))
	if len(loss.Silent) > 0 {
		return wait("%s of those that answer. %v may have more, and are waited for: delete the claims, and then the pods, of "+
			"those whose data are gone for ever%s%s", said, loss.Silent, after(". ", o.whyAny(loss.Silent)),
			after(". ", o.UsedNoMore()))
	}
	if len(loss.Ahead) > 0 {
		return wait("%s. %s%s", said, o.removedMore(loss.Ahead), after(". ", o.UsedNoMore()))
	}
	if runs := o.deletedRuns(loss.Lost); len(runs) > 0 {
		return wait("%s. The claims of %v were deleted, and their pods are there: delete these pods, too, and what is left of "+
			"their data goes with them. Until then the loss is another one each time that they start", said, runs)
	}
	if o.unclaimed(s.Member) {
		return wait("%s, whose claim was deleted: its data go once its pod stops, so that nothing is recovered. Let its "+
			"volume stay (persistentVolumeReclaimPolicy: Retain), or save a snapshot, before you delete its pod", said)
	}
	notCompared := o.NotCompared(s.Member, loss.Survivors)
	if len(notCompared) > 0 {
		said += fmt.Sprintf(". The claims of %v were deleted, which answer, too", notCompared)
	}
	reported, consent := o.Kept.Reported, o.Want.Consent
	switch {
	case consent == nil:
		return wait("%s: see status.quorumLoss%s", said, why)
	case o.void(*consent):
		return wait("%s. spec.recovery.acceptLossAfter %d is void: see status.voidedConsent. Take spec.recovery out, and then "+
			"accept the loss that status.quorumLoss reports", said, consent.Revision)
	case reported == nil:
		return &Action{Kind: VoidConsent, Consent: consent,
			Why: fmt.Sprintf("spec.recovery.acceptLossAfter %d was there before this loss was reported", consent.Revision)}
	case *consent != loss.Consent():
		return wait("%s. spec.recovery accepts revision %d of the loss %q, which is another one: see status.quorumLoss",
			said, consent.Revision, consent.Loss)
	case *reported != loss.Consent():
		return wait("%s: status.quorumLoss reports that first", said)
	case len(notCompared) > 0 && !o.Want.Uncompared:
		return wait("%s: their data go once their pods stop, and would not be compared. Let their volumes stay "+
			"(persistentVolumeReclaimPolicy: Retain), or save what they have, before you delete their pods; or accept that "+
			"writes are lost which they alone have: spec.recovery.uncomparedLoss: %s", said, consent.Loss)
	}
	r := &Recovery{Survivor: s.Member, Accepted: *consent, Term: s.Term, Index: s.Index}
	for _, name := range loss.Lost {
		r.Lost = append(r.Lost, LostVoter{Member: name, Life: o.life(name), Homeless: o.isHomeless(name)})
	}
	r.Leaves = slices.DeleteFunc(slices.Clone(s.Members), func(name string) bool { return name == s.Member })
	r.Compare = slices.DeleteFunc(slices.Clone(loss.Survivors), func(name string) bool { return name == s.Member })
	return &Action{Kind: Recover, Member: s.Member, Recovery: r, Why: said}
}

// void tells whether a consent counts no more.
func (o *Observed) void(consent Consent) bool {
	return o.Kept.VoidConsent != nil && *o.Kept.VoidConsent == consent
}

// voidConsent ends a consent that is there while a leader answers: it was given for a loss that is over, or for none. Else it
// would stay armed, and members that are away for a moment would be given up for ever without a question.
func voidConsent(o *Observed) *Action {
	consent := o.Want.Consent
	if consent == nil || o.void(*consent) {
		return nil
	}
	return &Action{Kind: VoidConsent, Consent: consent,
		Why: fmt.Sprintf("a leader answers, and spec.recovery.acceptLossAfter %d counts for no later loss", consent.Revision)}
}

// leaveDropped stops pods of members that a recovery left out, should they come back, but on claims that go with them.
func leaveDropped(o *Observed) *Action {
	for i := range o.Pods {
		p := &o.Pods[i]
		if !p.Recovers && !p.Leaving && !o.leaves(p.Member) && slices.Contains(o.Kept.Dropped, p.Member) &&
			(o.Cluster == nil || !o.Cluster.named(p.Member)) {
			return &Action{Kind: DeletePod, Member: p.Member, Why: "a recovery left it out"}
		}
	}
	return nil
}

// tellDropped names those pods.
func tellDropped(o *Observed) *Action {
	for i := range o.Pods {
		if p := &o.Pods[i]; o.dropped(p) && !o.Cluster.named(p.Member) && !p.Leaving {
			return wait("%s, which a recovery left out, runs, and its claim was deleted: writes that it may hold alone go "+
				"once its pod stops. Let its volume stay (persistentVolumeReclaimPolicy: Retain), or save what it has, before "+
				"you delete the pod", p.Member)
		}
	}
	return nil
}
