package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/sim/dice"
	"github.com/quorate/quorate/internal/storage/objects/objectstest"
)

// buckets are the places to which members of a world ship their backup.
type buckets struct {
	rng *rand.Rand
	// late worlds have places whose lists are late, and operations that take effect after they were cancelled, or after their
	// process ended. Both hide what came before: a gap may have no note then.
	late  bool
	held  int64 // bytes that a member keeps, and as much that may wait for the place
	seal  int64 // milliseconds
	all   [2]*bucket
	dirty bool // places fail a little all the time
}

// bucket is a place with faults, in time.
type bucket struct {
	*objectstest.Place
	url  string
	took time.Duration // mean of an operation
	hung time.Duration // it does nothing before this time
}

func newBuckets(r *run, seed uint64) *buckets {
	b := &buckets{rng: dice.Stream(seed, streamBuckets)}
	b.late = dice.Chance(b.rng, 0.4)
	b.dirty = dice.Chance(b.rng, 0.5)
	b.held = dice.Pick(b.rng, int64(8<<10), 64<<10, 1<<20)
	b.seal = dice.Pick(b.rng, int64(100), 300, 1000)
	for i := range b.all {
		b.all[i] = &bucket{url: fmt.Sprintf("file:///%d", i),
			Place: objectstest.NewPlace(b.rng.Uint64(), func() time.Time { return time.UnixMilli(r.Now().Milliseconds()) })}
		b.heal(b.all[i])
	}
	return b
}

// heal ends the faults of a place.
func (b *buckets) heal(at *bucket) {
	at.took, at.hung = 2*time.Millisecond, 0
	at.SetCapacity(0)
	f := objectstest.Faults{}
	if b.dirty {
		f = objectstest.Faults{Busy: 0.02, Gone: 0.02, Lost: 0.05, Cut: 0.02}
	}
	if b.late {
		f.StaleList, f.StaleRange = 0.3, 6
	}
	at.SetFaults(f)
}

// at returns the place of a URL.
func (b *buckets) at(url string) *bucket {
	for _, one := range b.all {
		if one.url == url {
			return one
		}
	}
	return nil
}

// delay draws how long an operation takes until its effect, and how long its answer takes.
func (b *buckets) delay(now time.Duration, at *bucket) (effect, answer time.Duration) {
	effect, answer = dice.Exponential(b.rng, at.took/2), dice.Exponential(b.rng, at.took/2)
	return effect + max(0, at.hung-now), answer
}

// strikeBackup makes a place slow, hang, full or faulty for a while.
func (w *World) strikeBackup() {
	b := w.run.buckets
	at := b.all[b.rng.IntN(len(b.all))]
	lasts := dice.Between(b.rng, 500*time.Millisecond, 12*time.Second)
	what := dice.Pick(b.rng, "slow", "hangs", "full", "refuses", "faulty")
	w.run.struck("backup", fmt.Sprintf("%s %s for %v", at.url, what, lasts))
	switch what {
	case "slow":
		at.took = dice.Between(b.rng, 50*time.Millisecond, 2*time.Second)
	case "hangs":
		at.hung = w.run.Now() + lasts
	case "full":
		at.SetCapacity(1)
	case "refuses":
		at.SetFaults(objectstest.Faults{Gone: 1})
	case "faulty":
		f := objectstest.Faults{Busy: 0.2, Gone: 0.2, Lost: 0.3, Cut: 0.3}
		if b.late {
			f.StaleList, f.StaleRange = 1, 10
		}
		at.SetFaults(f)
	}
	w.run.After(lasts, func() { b.heal(at) })
}
