package sim

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/keep"
	"github.com/quorate/quorate/internal/backup/ship"
	"github.com/quorate/quorate/internal/backup/survey"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/sim/dice"
	"github.com/quorate/quorate/internal/sim/kernel"
	"github.com/quorate/quorate/internal/storage/objects"
	"github.com/quorate/quorate/internal/storage/objects/objectstest"
)

// buckets are the places to which members of a world ship their backup.
type buckets struct {
	rng *rand.Rand
	// late worlds have places whose lists are late, and operations that take effect after they were cancelled, or after their
	// process ended. Both hide what came before: a gap may have no note then.
	late bool
	held int64 // bytes that a member keeps, and as much that may wait for the place
	seal int64 // milliseconds
	// atOnce is how many operations a place does at once: members must ask for no more.
	atOnce int
	all    [2]*bucket
	dirty  bool // places fail a little all the time
	// pace is how much faster time is for the backup: in half of the worlds a second of them is an hour by the clocks that
	// retention and proofs go by, so that hours and days of rules pass.
	pace  time.Duration
	rules *rand.Rand // of retention and of what is damaged
	// hostile says that somebody else can write to the places, and spoils what is there.
	hostile bool
	// nameBytes is the memory of a proof for names. In some worlds there is too little for all names since the last proof.
	nameBytes int64
	// forges says that somebody else can write to the first place, which is the only one then, and puts made-up names there,
	// but cannot change what is there.
	forges bool
	names  *rand.Rand // of those, and of the memory for names
	// seals says that policies have recipients.
	seals   bool
	sealing seals
}

// bucket is a place with faults, in time.
type bucket struct {
	*objectstest.Place
	run    *run
	url    string
	took   time.Duration // mean of an operation
	hung   time.Duration // it does nothing before this time
	locked bool          // it deletes nothing
	// spoiled are objects that somebody has damaged, touched says that somebody has damaged or removed some.
	spoiled map[string]bool
	touched bool
	forged  bool                                // somebody has put made-up names there
	sealed  bool                                // it had a policy with recipients
	based   time.Duration                       // when it took the last base
	taken   map[string]time.Duration            // when it took what it holds
	needs   map[backup.BaseName][]backup.Object // that manifests name
}

func newBuckets(r *run, seed uint64) *buckets {
	b := &buckets{rng: dice.Stream(seed, streamBuckets), atOnce: ship.LeastAtOnce + int(seed%4)}
	b.late = dice.Chance(b.rng, 0.4)
	b.dirty = dice.Chance(b.rng, 0.5)
	b.held = dice.Pick(b.rng, int64(8<<10), 64<<10, 1<<20)
	b.seal = dice.Pick(b.rng, int64(100), 300, 1000)
	b.rules, b.pace = dice.Stream(seed, streamRetention), 1
	if dice.Chance(b.rules, 0.5) {
		b.pace = 3600
	}
	b.hostile = dice.Chance(b.rules, 0.3)
	b.seals = dice.Chance(b.rules, 0.35)
	if b.names = dice.Stream(seed, streamNames); dice.Chance(b.names, 0.5) {
		b.nameBytes = survey.NameTimes * nameBytes * dice.Pick(b.names, int64(4), 10, 25)
	}
	b.forges = !b.hostile && !b.seals && dice.Chance(b.names, 0.4)
	right := kernel.Clock{Rate: 1}
	for i := range b.all {
		b.all[i] = &bucket{run: r, url: fmt.Sprintf("file:///%d", i), taken: map[string]time.Duration{},
			spoiled: map[string]bool{}, needs: map[backup.BaseName][]backup.Object{},
			Place: objectstest.NewPlace(b.rng.Uint64(), func() time.Time { return b.clock(&right, r.Now()) })}
		b.heal(b.all[i])
	}
	return b
}

