package decide

// Next returns the one action for what is observed. The order of the rules is that of their urgency.
func Next(o *Observed) Action {
	rules := []func(*Observed) *Action{recovery, founding, restoreProcesses, quorumLoss}
	if o.Cluster != nil && o.Kept.Founded {
		rules = []func(*Observed) *Action{recovery, voidConsent, restoreProcesses, lostNewcomers, jobs, leavers, lostMembers,
			fewer, more, spares, drains, roll, grow, absent, tellDropped}
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
