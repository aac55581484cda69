package apply

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/engine"
)

// levelTable holds the active feature level (package level). The goroutine that calls Apply changes it; any goroutine may read
// it.
//
// On disk it is the format of the store, so that a build which does not know the level refuses to open the store, or a snapshot
// of it.
//
// The level is shown from the moment that its entry is applied here, which is before the store is flushed. It never sinks
// again: the entry has committed, so a quorum has it on disk, and this member applies it again after a crash. An earlier build
// that is started on the directory before the flush finds the former level in the store, comes to the entry in the log, and
// stops there (raise), before any row of the level is written: commit flushes the entry's batch before it applies the next
// one.
type levelTable struct {
	own    level.Level                                      // of this build
	needs  func(payload []byte) (_ level.Level, known bool) // Options.Needs
	faults Faults                                           // Options.Faults

	config  *configTable
	members *memberTable
	active  atomic.Uint32
	rise    atomic.Pointer[level.Rise] // replaced, not changed
	raised  bool                       // by the batch under way; of the goroutine that calls Apply
}

// identity is the row of a cluster's store at a level.
func identity(cluster consensus.ClusterID, l level.Level) []byte {
	return binary.AppendUvarint([]byte{byte(l)}, uint64(cluster))
}

// now returns the active level.
func (t *levelTable) now() level.Level { return level.Level(t.active.Load()) }

func (t *levelTable) set(l level.Level) { t.active.Swap(uint32(l)) }

// judge decides whether an encoded command is applied. One that needs more than the active level is treated as by builds that
// do not know it: a command that does not decode, and changes nothing. One that this build does not know must not be skipped,
// for other builds may know it: the error stops the member.
func (t *levelTable) judge(e *consensus.Entry) (rejected bool, err error) {
	needs, known := t.needs(e.Payload)
	switch {
	case !known:
		return false, fmt.Errorf("%w: entry %v", ErrUnknownCommand, e.Position())
	case needs > t.own:
		return false, fmt.Errorf("%w: entry %v, of feature level %d, and this build knows %d at most", ErrUnknownCommand,
			e.Position(), needs, t.own)
	}
	return needs > t.now() && !t.faults.Ungated, nil
}

// raise executes a RaiseOp: it changes nothing unless all members, learners too, have published that they know the level, and
// the policy allows it. The error stops a member that has published so, and runs an earlier build since.
func (t *levelTable) raise(w rowWriter, cluster consensus.ClusterID, op *kv.RaiseOp) (rejection, err error) {
	switch {
	case op.Level <= t.now():
		return nil, nil
	case t.lowest(&op.Of) < op.Level, !op.Finalize && !t.rise.Load().Allows(op.Level) && !t.faults.Unsoaked:
		return kv.ErrBadCommand, nil // as on members that do not know the command
	case op.Level > t.own:
		return nil, &level.TooLowError{Own: t.own, Active: op.Level}
	}
	w.Set(rowIdentity, identity(cluster, op.Level))
	t.set(op.Level)
	t.raised = true
	rise := *t.rise.Load()
	rise.Level, rise.Seconds = 0, 0
	rise.Generation++
	t.endDowngrade(&rise) // the former build cannot return any more
	t.setRise(w, rise)
	return nil, nil
}

// common returns the highest level that all members know, as far as this build knows levels.
func (t *levelTable) common() level.Level {
	l := t.own
	for l > t.now() && len(t.heldBack(l)) > 0 {
		l--
	}
	return l
}

// heldBack returns the members that have not published that they know a level: those of the configuration that was applied
// last, the outgoing ones and the learners too, in the order of their ids. A configuration that has settled may still name some
// that it removed.
func (t *levelTable) heldBack(l level.Level) []level.Holder {
	var holders []level.Holder
	config := t.config.last()
	for _, id := range config.IDs() {
		if _, removed := t.members.removed(id); removed {
			continue
		}
		published, started := t.members.publishedBy(id)
		if started && published.Level >= l {
			continue
		}
		h := level.Holder{Name: published.Name, Build: published.Build, Level: published.Level, Started: started}
		if known, _ := config.Member(id); h.Name == "" {
			h.Name = known.Name
		}
		if h.Name == "" {
			h.Name = id.String()
		}
		holders = append(holders, h)
	}
	return holders
}

