package turns

import "time"

// End tells that the member ends: what waits is sealed and put, as far as the place takes it, and no turn begins any more.
func (m *Machine) End(now time.Time) {
	m.now, m.ending, m.endedAt = now, true, now
	if m.phase == waiting || m.phase == opening || m.phase == shipping {
		m.work()
	}
}

// leave ends the turn.
func (m *Machine) leave() {
	if len(m.under) > 0 || m.reporting || m.opens {
		m.ask(Op{Kind: Cancel})
	}
	m.phase, m.ship, m.copying, m.left = leaving, nil, nil, m.now
	m.closeIfIdle()
}

// closeIfIdle closes the place once nothing is under way.
func (m *Machine) closeIfIdle() {
	if len(m.under) == 0 && !m.reporting && !m.opens {
		m.phase = closing
		m.ask(Op{Kind: Close})
	}
}

// giveUpIfDue ends a turn that is over though operations on the place do not end.
func (m *Machine) giveUpIfDue() {
	patience := m.config.Times.Leave
	if m.ending {
		patience = m.config.Times.Quit
	}
	if m.now.Sub(m.left) < patience || m.reporting {
		return
	}
	for _, b := range m.under {
		if b.local() {
			return
		}
	}
	m.hung.add(m.under, m.opens)
	clear(m.under)
	m.opens, m.filing = false, 0
	m.number++
	m.closeIfIdle()
}

// Hung returns how many operations were given up and have not ended.
func (m *Machine) Hung() int { return m.hung.ops }

// GaveUp reports whether an operation was given up. Its end is told by Late then.
func (m *Machine) GaveUp(op *Op) bool { return op.number != m.number }

// Late tells that an operation has ended that was given up.
func (m *Machine) Late(now time.Time, op *Op) {
	m.now = now
	m.hung.end(&op.Ship, op.Kind == Open)
}

// Closed tells that Close has ended.
func (m *Machine) Closed(now time.Time) { m.now, m.phase = now, resting }
