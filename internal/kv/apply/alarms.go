package apply

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/engine"
)

// alarmTable holds the raised alarms. The goroutine that calls Apply changes it; any goroutine may read it.
type alarmTable struct {
	// The effects of the alarms, for the goroutine that calls Apply.
	noSpace, corrupt bool

	mu     sync.RWMutex
	raised []kv.Alarm // sorted by member, then kind; replaced, not changed
}

func (t *alarmTable) load(eng engine.Engine) error {
	err := scan(eng, []byte{tableState, rowAlarm}, func(rest, _ []byte) error {
		if len(rest) != 9 {
			return fmt.Errorf("%w: alarm %x", ErrCorruptRow, rest)
		}
		t.raised = append(t.raised, kv.Alarm{Member: binary.BigEndian.Uint64(rest), Kind: kv.AlarmKind(rest[8])})
		return nil
	})
	t.noSpace, t.corrupt = forbidden(t.raised)
	return err
}

// list returns the raised alarms. The list must not be modified.
func (t *alarmTable) list() []kv.Alarm {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.raised
}

// change raises or disarms alarms, and returns them: the raised one, even if it was raised before, and those that it disarms.
func (t *alarmTable) change(w rowWriter, op *kv.AlarmOp) []kv.Alarm {
	touched := []kv.Alarm{}
	if op.Activate {
		if op.Kind == kv.AlarmNone {
			return touched
		}
		alarm := kv.Alarm{Member: op.Member, Kind: op.Kind}
		if at, found := slices.BinarySearchFunc(t.raised, alarm, compareAlarms); !found {
			w.Set(alarmRow(alarm), nil)
			t.set(slices.Insert(slices.Clone(t.raised), at, alarm))
		}
		return append(touched, alarm)
	}
	var left []kv.Alarm
	for _, alarm := range t.raised {
		if (op.Member == 0 || op.Member == alarm.Member) && (op.Kind == kv.AlarmNone || op.Kind == alarm.Kind) {
			w.DeleteRaw(alarmRow(alarm))
			touched = append(touched, alarm)
		} else {
			left = append(left, alarm)
		}
	}
	t.set(left)
	return touched
}

func (t *alarmTable) set(alarms []kv.Alarm) {
	t.noSpace, t.corrupt = forbidden(alarms)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.raised = alarms
}

func compareAlarms(a, b kv.Alarm) int {
	return cmp.Or(cmp.Compare(a.Member, b.Member), cmp.Compare(a.Kind, b.Kind))
}

// forbidden returns the effects of alarms. A member that is marked corrupt stops serving by itself, and the others continue;
// only the mark of member zero, which says that it is unknown which member is right, stops all writes.
func forbidden(alarms []kv.Alarm) (noSpace, corrupt bool) {
	for _, alarm := range alarms {
		noSpace = noSpace || alarm.Kind == kv.AlarmNoSpace
		corrupt = corrupt || alarm.Kind == kv.AlarmCorrupt && alarm.Member == 0
	}
	return noSpace, corrupt
}

// barred rejects commands that the raised alarms forbid. As in etcd both branches of a transaction count, so that the answer
// does not depend on its compares.
func barred(cmd *kv.Command, noSpace, corrupt bool) error {
	if !noSpace && !corrupt {
		return nil
	}
	grows := cmd.Put != nil || cmd.LeaseGrant != nil
	changes := grows || cmd.Delete != nil || cmd.Compact != nil || cmd.LeaseRevoke != nil
	if cmd.Txn != nil {
		puts, deletes := writes(cmd.Txn)
		grows, changes = puts, puts || deletes
	}
	switch {
	case corrupt && changes:
		return kv.ErrCorrupt
	case noSpace && grows:
		return kv.ErrNoSpace
	}
	return nil
}

// writes reports which writes a transaction may do, in any branch.
func writes(op *kv.TxnOp) (puts, deletes bool) {
	for _, branch := range [...][]kv.Op{op.Then, op.Else} {
		for i := range branch {
			puts = puts || branch[i].Put != nil
			deletes = deletes || branch[i].Delete != nil
			if branch[i].Txn != nil {
				p, d := writes(branch[i].Txn)
				puts, deletes = puts || p, deletes || d
			}
		}
	}
	return puts, deletes
}