// The row of level.Rise: kind of the policy, its seconds, the level that the cluster is born at, the lowest one
// ever, that which soaks, its seconds, and the generation; while a downgrade is under way, also the numbers of its target, the
// kind of the policy before it, and its seconds.

func appendRise(dst []byte, r *level.Rise) []byte {
	dst = binary.AppendUvarint(append(dst, byte(r.Policy.Kind)), uint64(r.Policy.Seconds))
	dst = binary.AppendUvarint(append(dst, byte(r.Born), byte(r.Lowest), byte(r.Level)), uint64(r.Seconds))
	dst = binary.AppendUvarint(dst, r.Generation)
	if r.Target.IsZero() {
		return dst
	}
	dst = binary.AppendUvarint(binary.AppendUvarint(dst, uint64(r.Target.Major)), uint64(r.Target.Minor))
	return binary.AppendUvarint(append(dst, byte(r.Before.Kind)), uint64(r.Before.Seconds))
}

func decodeRise(row []byte) (level.Rise, error) {
	d := riseReader{rest: row}
	r := level.Rise{Policy: level.Policy{Kind: level.PolicyKind(d.byte()), Seconds: d.seconds()}}
	r.Born, r.Lowest, r.Level = level.Level(d.byte()), level.Level(d.byte()), level.Level(d.byte())
	r.Seconds, r.Generation = d.seconds(), d.uvarint(math.MaxUint64)
	if len(d.rest) > 0 {
		r.Target = level.Release{Major: uint32(d.uvarint(math.MaxUint32)), Minor: uint32(d.uvarint(math.MaxUint32))}
		r.Before = level.Policy{Kind: level.PolicyKind(d.byte()), Seconds: d.seconds()}
		d.bad = d.bad || r.Target.IsZero() || !r.Before.Valid()
	}
	if d.bad || len(d.rest) > 0 {
		return level.Rise{}, fmt.Errorf("%w: rise of the level %x", ErrCorruptRow, row)
	}
	return r, nil
}

// riseReader takes numbers from a row. Once one is absent or too large, it is bad.
type riseReader struct {
	rest []byte
	bad  bool
}

func (d *riseReader) byte() byte {
	if len(d.rest) == 0 {
		d.bad = true
		return 0
	}
	b := d.rest[0]
	d.rest = d.rest[1:]
	return b
}

func (d *riseReader) uvarint(most uint64) uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 || v > most {
		d.bad, d.rest = true, nil
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *riseReader) seconds() int64 { return int64(d.uvarint(uint64(maxNoted))) }

// maxNoted bounds the seconds that are noted for a soak: past every policy's.
const maxNoted = int64(2 * level.MaxSoak / time.Second)

func (t *levelTable) loadRise(eng engine.Engine) error {
	row, found, err := eng.Get(rowRise)
	if err != nil {
		return fmt.Errorf("apply: read the policy of levels: %w", err)
	}
	var rise level.Rise
	if found {
		if rise, err = decodeRise(row); err != nil {
			return err
		}
	}
	t.rise.Swap(&rise)
	return nil
}

func (t *levelTable) setRise(w rowWriter, rise level.Rise) {
	w.Set(rowRise, appendRise(nil, &rise))
	t.rise.Swap(&rise)
}

