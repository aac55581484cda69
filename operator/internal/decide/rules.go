package decide

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// founding makes the claims and pods of the founders, and notes when they have founded the cluster.
func founding(o *Observed) *Action {
	if o.Kept.Founded {
		return nil
	}
	if o.Cluster != nil {
		return &Action{Kind: Founded, Why: "the cluster answers"}
	}
	if o.forgotten() {
		return nil
	}
	if len(o.Kept.Founders) == 0 && len(o.Former) > 0 {
		return wait("pods of another QuorateCluster that had this name are there (%v), and nothing is founded beside them: "+
			"save what they have, and delete them, or give this one another name", o.Former)
	}
	if o.Want.Refused != "" {
		return refused(o)
	}
	if len(o.Kept.Founders) == 0 {
		n := o.Want.Members
		if o.Want.Restore {
			n = 1 // the others get the restored state from it
		}
		names, serial := []string{}, o.serialFor(n)
		for i := range n {
			names = append(names, o.Want.name(serial+1+int64(i)))
		}
		return &Action{Kind: Found, Names: names, Serial: serial + int64(n), Why: "there is no cluster yet"}
	}
	first := o.Kept.Serial - int64(len(o.Kept.Founders)) + 1
	for i, name := range o.Kept.Founders {
		if c := o.claim(name); c == nil {
			return &Action{Kind: CreateClaim, Member: name, Serial: first + int64(i), Zone: zoneAt(o.Want.Zones, i),
				Why: "a founder needs a disk"}
		}
	}
	for _, name := range o.Kept.Founders {
		switch p := o.pod(name); {
		case o.claim(name).Leaving:
			return wait("the claim of %s was deleted before the cluster was founded: it is made again once it is gone", name)
		case p == nil:
			return &Action{Kind: CreatePod, Member: name, Names: o.Kept.Founders, Why: "it founds the cluster"}
		case !p.Leaving && !p.Ready && p.Template != o.Want.Template:
			return &Action{Kind: DeletePod, Member: name, Why: "the spec changed before the cluster was founded"}
		case p.Ended && !p.Leaving:
			return &Action{Kind: DeletePod, Member: name, Why: "it ended: " + p.Said}
		}
	}
	why := cmp.Or(o.Trouble, o.whyAny(o.Kept.Founders))
	return wait("the founders %v have not met yet%s", o.Kept.Founders, after(": ", why))
}

// refused waits while the spec has an image that members must not get.
func refused(o *Observed) *Action {
	if o.Want.Refused == "" {
		return nil
	}
	return wait("no member gets %s", o.Want.Refused)
}

// forgotten tells whether there was a cluster of which the status knows nothing, as after somebody has removed the status, or
// put an old one back: members are started, and nothing is founded beside them. A claim proves it that a leader has named, or
// that a process had which is no founder's.
func (o *Observed) forgotten() bool {
	return !o.Kept.Founded && slices.ContainsFunc(o.Claims, func(c Claim) bool {
		return c.Epoch.Name != "" || c.Used && !slices.Contains(o.Kept.Founders, c.Member)
	})
}

// restoreProcesses makes the pod of each member that has a claim and no pod, and takes away what will never run again. It stops
// nothing that works.
func restoreProcesses(o *Observed) *Action {
	if !o.Kept.Founded && !o.forgotten() {
		return nil
	}
	for i := range o.Claims {
		c := &o.Claims[i]
		if o.leftOut(c) || !o.belongs(c) {
			continue
		}
		switch p := o.pod(c.Member); {
		case p == nil && !c.Leaving:
			return &Action{Kind: CreatePod, Member: c.Member, Why: "it has no pod"}
		case p == nil || p.Leaving || c.Leaving: // the data of a claim that leaves go with its pod
		case p.Ended:
			return &Action{Kind: DeletePod, Member: c.Member, Why: "its pod ended: " + p.Said}
		case !p.Running && p.Template != o.Want.Template && !p.NodeLost:
			return &Action{Kind: DeletePod, Member: c.Member, Why: "it does not run, and the spec changed"}
		}
	}
	return nil
}

// belongs tells whether a process may run on a claim: while nobody knows the members, on each that had one before, and was not
// removed as far as anybody knew.
func (o *Observed) belongs(c *Claim) bool {
	if o.Cluster == nil {
		return c.Used && !c.Removed
	}
	return o.Cluster.named(c.Member)
}

