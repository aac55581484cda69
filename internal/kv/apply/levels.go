package apply

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// levelTable holds the active feature level (package level). The goroutine that calls Apply changes it; any goroutine may read
// it.
//
// On disk it is the format of the store, so that a build which does not know the level refuses to open the store, or a snapshot
// of it.
type levelTable struct {
	own     level.Level                                      // of this build
	needs   func(payload []byte) (_ level.Level, known bool) // Options.Needs
	ungated bool                                             // Faults.Ungated
	config  *configTable
	members *memberTable
	active  atomic.Uint32
	raised  bool // by the batch under way; of the goroutine that calls Apply
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
	return needs > t.now() && !t.ungated, nil
}

// raise executes a RaiseOp: it changes nothing unless all members, learners too, have published that they know the level. The
// error stops a member that has published so, and runs an earlier build since.
func (t *levelTable) raise(w rowWriter, cluster consensus.ClusterID, op *kv.RaiseOp) (rejection, err error) {
	switch {
	case op.Level <= t.now():
		return nil, nil
	case len(t.heldBack(op.Level)) > 0:
		return kv.ErrBadCommand, nil // as on members that do not know the command
	case op.Level > t.own:
		return nil, &level.TooLowError{Own: t.own, Active: op.Level}
	}
	w.Set(rowIdentity, identity(cluster, op.Level))
	t.set(op.Level)
	t.raised = true
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