// setPolicy executes a LevelPolicyOp.
func (t *levelTable) setPolicy(w rowWriter, op *kv.LevelPolicyOp) error {
	rise := *t.rise.Load()
	lowest := t.lowest(&op.Of)
	switch {
	case op.Of.Generation != rise.Generation, op.Initial && lowest == 0:
		return kv.ErrBadCommand
	case op.Returned:
		if lowest == 0 || !t.returned(&op.Of) {
			return kv.ErrBadCommand
		}
		t.endDowngrade(&rise)
	case !op.Policy.Valid():
		return kv.ErrBadCommand
	case op.Initial:
		if rise.Born == 0 {
			rise.Born = min(lowest, rise.Lowest)
		}
		if rise.Policy.Kind == level.PolicyUnset {
			rise.Policy = op.Policy
		}
	case op.Target.IsZero():
		t.endDowngrade(&rise)
		rise.Policy = op.Policy
	case !rise.Target.IsZero(), !rise.Policy.Valid(), op.Policy.Kind != level.PolicyHold:
		return kv.ErrBadCommand
	case t.faults.Unheld:
		rise.Target, rise.Before = op.Target, rise.Policy
	default:
		rise.Policy, rise.Target, rise.Before = op.Policy, op.Target, rise.Policy
	}
	rise.Generation++
	t.setRise(w, rise)
	return nil
}

// endDowngrade ends a downgrade, if one is under way.
func (t *levelTable) endDowngrade(rise *level.Rise) {
	soaks, seconds := rise.Level, rise.Seconds
	rise.EndDowngrade()
	if t.faults.KeepsSoak {
		rise.Level, rise.Seconds = soaks, seconds
	}
}

// returned reports whether a downgrade is under way that is complete: all members run builds of its target or of earlier
// releases.
func (t *levelTable) returned(of *kv.LevelView) bool {
	target := t.rise.Load().Target
	if target.IsZero() || len(of.IDs) == 0 {
		return false
	}
	for _, id := range of.IDs {
		published, _ := t.members.publishedBy(consensus.MemberID(id))
		if release, ok := level.ParseRelease(published.Build); !ok || release.Compare(target) > 0 {
			return false
		}
	}
	return true
}

// soak executes a SoakOp.
func (t *levelTable) soak(w rowWriter, op *kv.SoakOp) error {
	rise := *t.rise.Load()
	switch {
	case op.Level <= t.now() || t.lowest(&op.Of) < op.Level:
		return kv.ErrBadCommand
	case op.Level != rise.Level:
		rise.Level, rise.Seconds = op.Level, 0
		rise.Generation++
	case op.Seconds <= rise.Seconds:
		return nil
	default:
		rise.Seconds = min(op.Seconds, maxNoted)
	}
	t.setRise(w, rise)
	return nil
}

// takePublished notes the lowest level, and ends the soak if a member went back to a build without the level that soaks.
func (t *levelTable) takePublished(w rowWriter, op *kv.PublishOp) {
	rise := *t.rise.Load()
	former := rise
	if rise.Lowest == 0 || op.Level < rise.Lowest {
		rise.Lowest = op.Level
	}
	if op.Level < rise.Level {
		rise.Level, rise.Seconds = 0, 0
		rise.Generation++
	}
	if rise != former {
		t.setRise(w, rise)
	}
}

// lowest returns the lowest level that the members of a configuration have published: zero if one has published none, or was
// removed, or if another configuration entry has been applied since, or the policy is of another generation. It does not look
// at the members of the configuration here: see kv.LevelView.
func (t *levelTable) lowest(of *kv.LevelView) level.Level {
	if len(of.IDs) == 0 || t.config.entry() != consensus.Index(of.Config) || of.Generation != t.rise.Load().Generation {
		return 0
	}
	lowest := ^level.Level(0)
	for _, id := range of.IDs {
		published, _ := t.members.publishedBy(consensus.MemberID(id))
		lowest = min(lowest, published.Level)
	}
	return lowest
}

// levelView returns what a command about levels names: the generation of the policy, and the members now, those of the
// configuration that was applied last, which are not removed.
func (t *levelTable) levelView() kv.LevelView {
	generation := t.rise.Load().Generation
	config, entry := t.config.lastWithEntry() // of one moment: the members of one must not go with the entry of another
	of := kv.LevelView{Config: uint64(entry), Generation: generation}
	for _, id := range config.IDs() {
		if _, removed := t.members.removed(id); !removed {
			of.IDs = append(of.IDs, uint64(id))
		}
	}
	return of
}
