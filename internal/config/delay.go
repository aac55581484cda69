package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// PeerDelay is the delay that is added to what is sent to a member; without a name, to every member that is not named.
type PeerDelay struct {
	Name  string
	Delay time.Duration
}

// electionWays is how many messages one after the other an election takes: two requests and two answers.
const electionWays = 4

var experimentalSettings = []setting{
	{name: "peer-delay", arg: "DELAY",
		help: "For trying out, not for use: delay everything that is sent to other members. A time such as 25ms, half the " +
			"round trip if all members have it, or NAME=TIME,… for each member by its name.",
		value: field[[]PeerDelay]{func(c *Config) *[]PeerDelay { return &c.PeerDelays }, parseDelays, formatDelays, nil}},
}

var errNotDelay = errors.New("write a time such as 25ms, or NAME=25ms,… for each member by its name")

// parseDelays reads "25ms", "eu=34ms,ap=74ms", or both: "25ms,ap=74ms".
func parseDelays(text string) ([]PeerDelay, error) {
	var delays []PeerDelay
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		name, amount, named := strings.Cut(part, "=")
		if !named {
			name, amount = "", part
		}
		delay, err := time.ParseDuration(strings.TrimSpace(amount))
		switch name = strings.TrimSpace(name); {
		case err != nil || named && name == "":
			return nil, fmt.Errorf("%q is no delay: %w", part, errNotDelay)
		case delay < 0:
			return nil, fmt.Errorf("%q %w", part, errNegative)
		case !slices.ContainsFunc(delays, func(d PeerDelay) bool { return d.Name == name }):
			delays = append(delays, PeerDelay{name, delay})
		case named:
			return nil, fmt.Errorf("names %s twice", name)
		default:
			return nil, errors.New("has two times without a name: " + errNotDelay.Error())
		}
	}
	return delays, nil
}

func formatDelays(delays []PeerDelay) string {
	var parts []string
	for _, d := range delays {
		if d.Name == "" {
			parts = append(parts, d.Delay.String())
		} else {
			parts = append(parts, d.Name+"="+d.Delay.String())
		}
	}
	return strings.Join(parts, ",")
}

// PeerDelay is the delay that is added to what is sent to the named member. The name is empty if it is unknown.
func (c *Config) PeerDelay(name string) time.Duration {
	var all time.Duration
	for _, d := range c.PeerDelays {
		switch d.Name {
		case "":
			all = d.Delay
		case name:
			return d.Delay
		}
	}
	return all
}

func (c *Config) delayFaults() Faults {
	var faults Faults
	var longest time.Duration
	for _, d := range c.PeerDelays {
		longest = max(longest, d.Delay)
		if d.Name != "" && d.Name == c.Name {
			faults = append(faults, "--peer-delay names this member itself, "+d.Name+": name the others")
		}
	}
	if least := electionWays * longest; least > c.Consensus.ElectionTimeout {
		faults = append(faults,
			fmt.Sprintf("--peer-delay (%v) is too long for --election-timeout (%v), in which votes go to "+
				"and fro: set that to at least %v", longest, c.Consensus.ElectionTimeout, least))
	}
	return faults
}

func (c *Config) warnDelay() {
	if len(c.PeerDelays) > 0 {
		c.warn("--peer-delay=%s: everything that is sent to other members is delayed on purpose, for trying out",
			formatDelays(c.PeerDelays))
	}
}

// warnNonMembers warns of delays for names that are not in --initial-cluster. That is no fault: the members may join later.
func (c *Config) warnNonMembers() {
	for _, d := range c.PeerDelays {
		if d.Name != "" && len(c.Bootstrap.InitialCluster) > 0 && memberIndex(c.Bootstrap.InitialCluster, d.Name) < 0 {
			c.warn("--peer-delay names %s, which --initial-cluster does not: its members are %s", d.Name,
				memberNames(c.Bootstrap.InitialCluster))
		}
	}
}
