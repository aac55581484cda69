package turns

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/ship"
	"github.com/quorate/quorate/internal/base/printable"
	"github.com/quorate/quorate/internal/kv"
)

// largerTakes is how many times as long as a put of a segment another operation may take: files of a base are larger, and lists
// have many objects.
const largerTakes = 10

// reportIfDue reports now and then, and soon what an operator waits for. Where nothing was written but such reports, nothing
// is soon: each report is an entry, too.
func (m *Machine) reportIfDue() {
	if m.reporting || m.ending && (m.worded || !m.untold()) {
		return
	}
	m.worded = m.ending
	p, trouble := m.progress()
	waited := m.now.Sub(m.reported)
	every := m.config.Times.Report
	if p.Restorable != m.said.Restorable {
		every = min(every, 10*time.Duration(m.row.Policy.SealMillis)*time.Millisecond)
	}
	news := p.Base != m.said.Base || p.Gaps != m.said.Gaps || p.Gap != m.said.Gap ||
		p.Retention != m.said.Retention || (trouble != "") != m.troubled ||
		p.Restorable.Index > 0 && m.said.Restorable.Index == 0
	if news {
		every = min(every, m.config.Times.News)
	}
	if waited < every && !m.ending {
		return
	}
	m.reporting, m.reported, m.said, m.troubled = true, m.now, p, trouble != ""
	m.ask(Op{Kind: Report, Command: kv.Command{Backup: &kv.BackupOp{Kind: kv.BackupReport, Turn: m.row.Turn,
		Member: uint64(m.config.Member), Progress: m.report(&p, trouble)}}})
}

// untold reports whether the place has a base of this turn that the cluster was not told of: it would be one that somebody else
// may have put there.
func (m *Machine) untold() bool {
	if m.ship == nil {
		return false
	}
	p := m.ship.Progress()
	return p.BaseHash != [32]byte{} && p.Base != m.told && !m.row.Knows(p.BaseHash)
}

// lastWord reports whether a member that ends puts the manifest of a base, or has one to report, once.
func (m *Machine) lastWord() bool {
	for _, b := range m.under {
		if b.base {
			return true
		}
	}
	return m.untold() && (m.reporting || !m.worded)
}

// trusted reports whether the cluster has said a moment ago that the turn is this member's: one that is cut off does not learn
// that another ships, by another rule. Neither a clock that jumps nor a machine that sleeps makes the moment longer.
func (m *Machine) trusted() bool {
	trust := m.config.Times.Trust
	return !m.accepted.IsZero() && m.now.Sub(m.accepted) <= trust && m.now.Round(0).Sub(m.accepted.Round(0)) <= trust
}

// progress returns how far ship is, and why the place takes nothing now.
func (m *Machine) progress() (p ship.Progress, trouble string) {
	if m.ship != nil {
		p = m.ship.Progress()
	}
	return p, cmp.Or(m.failed, p.Trouble, m.slow())
}

// slow says that the place does not answer.
func (m *Machine) slow() string {
	longest := time.Duration(0)
	for _, b := range m.under {
		took, slow := m.now.Sub(b.at), m.config.Times.Slow
		if b.kind != ship.Put {
			slow *= largerTakes
		}
		if took >= slow {
			longest = max(longest, took)
		}
	}
	if took := m.now.Sub(m.since); m.opens && took >= largerTakes*m.config.Times.Slow {
		longest = max(longest, took)
	}
	if longest == 0 {
		return ""
	}
	return fmt.Sprintf("the place has not answered for %v", longest.Truncate(time.Minute))
}

func (m *Machine) report(p *ship.Progress, trouble string) kv.BackupProgress {
	now := m.now.UnixMilli()
	said := kv.BackupProgress{At: now, Restorable: point(&p.Restorable), Sum: p.Restorable.Sum,
		Base: point(&p.Base), BaseHash: p.BaseHash, Gaps: uint64(p.Gaps),
		Trouble: cut(trouble), Refused: m.barred, Retention: retention(&p.Retention)}
	// Nothing waits that changes the state. It is not known to be that of now: this member may be behind the leader.
	if p.Current {
		said.Restorable.Time = max(said.Restorable.Time, min(m.heard, now))
	}
	if p.Gap.After > 0 {
		said.Gap = kv.BackupGap{After: uint64(p.Gap.After), Until: uint64(p.Gap.Until), Time: p.Gap.Time}
	}
	return said
}

func retention(r *ship.Retention) kv.BackupRetention {
	return kv.BackupRetention{At: r.At, From: r.From, Bases: uint64(r.Bases), Removed: uint64(r.Removed),
		Bytes: uint64(r.Bytes), Why: cut(r.Why)}
}

func point(h *backup.Head) kv.BackupPoint {
	return kv.BackupPoint{Index: uint64(h.Index), Revision: h.Revision, Time: h.Time}
}

// cut makes a text of a place fit into a report.
func cut(text string) string {
	text = printable.Text(text, kv.MaxBackupTroubleBytes)
	if len(text) > kv.MaxBackupTroubleBytes {
		text = strings.ToValidUTF8(text[:kv.MaxBackupTroubleBytes-len(more)], "") + more
	}
	return text
}

const more = "..."
