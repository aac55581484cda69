package doctor

import "github.com/quorate/quorate/api/quoratepb"

// rules find what is wrong. Each looks for a few codes, which belong together.
var rules = []func(*patient) []Finding{
	(*patient).alarms, (*patient).quorumLost, (*patient).membersDown, (*patient).leaderless, (*patient).identities,
	(*patient).links, (*patient).unresolved, (*patient).addresses, (*patient).authorities, (*patient).slowLinks,
	(*patient).stalls, (*patient).disks, (*patient).syncs, (*patient).stores, (*patient).applies,
	(*patient).followers, (*patient).jobs, (*patient).elections, (*patient).clocks,
	(*patient).watchers, (*patient).leases, (*patient).puts, (*patient).refusals, (*patient).limits, (*patient).processes,
	(*patient).hotPrefix,
	(*patient).certificates, (*patient).security, (*patient).voterCounts, (*patient).zones, (*patient).levels,
	(*patient).audits, (*patient).keys, (*patient).backup, (*patient).unobserved,
}

// Judge returns what is wrong with a cluster, causes before their effects and the worst first.
func Judge(c *quoratepb.Collected) []Finding {
	p := examine(c)
	var all []Finding
	for _, rule := range rules {
		all = append(all, rule(p)...)
	}
	return order(all)
}