// lostNewcomers takes back members that were added, do not vote yet, and will not come: the job that adds one would wait
// for it.
func lostNewcomers(o *Observed) *Action {
	for i := range o.Cluster.Members {
		m := &o.Cluster.Members[i]
		c, p := o.claim(m.Name), o.pod(m.Name)
		why := ""
		switch {
		case m.Voter:
		case c == nil || c.Leaving:
			why = "it was added, and its claim is gone"
		case !m.Active && p != nil && p.NodeLost && p.Stuck >= o.Want.ReplaceAfter:
			why = "it was added, and its node is lost"
		}
		if why == "" {
			continue
		}
		for _, job := range o.Cluster.Jobs {
			if slices.Contains(job.Adds, m.Name) {
				if job.Cancelled {
					return wait("the job that adds %s is cancelled", m.Name)
				}
				return &Action{Kind: Cancel, Member: m.Name, ID: job.ID, Why: why}
			}
		}
		return &Action{Kind: Remove, Member: m.Name, ID: m.ID, Why: why}
	}
	return nil
}

// jobs waits for those that the cluster makes. One that has not moved for long while another member is lost is cancelled, where
// that is possible: it may wait for just that member.
func jobs(o *Observed) *Action {
	for _, job := range o.Cluster.Jobs {
		for i := range o.Cluster.Members {
			m := &o.Cluster.Members[i]
			why := o.lost(m)
			if slices.Contains(job.Adds, m.Name) && !m.Started && o.homeless(m.Name) != nil {
				continue // another newcomer would find no node either
			}
			if why != "" && !job.Cancelled && job.Quiet >= homeless*o.Want.ReplaceAfter && !slices.Contains(job.Removes, m.ID) {
				return &Action{Kind: Cancel, Member: m.Name, ID: job.ID, Why: why + ", and the change waits: " + job.What}
			}
		}
	}
	if len(o.Cluster.Jobs) > 0 {
		job := &o.Cluster.Jobs[0]
		return wait("the cluster makes a change: %s%s", job.What, after(". ", o.whyAny(job.Adds)))
	}
	if o.Cluster.Joint {
		return wait("the cluster changes its voters")
	}
	if o.Cluster.Unsettled { // also by etcd's calls, which make no job
		return wait("the last change of members is not settled: those that it removed may be needed")
	}
	return nil
}

// leavers deletes pods and claims of members that were removed, and notes that on claims first: while no leader answers the
// members are not known, and none that was removed shall start, or be taken for a survivor. While there is a doubt who was
// removed it does nothing.
func leavers(o *Observed) *Action {
	if o.Doubted() != "" {
		return nil
	}
	for i := range o.Claims {
		if c := &o.Claims[i]; !c.Removed && o.removed(c) {
			return &Action{Kind: NoteRemoved, Member: c.Member, Why: "it is no member any more"}
		}
	}
	for i := range o.Claims {
		c := &o.Claims[i]
		if !c.Leaving && c.Empty && o.removed(c) && o.homeless(c.Member) != nil && o.probe() != o.pod(c.Member) {
			return &Action{Kind: DeleteClaim, Member: c.Member, Why: "no node has taken it, and it is no member any more"}
		}
	}
	for i := range o.Pods {
		p := &o.Pods[i]
		if p == o.probe() {
			continue
		}
		if !p.Recovers && !p.Leaving && !o.dropped(p) && !o.Cluster.named(p.Member) &&
			!slices.Contains(o.Kept.Dropped, p.Member) {
			return &Action{Kind: DeletePod, Member: p.Member, Why: "it is no member any more"}
		}
	}
	for i := range o.Claims {
		c := &o.Claims[i]
		if !c.Leaving && o.removed(c) && !o.Want.KeepClaims && o.pod(c.Member) == nil {
			return &Action{Kind: DeleteClaim, Member: c.Member, Why: "it is no member any more"}
		}
	}
	return nil
}

// removed tells whether the member of a claim was removed by a job: a recovery would have begun another epoch.
func (o *Observed) removed(c *Claim) bool {
	return c.Used && c.Epoch.Name != "" && c.Epoch == o.Cluster.Epoch && !o.Cluster.named(c.Member) &&
		!slices.Contains(o.Kept.Dropped, c.Member) && !c.LeftOut
}

// lost says why a member will not come back by itself; empty: it may.
func (o *Observed) lost(m *Member) string {
	c, p := o.claim(m.Name), o.pod(m.Name)
	switch {
	case c == nil:
		return "its claim is gone"
	case c.LeftOut:
		return "a recovery may have begun another epoch on its claim"
	case c.Leaving:
		return "its claim was deleted"
	case m.DiskLost:
		return "the cluster refuses its data"
	case p == nil || m.works() || m.Silent < o.Want.ReplaceAfter:
	case p.NodeLost:
		return "its node is lost"
	case p.Homeless && p.Stuck >= homeless*o.Want.ReplaceAfter:
		return "no node takes it"
	}
	return ""
}

