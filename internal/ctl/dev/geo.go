package dev

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

const (
	geoOff     = "off"
	geoRegions = "regions"
	// maxRoundTrip is far beyond any two places on earth, and leaves election timeouts that a server accepts.
	maxRoundTrip = 2 * time.Second
	// A server's own pace suits members that are no farther apart. Beyond, the heart beats about once a round trip.
	nearRoundTrip = 100 * time.Millisecond
	// electionBeats is how many heartbeats an election timeout has at least: as few as a server accepts, because links
	// that are simulated lose nothing, and a user who tries it out does not like to wait.
	electionBeats = 5
	leastElection = 1000 // in ms, as that of a server
)

// The sites of --geo regions, in the order in which members take them, and the round trips between them in ms.
var (
	sites     = []string{"us-east", "us-west", "eu", "ap", "sa"}
	siteTrips = [][]int{
		{0, 65, 68, 148, 114},
		{65, 0, 121, 97, 175},
		{68, 121, 0, 202, 178},
		{148, 97, 202, 0, 258},
		{114, 175, 178, 258, 0},
	}
)

// geo is how far members are apart: where the sites are, or all alike. The zero value is one machine.
type geo struct {
	regions bool
	all     time.Duration
}

// parseGeo reads --geo.
func parseGeo(text string) (geo, error) {
	switch text {
	case "", geoOff:
		return geo{}, nil
	case geoRegions:
		return geo{regions: true}, nil
	}
	trip, err := time.ParseDuration(text)
	if err != nil {
		return geo{}, &refusal{ErrPlan, fmt.Sprintf("--geo %q: give the round trip between any two members, such as 50ms, "+
			"or %s, or %s", text, geoRegions, geoOff)}
	}
	if trip < 0 || trip > maxRoundTrip {
		return geo{}, &refusal{ErrPlan, fmt.Sprintf("--geo %s: choose a round trip of at most %v", text, maxRoundTrip)}
	}
	return geo{all: trip}, nil
}

func (g geo) isFar() bool { return g.regions || g.all > 0 }

// trip is the round trip between two members, by their places in the plan.
func (g geo) trip(a, b int) time.Duration {
	switch {
	case a == b:
		return 0
	case g.regions:
		return time.Duration(siteTrips[a][b]) * time.Millisecond
	}
	return g.all
}

func (g geo) longest(members int) time.Duration {
	var longest time.Duration
	for a := range members {
		for b := range a {
			longest = max(longest, g.trip(a, b))
		}
	}
	return longest
}

// flags are what a member must be told so that it is as far from the others, and patient enough for that.
func (g geo) flags(seats []seat, self int) []string {
	if !g.isFar() {
		return nil
	}
	var delays []string
	for i, s := range seats {
		if i != self && g.regions {
			delays = append(delays, s.name+"="+(g.trip(self, i)/2).String())
		}
	}
	if !g.regions { // without names it holds for members that are added, too
		delays = []string{(g.all / 2).String()}
	}
	var flags []string
	if len(delays) > 0 {
		flags = append(flags, "--peer-delay="+strings.Join(delays, ","))
	}
	if longest := g.longest(len(seats)); longest > nearRoundTrip {
		beat := int(math.Ceil(milliseconds(longest)))
		flags = append(flags, "--heartbeat-interval="+strconv.Itoa(beat),
			"--election-timeout="+strconv.Itoa(max(leastElection, electionBeats*beat)))
	}
	return flags
}

// story tells a person what is simulated; nothing if nothing is.
func (g geo) story(seats []seat) []string {
	switch {
	case !g.isFar() || len(seats) < 2:
		return nil
	case !g.regions:
		return []string{fmt.Sprintf("simulating %v round trip between any two members, none to clients; --geo %s ends it",
			g.all, geoOff)}
	}
	lines := []string{"simulating these round trips between members in ms, none to clients; --geo " + geoOff + " ends it"}
	labels, label, width := make([]string, len(seats)), 0, len("999")
	for i, s := range seats {
		if labels[i] = s.name; s.name != sites[i] { // named before it was moved
			labels[i] += " in " + sites[i]
		}
		label, width = max(label, len(labels[i])), max(width, len(s.name))
	}
	row := func(name string, cell func(i int) string) {
		line := fmt.Sprintf("  %-*s", label, name)
		for i := range seats {
			line += fmt.Sprintf("  %*s", width, cell(i))
		}
		lines = append(lines, line)
	}
	row("", func(i int) string { return seats[i].name })
	for a := range seats {
		row(labels[a], func(b int) string {
			if a == b {
				return "-"
			}
			return strconv.FormatFloat(milliseconds(g.trip(a, b)), 'f', -1, 64)
		})
	}
	return lines
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
