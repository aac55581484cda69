package apply

import (
	"fmt"
	"sync/atomic"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/engine"
)

// backupTable holds the row of the continuous backup. The goroutine that calls Apply changes it; any goroutine may read it.
type backupTable struct {
	members *memberTable
	row     atomic.Pointer[kv.BackupRow] // replaced, not changed
}

func (t *backupTable) load(eng engine.Engine) error {
	value, found, err := eng.Get(rowBackup)
	if err != nil {
		return fmt.Errorf("apply: read the row of the backup: %w", err)
	}
	row, ok := kv.BackupRow{}, true
	if found {
		if row, ok = kv.DecodeBackupRow(value); !ok {
			return fmt.Errorf("%w: backup %x", ErrCorruptRow, value)
		}
	}
	t.row.Store(&row)
	return nil
}

// change executes a BackupOp. by is the user who proposed it.
func (t *backupTable) change(w rowWriter, op *kv.BackupOp, by string) error {
	if op.Kind == kv.BackupClaim { // nobody claims in another's name
		claim := *op
		claim.Proof.By = by
		op = &claim
	}
	row := t.row.Load()
	next, ok := row.Next(op, func(member uint64) bool {
		_, removed := t.members.removed(consensus.MemberID(member))
		return removed
	})
	if !ok {
		return kv.ErrBadCommand
	}
	w.Set(rowBackup, next.Append(nil))
	t.row.Store(&next)
	return nil
}

// Backup returns the row of the continuous backup. It must not be modified.
func (m *Machine) Backup() *kv.BackupRow { return m.backup.row.Load() }
