package model

// Scenario is a cluster, its possible changes, and the bounds of an exploration.
type Scenario struct {
	Name      string
	Members   int
	Configs   []Config
	Next      [][]int8 // changes allowed from each configuration
	Proposals int
	Footprint [MaxProposals]uint8 // keys of each proposal, as bits
	Lies      [MaxProposals]uint8 // keys of a proposal's second payload, if its client lies (ADR 0054); 0: it does not
	MaxTerm   int8
	Crashes   int8

	Patience [MaxMembers]int8 // ticks; zero without leader leases
	Recovers bool             // quorum may be lost: in configuration 1+i member i is the only voter
	Disks    bool             // a minority of the members may lose their disks

	// For Search.
	Revisions []int8
	Attempts  int8 // per proposal
	Reads     bool
}
