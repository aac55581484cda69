package decide

import (
	"fmt"
	"slices"
	"strings"
)

// The leader's word is believed from whoever passes it on, and one that lies may say anything: a later term, another epoch,
// that it votes alone. So what destroys asks the others, too. While another word, of equal standing, is of another leader or
// of other members, or a member serves that is not named, no member is stopped or taken for removed, and no claim deleted.

// agrees tells whether a word is of the same leader and the same members as the one that counts.
func (c *Cluster) agrees(t *Told) bool {
	return t.Leader == c.Leader && len(t.Members) == len(c.Members) &&
		!slices.ContainsFunc(t.Members, func(m Member) bool {
			return !slices.ContainsFunc(c.Members, func(of Member) bool { return of.ID == m.ID })
		})
}

// outweighed tells whether a word cannot be a quorum's: most of the voters that it names tell what the one that counts does. So
// is one of a leader that others have left, or of a member that has not heard yet.
func (c *Cluster) outweighed(t *Told) bool {
	voters, otherwise := 0, 0
	for i := range t.Members {
		m := &t.Members[i]
		if !m.Voter {
			continue
		}
		voters++
		if m.Name == c.By || slices.ContainsFunc(c.Others, func(o Told) bool { return o.Member == m.Name && c.agrees(&o) }) {
			otherwise++
		}
	}
	return otherwise >= Quorum(voters)
}

// contradictions are the words of equal standing that do not agree with the one that counts. One of members that a recovery
// left out, as the status or a claim tells, has none.
func (o *Observed) contradictions() (all []*Told) {
	if o.Cluster == nil {
		return nil
	}
	for i := range o.Cluster.Others {
		t := &o.Cluster.Others[i]
		c := o.claim(t.Member)
		if !o.Cluster.agrees(t) && !o.Cluster.outweighed(t) && !slices.Contains(o.Kept.Dropped, t.Member) &&
			!(c != nil && o.leftOut(c)) {
			all = append(all, t)
		}
	}
	return all
}

// Contradicted says who tells another cluster than the one that counts, and what helps; empty: nobody does.
func (o *Observed) Contradicted() string {
	told := o.contradictions()
	if len(told) == 0 {
		return ""
	}
	said := []string{o.Cluster.word(o.Cluster.By, o.Cluster.Epoch, o.Cluster.Members, o.Cluster.Leader)}
	for _, t := range told {
		said = append(said, o.Cluster.word(t.Member, t.Epoch, t.Members, t.Leader))
	}
	var left []string
	for _, t := range told {
		for i := range t.Members {
			if name := t.Members[i].Name; !o.Cluster.named(name) && !slices.Contains(left, name) {
				left = append(left, name)
			}
		}
	}
	recovered := ""
	if slices.Sort(left); len(left) > 0 {
		recovered = fmt.Sprintf(". If %s was recovered by hand, %s says so", o.Cluster.By,
			o.kubectl("annotate pvc %s --overwrite %s=%s", o.Cluster.By, noteLeaves, strings.Join(left, ",")))
	}
	return fmt.Sprintf("members tell different clusters: %s. No member is stopped, and no claim deleted, until they agree. "+
		"If one of them is not to be believed, delete its claim, and then its pod%s", strings.Join(said, "; "), recovered)
}

// word is what a member tells, for people.
func (*Cluster) word(by string, epoch Epoch, members []Member, leader uint64) string {
	var names []string
	leads := fmt.Sprintf("%x", leader)
	for i := range members {
		names = append(names, members[i].Name)
		if members[i].ID == leader {
			leads = members[i].Name
		}
	}
	slices.Sort(names)
	return fmt.Sprintf("%s tells of %v with the leader %s, in epoch %q", by, names, leads, epoch.Name)
}

// serves tells whether the pod of a member that the leader does not name works as one of the cluster, as its node says: a
// member that was removed is told so, and ends by itself, and one without a leader is not ready.
func (o *Observed) serves(member string) bool {
	p, c := o.pod(member), o.claim(member)
	return p != nil && p.Ready && !p.Leaving && !p.NodeLost && !o.Cluster.named(member) &&
		!slices.Contains(o.Kept.Dropped, member) && !(c != nil && o.leftOut(c))
}

// uncontradicted lets an action wait that would stop a process which runs, or give up a disk, while members tell different
// clusters, whichever rule wants it.
func (o *Observed) uncontradicted(a Action) Action {
	if a.Kind != NoteRemoved && a.Kind != DeleteClaim && a.Kind != DeletePod {
		return a
	}
	if p := o.pod(a.Member); a.Kind == DeletePod && (p == nil || p.Ended || !p.Running) {
		return a
	}
	if text := o.Contradicted(); text != "" {
		return *wait("%s", text)
	}
	return a
}

// Doubted says so, too, or who serves and is not named: while the others know no leader, one that lies is alone with its
// word. Nothing that is told meanwhile is noted for long. Empty: there is no doubt.
func (o *Observed) Doubted() string {
	if text := o.Contradicted(); text != "" || o.Cluster == nil {
		return text
	}
	for i := range o.Pods {
		if p := &o.Pods[i]; !p.Recovers && o.serves(p.Member) {
			return fmt.Sprintf("%s serves, and is no member any more, as %s tells: it is stopped once it is not ready. If it "+
				"stays so, one of them is not to be believed: delete its claim, and then its pod", p.Member, o.Cluster.By)
		}
	}
	return ""
}

// doubted waits until members tell the same, and until those that were removed have heard it.
func doubted(o *Observed) *Action {
	if text := o.Doubted(); text != "" {
		return wait("%s", text)
	}
	return nil
}
