package config

import (
	"fmt"
	"strings"
	"time"
	"unicode"
)

// maxZoneBytes bounds a zone's name, which is replicated and shown in tables.
const maxZoneBytes = 128

// careElections is the least --auto-care-dead-after, in election timeouts, so that a member which is slow or starts
// again does not count as dead.
const careElections = 5

// The limits of care that no flag sets.
const (
	// CareStable is how long a standby learner must have been fit to vote before it may.
	CareStable = 10 * time.Second
	// CareBudget is how many changes an hour may begin without an operator.
	CareBudget = 3
)

// AutoCare says whether the leader replaces a dead voter, only suggests it, or does nothing.
type AutoCare string

// The values of --auto-care.
const (
	CareOff     AutoCare = "off"
	CareSuggest AutoCare = "suggest"
	CareAuto    AutoCare = "auto"
)

var careSettings = []setting{
	{name: "auto-care", def: "off", arg: "MODE",
		help: "What the leader does about dead voters: 'off', 'suggest' (say which standby learner should take the place) or " +
			"'auto' (let it). Use one value at all members.",
		value: choices(func(c *Config) *AutoCare { return &c.Care.Mode }, CareOff, CareSuggest, CareAuto)},
	{name: "auto-care-dead-after", def: "10m0s", arg: "DURATION",
		help:  "How long a voter must have been silent to be taken for dead.",
		value: durations(func(c *Config) *time.Duration { return &c.Care.DeadAfter })},
	{name: "auto-care-voters", def: "0", arg: "N",
		help:  "Voters that the cluster should have: standby learners fill up to it; 0 means as many as there are.",
		value: numbers(func(c *Config) *int { return &c.Care.Voters }, 0, maxInt)},
}

func (c *Config) careFaults() Faults {
	var faults Faults
	if len(c.Zone) > maxZoneBytes || strings.TrimSpace(c.Zone) != c.Zone || strings.ContainsFunc(c.Zone,
		unicode.IsControl) {
		faults = append(faults,
			fmt.Sprintf("--zone %q must be a name of at most %d bytes, without blanks around it", c.Zone,
				maxZoneBytes))
	}
	if least := careElections * c.Consensus.ElectionTimeout; c.Care.Mode != CareOff && c.Care.DeadAfter < least {
		faults = append(faults,
			fmt.Sprintf("--auto-care-dead-after (%v) must be at least %d times --election-timeout (%v): a "+
				"member that starts again is not dead", c.Care.DeadAfter, careElections, c.Consensus.ElectionTimeout))
	}
	return faults
}
