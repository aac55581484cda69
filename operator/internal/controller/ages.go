package controller

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// ages tells for how long things have been as they are, by the clock of this process alone: times in objects and in answers
// are those of other machines, whose clocks may be hours apart. An operator that has just started has seen nothing for long,
// so that it waits rather too long than too short.
type ages struct {
	now time.Time
	was map[string]mark // at the last look that succeeded
	is  map[string]mark // at this one
}

// mark is since when something has been seen as it is.
type mark struct {
	text  string
	since time.Time
}

// jobAge begins the names of membership jobs.
const jobAge = "job "

// agesOf begins a look at a cluster. Looks at one cluster follow each other.
func (r *Clusters) agesOf(name types.NamespacedName) *ages {
	a := &ages{now: r.Now(), is: map[string]mark{}}
	if was, known := r.ages.Load(name); known {
		a.was = was.(map[string]mark)
	}
	return a
}

// of is since when a thing has been as the text says.
func (a *ages) of(thing, text string) time.Duration {
	m, known := a.was[thing]
	if !known || m.text != text {
		m = mark{text: text, since: a.now}
	}
	a.is[thing] = m
	return max(0, a.now.Sub(m.since))
}

// keepJobs lets jobs be as they were, at a look at which no leader told of them.
func (a *ages) keepJobs() {
	for thing, m := range a.was {
		if strings.HasPrefix(thing, jobAge) {
			a.is[thing] = m
		}
	}
}
