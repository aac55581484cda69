package turns_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/turns"
	"github.com/quorate/quorate/internal/kv"
)

// Ensure that a turn encrypts to the recipients of its policy, and names the policy for which a state may be shipped; and that a
// member which cannot encrypt ships nothing, says why, and tries again.
func TestMachine_recipients(t *testing.T) {
	lock := &backup.Lock{Secret: backup.Secret{1}}
	var refusal error
	m := newMember(t)
	m.row.Policy.Recipients, m.row.Policy.Secret = "age1a", string(lock.Secret[:])
	m.machine = turns.New(turns.Config{Cluster: 7, Member: 3, HeldBytes: 1 << 20, Lock: func(p *kv.BackupPolicy) (*backup.Lock, error) {
		if *p != m.row.Policy {
			t.Errorf("got the policy %+v", p)
		}
		return lock, refusal
	}}, m)
	refusal = errors.New("it is forbidden here")
	m.machine.Look(m.now, &m.row)
	ops := m.machine.Take()
	if len(ops) != 1 || ops[0].Kind != turns.Report || !strings.Contains(ops[0].Command.Backup.Progress.Trouble, "forbidden") {
		t.Fatalf("it cannot encrypt: %+v", ops)
	}
	m.machine.Reported(m.now, nil)
	refusal = nil
	for range 20 {
		m.now = m.now.Add(1_000_000_000)
		m.machine.Look(m.now, &m.row)
		for _, op := range m.machine.Take() {
			if op.Kind == turns.Open {
				if op.Lock != lock || op.Generation != m.row.Generation {
					t.Errorf("got %+v", op)
				}
				return
			}
			if op.Kind == turns.Report {
				m.machine.Reported(m.now, nil)
			}
		}
	}
	t.Error("it does not try again")
}
