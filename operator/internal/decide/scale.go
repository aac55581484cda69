package decide

import "slices"

// fewer removes a voter where there are too many: one that does not work before one that does, the leader last, and from the
// zone with the most of them.
func fewer(o *Observed) *Action {
	all, work := o.Cluster.voters()
	if all <= o.Want.Members {
		return nil
	}
	inZone := map[string]int{}
	for i := range o.Cluster.Members {
		if c := o.claim(o.Cluster.Members[i].Name); c != nil && o.Cluster.Members[i].Voter {
			inZone[c.Zone]++
		}
	}
	rank := func(m *Member) []int64 {
		r := []int64{0, 0, 0, 0}
		if !m.works() {
			r[0] = 1
		}
		if !m.Leader {
			r[1] = 1
		}
		if c := o.claim(m.Name); c != nil {
			r[2], r[3] = int64(inZone[c.Zone]), c.Serial
		}
		return r
	}
	var out *Member
	for i := range o.Cluster.Members {
		if m := &o.Cluster.Members[i]; m.Voter && (out == nil || slices.Compare(rank(m), rank(out)) > 0) {
			out = m
		}
	}
	if out.works() {
		work--
	}
	if work < Quorum(all-1) {
		return wait("%d voters are wanted of %d, and too few work to remove one", o.Want.Members, all)
	}
	return &Action{Kind: Remove, Member: out.Name, ID: out.ID, Why: "fewer members are wanted"}
}

// more adds a voter where there are too few, while a quorum of them will work before the newcomer does.
func more(o *Observed) *Action {
	all, work := o.Cluster.voters()
	for i := range o.Cluster.Members {
		if o.Cluster.Members[i].Joining {
			name := o.Cluster.Members[i].Name
			return wait("%s has not caught up yet%s", name, after(": ", o.why(name)))
		}
	}
	switch {
	case all >= o.Want.Members:
		return nil
	case work < Quorum(all):
		return wait("%d members are wanted, and too few of %d work to add one", o.Want.Members, all)
	}
	return o.newcomer(Action{Kind: Add, Why: "more members are wanted"}, "")
}

// drains moves leadership away from members whose nodes are drained, and lets them lead again elsewhere.
func drains(o *Observed) *Action {
	free := 0 // voters that may lead
	for i := range o.Cluster.Members {
		if m := &o.Cluster.Members[i]; m.works() && !m.Cordoned {
			free++
		}
	}
	for i := range o.Cluster.Members {
		m := &o.Cluster.Members[i]
		c, p := o.claim(m.Name), o.pod(m.Name)
		switch {
		case c == nil || !m.Voter:
		case p != nil && p.Draining && !m.Cordoned && m.works() && free > 1:
			return &Action{Kind: Cordon, Member: m.Name, ID: m.ID, Why: "its node is drained"}
		case c.Cordon && p != nil && !p.Draining && !p.NodeLost && m.works():
			return &Action{Kind: Uncordon, Member: m.Name, ID: m.ID, Why: "its node is drained no more"}
		}
	}
	return nil
}

// foundsAgain tells whether founders whose pods still have the flags of founders would begin anew, were they all to find their
// disks empty: beside voters that came later that were a second cluster, and one that was restored would have the past state
// again.
func (o *Observed) foundsAgain() bool {
	return o.Want.Restore || slices.ContainsFunc(o.Cluster.Members, func(m Member) bool {
		return m.Voter && !slices.Contains(o.Kept.Founders, m.Name)
	})
}

// roll restarts one member whose pod is not as the spec wants it. Members that do not work come first: nothing is lost by that,
// and it is the way back from a version that does not start.
func roll(o *Observed) *Action {
	stale := func(m *Member) bool {
		p := o.pod(m.Name)
		return p != nil && !p.Leaving && (p.Template != o.Want.Template || p.Founding && o.foundsAgain())
	}
	var next *Member
	for i := range o.Cluster.Members {
		m := &o.Cluster.Members[i]
		if !stale(m) {
			continue
		}
		if !m.Active && o.Cluster.MayTake(m) {
			return &Action{Kind: DeletePod, Member: m.Name, Why: "it does not work, and the spec changed"}
		}
		if next == nil {
			next = m
		}
	}
	switch {
	case next == nil:
		return nil
	case len(o.Cluster.Blockers) > 0:
		return wait("%s waits for its restart: %s%s", next.Name, o.Cluster.Blockers[0],
			after("; ", o.whyAny(o.Cluster.names())))
	case !o.Cluster.MayTake(next):
		return wait("%s waits for its restart: too few others work", next.Name)
	}
	for i := range o.Cluster.Members { // one that was restarted must be back
		m := &o.Cluster.Members[i]
		if p := o.pod(m.Name); m.Voter && (!m.works() || p == nil || p.Leaving || !p.Ready) {
			return wait("%s waits for its restart until %s works%s", next.Name, m.Name, after(": ", o.whyOf(m)))
		}
	}
	return &Action{Kind: DeletePod, Member: next.Name, Evict: true, Why: "the spec changed"}
}

// absent waits for members that restart, or are down, and for the ends of processes that were removed: their claims go after
// that. A process on a lost node may never be known to end.
func absent(o *Observed) *Action {
	for i := range o.Cluster.Members {
		m := &o.Cluster.Members[i]
		if p := o.pod(m.Name); p == nil || p.Leaving || m.Voter && (!m.works() || !p.Ready) {
			return wait("%s is not ready%s", m.Name, after(": ", o.whyOf(m)))
		}
	}
	for i := range o.Pods {
		if p := &o.Pods[i]; p.Leaving && !p.NodeLost && !p.Recovers && !o.Cluster.named(p.Member) {
			return wait("%s was removed, and its pod ends", p.Member)
		}
	}
	return nil
}

// grow asks for larger claims. Pods run meanwhile, and are made while a file system waits for one to grow.
func grow(o *Observed) *Action {
	for i := range o.Claims {
		if c := &o.Claims[i]; c.Bytes < o.Want.Bytes && !c.Refused && !c.Leaving && o.Cluster.named(c.Member) {
			return &Action{Kind: ResizeClaim, Member: c.Member, Why: "more storage is wanted"}
		}
	}
	return nil
}