// heal ends the faults of a place.
func (b *buckets) heal(at *bucket) {
	at.took, at.hung, at.locked = 2*time.Millisecond, 0, false
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

// nameBytes is what the name of a segment takes in memory.
const nameBytes = 128

// delay draws how long an operation takes until its effect, and how long its answer takes.
func (b *buckets) delay(now time.Duration, at *bucket) (effect, answer time.Duration) {
	effect, answer = dice.Exponential(b.rng, at.took/2), dice.Exponential(b.rng, at.took/2)
	return effect + max(0, at.hung-now), answer
}

// clock is what a clock shows to the backup: all that passes by it passes faster.
func (b *buckets) clock(c *kernel.Clock, now time.Duration) time.Time {
	begun := c.At(0)
	return begun.Add(c.At(now).Sub(begun) * b.pace)
}

// shipClock is the member's clock for the backup. Its error is that of the member's date.
func (h *host) shipClock() time.Time {
	return h.run.buckets.clock(&h.wall, h.run.Now()).Add(h.date)
}

// drawHours draws the parts of a policy that are hours and days to members.
func (b *buckets) drawHours(p *kv.BackupPolicy) {
	const hour = 3600
	p.SealMillis *= hour
	p.BaseSeconds = hour * dice.Pick(b.rules, int64(1), 2, 4)
	p.VerifySeconds = hour * dice.Pick(b.rules, int64(2), 4, 8)
	p.Keep = dice.Pick(b.rules, keep.All, "1h", "2h", "2h,daily:2", "5h", "5h,daily:1,weekly:1", "12h", "1d,daily:3")
}

// Put implements objects.Store.
func (b *bucket) Put(ctx context.Context, name string, body io.ReadSeeker, size int64) error {
	err := b.Place.Put(ctx, name, body, size)
	content, there := b.Bytes(name)
	if _, known := b.taken[name]; there && !known {
		b.taken[name] = b.run.Now()
		b.judgeRecipients(name, content)
		if n, parsed := backup.ParseBase(name); parsed == nil {
			b.needs[n], _ = backup.ObjectsWithin(&n, content, 0)
			b.based = b.run.Now()
		}
	}
	return err
}

// Delete implements objects.Store. Only retention deletes.
func (b *bucket) Delete(ctx context.Context, name string) error {
	if b.locked {
		return fmt.Errorf("delete %s: %w", name, objects.ErrDenied)
	}
	taken, there := b.taken[name]
	err := b.Place.Delete(ctx, name)
	if _, stays := b.Bytes(name); there && !stays {
		b.forget(name)
		b.removed(name, taken)
	}
	return err
}

// forget forgets what was known of an object that is gone.
func (b *bucket) forget(name string) {
	delete(b.taken, name)
	delete(b.spoiled, name)
	if n, err := backup.ParseBase(name); err == nil {
		delete(b.needs, n)
	}
}

// spoil damages, replaces or removes an object, and says what it did.
func (b *bucket) spoil(rng *rand.Rand) string {
	prefix := dice.Pick(rng, backup.LogPrefix, backup.BasePrefix, backup.FilePrefix)
	var names []string
	for _, name := range b.Names() {
		if strings.HasPrefix(name, prefix) && !b.spoiled[name] {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "nothing to spoil below " + prefix
	}
	name := names[len(names)-1-min(rng.IntN(len(names)), rng.IntN(len(names)))] // rather a late one
	content, _ := b.Bytes(name)
	what := dice.Pick(rng, "flips", "cuts", "removes", "replaces")
	b.touched = true
	if prefix == backup.LogPrefix && dice.Chance(rng, 0.5) {
		last := names[max(0, len(names)-1-rng.IntN(5)):]
		for _, name := range last {
			b.Remove(name)
			b.forget(name)
		}
		return fmt.Sprintf("somebody removes the last %d segments at %s", len(last), b.url)
	}
	switch what {
	case "flips":
		b.spoiled[name] = b.Flip(name, rng.IntN(max(len(content), 1)))
	case "cuts":
		b.spoiled[name] = len(content) > 0 && b.Cut(name, rng.IntN(len(content)))
	case "replaces":
		other, _ := b.Bytes(names[rng.IntN(len(names))])
		b.spoiled[name] = !bytes.Equal(other, content)
		b.Replace(name, other)
	default:
		b.Remove(name)
		b.forget(name)
	}
	return fmt.Sprintf("somebody %s %s at %s", what, name, b.url)
}

// leastForged is more than the bases that a member lists.
const leastForged = 9

// forge puts objects with made-up names, which look like those of members, and says what it did: bases of entries that the
// cluster has, segments that end with true states or beside them, and notes of retention of entries that there are not yet.
func (b *bucket) forge(rng *rand.Rand) string {
	var bases []backup.BaseName
	var segments []backup.SegmentName
	for _, name := range b.Names() {
		if _, own := b.taken[name]; !own {
			continue
		}
		if n, err := backup.ParseBase(name); err == nil {
			bases = append(bases, n)
		} else if n, err := backup.ParseSegment(name); err == nil {
			segments = append(segments, n)
		}
	}
	if len(bases) == 0 || len(segments) == 0 || len(b.run.suite.Backups().Said(b.url)) == 0 {
		return "nobody forges anything yet"
	}
	b.forged = true
	kind := dice.Pick(rng, backup.BasePrefix, backup.BasePrefix, backup.LogPrefix, backup.KeptPrefix)
	many := leastForged + rng.IntN(leastForged)
	for range many {
		name := madeUp(rng, kind, bases, segments)
		content := []byte(name)
		if kind == backup.LogPrefix && dice.Chance(rng, 0.3) {
			name, content = b.twisted(rng, &segments[rng.IntN(len(segments))])
		}
		if _, there := b.Bytes(name); !there {
			_ = b.Place.Put(context.Background(), name, bytes.NewReader(content), int64(len(content))) // it may fail, too
		}
	}
	return fmt.Sprintf("somebody puts %d names below %s at %s", many, kind, b.url)
}

// twisted is a segment with the sums of a true one, and another entry.
func (b *bucket) twisted(rng *rand.Rand, of *backup.SegmentName) (name string, content []byte) {
	content, _ = b.Bytes(of.String())
	segment, err := backup.Unpack(of, content)
	if err != nil {
		return of.String(), content
	}
	segment.Predecessor = backup.Hash{byte(rng.Uint32()), byte(rng.Uint32())}
	e := &segment.Items[rng.IntN(len(segment.Items))].Entry
	if e.Payload = bytes.Clone(e.Payload); len(e.Payload) > 0 {
		e.Payload[rng.IntN(len(e.Payload))]++
	}
	made, packed := backup.NewPacker().Pack(segment)
	return made.String(), packed
}

// madeUp makes up a name, beside those that are there.
func madeUp(rng *rand.Rand, kind string, bases []backup.BaseName, segments []backup.SegmentName) string {
	var hash backup.Hash
	for i := range hash {
		hash[i] = byte(rng.Uint32())
	}
	base, last := bases[rng.IntN(len(bases))], segments[len(segments)-1]
	switch kind {
	case backup.BasePrefix:
		base.Hash, base.Sum = hash, rng.Uint64()
		base.Index, base.Moment = last.End.Index+consensus.Index(rng.IntN(40)), last.Moment
		return base.String()
	case backup.KeptPrefix:
		n := backup.KeptName{Cluster: clusterID, Floor: 1 << 40, Time: base.Time, Hash: hash}
		return n.String()
	}
	segment := segments[max(rng.IntN(len(segments)), rng.IntN(len(segments)))] // rather a late one
	segment.Hash = hash
	if dice.Chance(rng, 0.5) {
		segment.First -= min(segment.First-1, consensus.Index(rng.IntN(20)))
	}
	if dice.Chance(rng, 0.3) {
		segment.Before = rng.Uint64()
	}
	if dice.Chance(rng, 0.3) {
		segment.End.Sum = rng.Uint64()
	}
	return segment.String()
}

// cure removes what is damaged and keeps new bases from being made, as the operator's documents say.
func (b *bucket) cure() {
	for _, name := range slices.Sorted(maps.Keys(b.spoiled)) {
		if b.spoiled[name] && !strings.HasPrefix(name, backup.LogPrefix) {
			b.Remove(name)
			b.forget(name)
		}
	}
}

// strikeBackup makes a place slow, hang, full or faulty for a while.
func (w *World) strikeBackup() {
	b := w.run.buckets
	at := b.all[b.rng.IntN(len(b.all))]
	lasts := dice.Between(b.rng, 500*time.Millisecond, 12*time.Second)
	if b.forges && dice.Chance(b.names, 0.7) {
		w.run.struck("backup", b.all[0].forge(b.names))
	}
	what := dice.Pick(b.rng, "slow", "hangs", "full", "refuses", "faulty")
	if b.pace > 1 && dice.Chance(b.rules, 0.2) {
		what = "keeps"
	}
	if b.hostile && dice.Chance(b.rules, 0.4) {
		w.run.struck("backup", at.spoil(b.rules))
		return
	}
	w.run.struck("backup", fmt.Sprintf("%s %s for %v", at.url, what, lasts))
	switch what {
	case "slow":
		at.took = dice.Between(b.rng, 50*time.Millisecond, 2*time.Second)
	case "hangs":
		at.hung = w.run.Now() + lasts
	case "full":
		at.SetCapacity(1)
	case "keeps":
		at.locked = true
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
