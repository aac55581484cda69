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
	sum     uint64                       // of the row, for the chain; zero: there is none
}

// backupForm is the number of the row's form.
const backupForm = 1

func appendBackup(dst []byte, row *kv.BackupRow) []byte { return row.Append(append(dst, backupForm)) }

func decodeBackup(value []byte) (row kv.BackupRow, err error) {
	rest, err := openRow("row of the backup", nil, value, backupForm)
	if err != nil {
		return row, err
	}
	row, ok := kv.DecodeBackupRow(rest)
	if !ok {
		return row, fmt.Errorf("%w: row of the backup, of %d bytes", ErrCorruptRow, len(value)) // it has secrets
	}
	return row, nil
}

func (t *backupTable) load(eng engine.Engine) error {
	value, found, err := eng.Get(rowBackup)
	if err != nil {
		return fmt.Errorf("apply: read the row of the backup: %w", err)
	}
	var row kv.BackupRow
	if found {
		if row, err = decodeBackup(value); err != nil {
			return err
		}
		t.sum = rowSum(rowBackup, value)
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
	value := appendBackup(nil, &next)
	w.Set(rowBackup, value)
	t.sum = rowSum(rowBackup, value)
	t.row.Store(&next)
	return nil
}

// Backup returns the row of the continuous backup. It must not be modified.
func (m *Machine) Backup() *kv.BackupRow { return m.backup.row.Load() }
