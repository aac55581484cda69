package decide

import "slices"

// Next returns the one action for what is observed; while the cluster is paused, only one that touches no member. A consent
// that is there meanwhile is void: nobody knows what is done by hand before the pause ends.
func Next(o *Observed) Action {
	a := o.uncontradicted(next(o))
	switch {
	case !o.Want.Paused || slices.Contains(whilePaused, a.Kind):
		return a
	case o.Want.Consent != nil && !o.void(*o.Want.Consent):
		return Action{Kind: VoidConsent, Consent: o.Want.Consent, Why: "spec.paused is set, and a consent that is given " +
			"meanwhile counts for nothing"}
	case a.Kind == Wait:
		return *wait("paused by spec.paused%s", after(": ", a.Why))
	}
	return *wait("paused by spec.paused. The next step would be %s", a)
}

// next returns the one action for what is observed. The order of the rules is that of their urgency.
func next(o *Observed) Action {
	rules := []func(*Observed) *Action{recovery, founding, restoreProcesses, quorumLoss}
	if o.Cluster != nil && o.Kept.Founded {
		rules = []func(*Observed) *Action{recovery, voidConsent, restoreProcesses, lostNewcomers, jobs, leavers, lostMembers,
			fewer, more, spares, drains, roll, grow, doubted, absent, refused, tellDropped}
	}
	for _, rule := range rules {
		if action := rule(o); action != nil {
			return *action
		}
	}
	if o.Cluster == nil {
		return *o.noLeader()
	}
	return Action{Kind: Wait}
}