// homeless is how many times as long a member without a place is waited for: a node that is drained is mostly back soon, and a
// claim of its disk is worth more than a copy.
const homeless = 10

// lostMembers lets a new member take the place of one that will not come back, if the others are a quorum: first of one that
// does not work. One that is held up, since the others are too few without it, holds up no other.
func lostMembers(o *Observed) *Action {
	all, work := o.Cluster.voters()
	var held *Action
	for _, works := range []bool{false, true} {
		for i := range o.Cluster.Members {
			m := &o.Cluster.Members[i]
			why := o.lost(m)
			if why == "" || !m.Voter || m.works() != works {
				continue
			}
			others := work
			if works {
				others--
			}
			if others < Quorum(all) && !(works && work == all) {
				if held == nil {
					held = wait("%s is lost (%s), and the others are no quorum: %d of %d voters work", m.Name, why, work, all)
				}
				continue
			}
			if all > o.Want.Members && all > 1 {
				return &Action{Kind: Remove, Member: m.Name, ID: m.ID, Why: why + ", and fewer members are wanted"}
			}
			return o.newcomer(Action{Kind: Replace, ID: m.ID, Why: fmt.Sprintf("it takes the place of %s: %s", m.Name, why)},
				m.Name)
		}
	}
	return held
}

// spares deletes claims that were made for members that are not wanted any more.
func spares(o *Observed) *Action {
	for i := range o.Claims {
		if c := &o.Claims[i]; !c.Used && !c.Leaving && !o.Cluster.named(c.Member) && o.pod(c.Member) == nil {
			return &Action{Kind: DeleteClaim, Member: c.Member, Why: "no member needs it"}
		}
	}
	if p := o.probe(); p != nil {
		if c := o.claim(p.Member); c.Empty && !c.Leaving && o.removed(c) { // before its pod: then nothing is left to be kept
			return &Action{Kind: DeleteClaim, Member: p.Member, Why: "no member needs it"}
		}
		return &Action{Kind: DeletePod, Member: p.Member, Unstarted: true, Why: "no member needs it"}
	}
	return nil
}

// newcomer returns the action for a claim that is not used yet, or the claim first. The zone is that of the member that
// goes, if one does and its zone is still wanted. While no node takes a newcomer that was taken back, no other one is made.
func (o *Observed) newcomer(a Action, instead string) *Action {
	if p := o.probe(); p != nil {
		return wait("no node takes a newcomer: make room, or take podAntiAffinity: Required out%s", after(". "+p.Member+": ",
			p.Waits))
	}
	for i := range o.Claims {
		if c := &o.Claims[i]; !c.Used && !c.Leaving && !o.Cluster.named(c.Member) && !o.leftOut(c) {
			a.Member = c.Member
			return &a
		}
	}
	zone := o.emptiestZone(instead)
	if c := o.claim(instead); c != nil && slices.Contains(o.Want.Zones, c.Zone) {
		zone = c.Zone
	}
	serial := o.serialFor(1) + 1
	return &Action{Kind: CreateClaim, Member: o.Want.name(serial), Serial: serial, Zone: zone, Why: a.Why}
}

// serialFor is the number after which so many names in a row are free: objects of others may have the next ones.
func (o *Observed) serialFor(names int) int64 {
	serial := o.serial()
	for i := 1; i <= names; i++ {
		if slices.Contains(o.Taken, o.Want.name(serial+int64(i))) {
			serial, i = serial+int64(i), 0
		}
	}
	return serial
}

// serial is the last number that a member had, as far as anybody knows: the status may be an older one, and then has a smaller
// number.
func (o *Observed) serial() int64 {
	serial := o.Kept.Serial
	for i := range o.Claims {
		serial = max(serial, o.Claims[i].Serial)
	}
	names := slices.Concat(o.Kept.Founders, o.Kept.Dropped)
	for i := range o.Pods {
		names = append(names, o.Pods[i].Member)
	}
	if o.Cluster != nil {
		for i := range o.Cluster.Members {
			names = append(names, o.Cluster.Members[i].Name)
		}
		for i := range o.Cluster.Jobs {
			names = append(names, o.Cluster.Jobs[i].Adds...)
		}
	}
	for _, name := range names {
		if digits, ok := strings.CutPrefix(name, o.Want.Prefix); ok {
			number, _ := strconv.ParseInt(digits, 10, 32) // another name has none
			serial = max(serial, number)
		}
	}
	return serial
}
