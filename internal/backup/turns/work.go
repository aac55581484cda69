package turns

import (
	"strings"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/ship"
)

// perform begins the operations of ship that are due. Files of a checkpoint are not put while it is made or removed.
func (m *Machine) perform() {
	for ops := m.ship.Take(); len(ops) > 0; ops = m.ship.Take() {
		for i := range ops {
			switch {
			case ops[i].Kind == ship.Checkpoint, ops[i].Kind == ship.Discard:
				m.copying = append(m.copying, ops[i])
			case m.config.Faults.SilentGap && strings.HasPrefix(ops[i].Name, backup.GapPrefix):
				m.ship.Done(ops[i].ID, ship.Outcome{})
			default:
				m.begin(&ops[i])
			}
		}
	}
	if len(m.copying) > 0 && !m.copies && m.filing == 0 {
		m.copies = true
		op := m.copying[0]
		m.copying = m.copying[1:]
		m.begin(&op)
	}
}

func (m *Machine) begin(op *ship.Op) {
	if op.Kind == ship.Discard {
		m.discards++
		op.ID = ^m.discards // ship gives these no number
	}
	if op.Kind == ship.PutFile {
		m.filing++
	}
	m.under[op.ID] = begun{op.Kind, m.now, sizeOf(op), op.Kind == ship.Put && strings.HasPrefix(op.Name, backup.BasePrefix)}
	m.ask(Op{Kind: Ship, Ship: *op})
	if m.acknowledged(op) {
		m.ship.Done(op.ID, ship.Outcome{})
	}
}

// acknowledged reports whether an operation counted as done when it began.
func (m *Machine) acknowledged(op *ship.Op) bool {
	return m.config.Faults.EarlyAck && op.Kind == ship.Put
}
