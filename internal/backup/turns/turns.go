package turns

import (
	"errors"
	"math"
	"time"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/keep"
	"github.com/quorate/quorate/internal/backup/ship"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// Config is what a Machine goes by.
type Config struct {
	Cluster consensus.ClusterID
	Epoch   uint64 // of the cluster
	Member  consensus.MemberID
	Build   string // for manifests
	// HeldBytes bounds what waits for the place.
	HeldBytes int64
	// KeepBytes bounds what a round of retention holds; zero: HeldBytes.
	KeepBytes int64
	// AtOnce is how many operations there are at the place at once; zero: ship.DefaultAtOnce.
	AtOnce int
	// Lock returns what encrypts to the recipients of a policy that has some; nil: no policy has.
	Lock   func(*kv.BackupPolicy) (*backup.Lock, error)
	Times  Times
	Faults Faults
}

// Times of a Machine. A zero has its default.
type Times struct {
	Look   time.Duration // between two looks at whose turn it is
	Tick   time.Duration // the same while the turn is this member's
	Report time.Duration // between two reports, at most
	News   time.Duration // between two reports, at least
	Trust  time.Duration // after a report that was accepted began: retention may remove things for so long; three times Report
	Retry  time.Duration // until a place is tried again that did not open
	Slow   time.Duration // until a put of a segment that does not end is trouble; for other operations ten times that
	End    time.Duration // for what waits when the member ends
	Leave  time.Duration // until operations are given up that were cancelled and do not end
	Quit   time.Duration // the same when the member ends
}

// Feed has the entries that the member applied last.
type Feed interface {
	// After returns the first batches after an entry, as far as they are kept, and came before a later policy than that of a
	// generation: none if there are none.
	After(after consensus.Index, generation uint64) []*ship.Batch
	// Last returns the last entry that was applied; false: it is not known.
	Last() (backup.Point, bool)
	// Sum returns the chain's sum after an entry, if all entries after it are kept.
	Sum(consensus.Index) (uint64, bool)
}

// Kind is the kind of an operation.
type Kind uint8

// Kinds of operations.
const (
	// Open opens the place called Place and lists what it has of the cluster. It ends with Opened. Operations there encrypt
	// by Lock, and fail on a state with another policy than that of the Generation.
	Open Kind = 1 + iota
	// Ship does the operation Ship at the place that is open. It ends with Done.
	Ship
	// Report replicates Command. It ends with Reported.
	Report
	// Cancel asks all operations that are under way to end soon. It has no end of its own.
	Cancel
	// Close frees the place, if it is open, and removes the files of a checkpoint. Nothing else is under way, but for what
	// was given up. It ends with Closed.
	Close
)

// Op is an operation that the caller begins now.
type Op struct {
	Kind       Kind
	Place      string
	Lock       *backup.Lock // nil: nothing is encrypted
	Generation uint64
	Ship       ship.Op
	Command    kv.Command

	number uint64 // see Machine.number
}

// phase is how far a turn is.
type phase uint8

const (
	resting  phase = iota // it is not this member's turn
	waiting               // for the next try to open the place
	opening               // the place
	shipping              // to the place
	leaving               // the turn is over: operations are ending
	closing               // the place
)

// Machine is the state machine.
type Machine struct {
	config Config
	feed   Feed
	now    time.Time
	ops    []Op

	phase  phase
	row    kv.BackupRow // of the turn
	lock   *backup.Lock
	ship   *ship.Shipper
	next   consensus.Index // the last entry that was given to ship
	heard  int64           // ship was given all that was committed up to this time, in milliseconds; zero: not known
	opens  bool            // Open is under way
	since  time.Time       // when that began
	retry  time.Time       // of a place that did not open
	failed string          // why it did not
	barred bool            // because this member may not use it

	under   map[uint64]begun // operations of Ship, by the id of each
	copying []ship.Op        // checkpoints and their removals that wait, one after the other
	copies  bool             // one is under way
	filing  int              // files of a checkpoint that are being put
	// discards counts the removals of checkpoints, of which ship wants no end.
	discards uint64

	number uint64    // of the turns in which operations were given up
	left   time.Time // when the turn was over
	hung   hung      // of the operations that were given up and have not ended

	reporting bool
	reported  time.Time     // when the last report began
	accepted  time.Time     // when the last report of this turn began that the cluster took; zero: none was taken
	said      ship.Progress // that it had
	troubled  bool          // it had trouble
	refused   uint64        // the turn of which the last report was refused

	ending  bool        // the member ends
	worded  bool        // a report has begun since then
	told    backup.Head // the base in the last report that the cluster took
	endedAt time.Time
}

// New returns a Machine that rests.
func New(c Config, feed Feed) *Machine {
	set(&c.Times.Look, time.Second)
	set(&c.Times.Tick, 100*time.Millisecond)
	set(&c.Times.Report, 10*time.Second)
	set(&c.Times.News, time.Second)
	set(&c.Times.Trust, 3*c.Times.Report)
	set(&c.Times.Retry, 5*time.Second)
	set(&c.Times.Slow, time.Minute)
	set(&c.Times.End, 3*time.Second)
	set(&c.Times.Leave, 30*time.Second)
	set(&c.Times.Quit, 5*time.Second)
	if c.HeldBytes <= 0 {
		c.HeldBytes = ship.DefaultHeldBytes
	}
	if c.KeepBytes <= 0 {
		c.KeepBytes = c.HeldBytes
	}
	return &Machine{config: c, feed: feed, under: map[uint64]begun{}}
}

func set(field *time.Duration, value time.Duration) {
	if *field <= 0 {
		*field = value
	}
}

// Take returns the operations that are to begin.
func (m *Machine) Take() []Op {
	ops := m.ops
	m.ops = nil
	return ops
}

func (m *Machine) ask(op Op) {
	op.number = m.number
	m.ops = append(m.ops, op)
}

// Pause is how long after the last call Look is due.
func (m *Machine) Pause() time.Duration {
	if m.phase == resting {
		return m.config.Times.Look
	}
	return m.config.Times.Tick
}

// Ships reports whether the machine waits for entries.
func (m *Machine) Ships() bool { return m.phase == shipping }

// Rests reports whether no turn is under way.
func (m *Machine) Rests() bool { return m.phase == resting }

// Held returns the bytes that wait for the place.
func (m *Machine) Held() int64 {
	if m.ship == nil {
		return m.hung.bytes
	}
	return m.hung.bytes + m.ship.Progress().Held
}

// Look tells the time, by a clock of which milliseconds since 1970 are reported, and the row.
func (m *Machine) Look(now time.Time, row *kv.BackupRow) {
	m.now = now
	switch {
	case m.phase == resting && m.mine(row) && row.Turn != m.refused && !m.ending && m.hung.leaves(m.config.HeldBytes):
		m.row, m.said, m.troubled, m.reported, m.accepted = *row, ship.Progress{}, false, time.Time{}, time.Time{}
		m.heard, m.told = 0, backup.Head{}
		m.failed, m.barred = "", false
		m.openPlace()
		m.work()
	case m.phase == waiting, m.phase == opening, m.phase == shipping:
		if !m.mine(row) || row.Turn != m.row.Turn {
			m.leave()
			return
		}
		if m.row.Known = row.Known; m.ship != nil {
			m.ship.Know(row.Known)
		}
		m.work()
	case m.phase == leaving:
		m.giveUpIfDue()
	}
}

// mine reports whether it is this member's turn.
func (m *Machine) mine(row *kv.BackupRow) bool {
	return row.Policy.On && row.Member == uint64(m.config.Member)
}

func (m *Machine) openPlace() {
	lock, err := m.lockOf(&m.row.Policy)
	if err != nil {
		m.wait(err)
		return
	}
	m.phase, m.opens, m.since, m.lock = opening, true, m.now, lock
	m.ask(Op{Kind: Open, Place: m.row.Policy.Place, Lock: lock, Generation: m.row.Generation})
}

var errNoLock = errors.New("this member cannot encrypt the backup")

// lockOf returns what encrypts to the recipients of a policy; nil if it has none. This member may be unable to, though the one
// that took the policy was not.
func (m *Machine) lockOf(p *kv.BackupPolicy) (*backup.Lock, error) {
	switch {
	case p.Recipients == "":
		return nil, nil
	case m.config.Lock == nil:
		return nil, errNoLock
	}
	return m.config.Lock(p)
}

// wait tries to open the place again later.
func (m *Machine) wait(why error) {
	m.phase, m.retry, m.failed = waiting, m.now.Add(m.config.Times.Retry), why.Error()
}

var errSealed = errors.New("the place has an encrypted backup of this cluster, and the policy has no recipients: give them " +
	"again (quorate backup start --recipient), or another place")

// ErrNotFollowed is an error of Open: it is not known how far the member is.
var ErrNotFollowed = errors.New("this member has applied nothing yet since the backup is on")

// Barred is an error of Open: the operator of this member does not let it use the place.
type Barred struct{ Err error }

func (b *Barred) Error() string { return b.Err.Error() }
func (b *Barred) Unwrap() error { return b.Err }

// Opened tells how Open ended.
func (m *Machine) Opened(now time.Time, catalog *backup.Catalog, err error) {
	m.now, m.opens = now, false
	if m.phase == leaving {
		m.closeIfIdle()
		return
	}
	last, known := m.feed.Last()
	switch {
	case err != nil:
	case !known:
		err = ErrNotFollowed
	case m.lock == nil && catalog.Sealed():
		err = errSealed
	}
	if err != nil {
		m.wait(err)
		_, m.barred = errors.AsType[*Barred](err)
		m.work()
		return
	}
	found := &ship.Found{Catalog: catalog, Applied: last.Index, Now: now.UnixMilli(), Own: m.feed.Sum,
		Secrets: secrets(&m.row.Policy), Known: m.row.Known, Restorable: consensus.Index(m.row.Progress.Restorable.Index)}
	if m.config.Faults.Believes {
		found.Known, found.Restorable = nil, 0
	}
	start := ship.Begin(found)
	if m.config.Faults.Skips {
		start.Applied, start.Lost = last.Index, 0
	}
	rule, err := keep.Parse(m.row.Policy.Keep)
	if err != nil {
		rule = keep.Rule{} // a rule of a later build: nothing is removed
	}
	if m.config.Faults.Forgets {
		rule.Window = min(rule.Window, 1)
	}
	atOnce := m.config.AtOnce
	if m.config.Faults.Crowds {
		atOnce = math.MaxInt
	}
	m.phase, m.failed, m.barred, m.next = shipping, "", false, start.Applied
	m.ship = ship.New(ship.Config{Cluster: m.config.Cluster, Epoch: m.config.Epoch, Member: m.config.Member,
		Build: m.config.Build, SealAfter: m.row.Policy.SealMillis, BaseEvery: m.row.Policy.BaseSeconds * 1000,
		HeldBytes: m.config.HeldBytes - m.hung.bytes,
		AtOnce:    atOnce,
		Lock:      m.lock, Keep: rule, KeepBytes: m.config.KeepBytes,
		Faults: m.config.Faults.Prune}, start, now.UnixMilli())
	m.ship.Know(m.row.Known)
	m.work()
}

// work does what is due in a turn.
func (m *Machine) work() {
	switch {
	case m.ending && (m.phase != shipping || m.now.Sub(m.endedAt) >= m.config.Times.End):
		m.leave()
		return
	case m.phase == waiting && !m.now.Before(m.retry):
		m.openPlace()
	case m.phase == shipping:
		m.shipMore()
		if p := m.ship.Progress(); m.ending && (p.Held == 0 || p.Lost) && !m.lastWord() {
			m.leave()
			return
		}
	}
	m.reportIfDue()
}

// shipMore gives ship what was applied, and begins what it asks for.
func (m *Machine) shipMore() {
	m.ship.Permit(m.trusted())
	m.ship.Tick(m.now.UnixMilli())
	m.give()
	if m.ending {
		m.ship.Seal()
	}
	m.perform()
}

// give gives ship what was applied, as far as that has room. The rest stays where it is kept, and may be forgotten there if the
// place takes too little for too long.
func (m *Machine) give() {
	generation := m.row.Generation
	if m.config.Faults.Former {
		generation = math.MaxUint64
	}
	for batches := m.feed.After(m.next, generation); len(batches) > 0; {
		for _, b := range batches {
			n := m.ship.Room(b)
			if n > 0 {
				m.ship.Applied(m.now.UnixMilli(), b.First(n))
				m.hear(b.Items[:n])
				m.next = b.Items[n-1].Entry.Index
			}
			if n < len(b.Items) { // the next one does not follow
				return
			}
		}
		batches = m.feed.After(m.next, generation)
	}
}

// hear looks for the reports of this turn in what ship was given. A report was proposed when its time was, and what was
// committed before that has a place before it in the log.
func (m *Machine) hear(items []backup.Item) {
	for i := range items {
		if e := &items[i].Entry; e.Kind == consensus.EntryCommand && kv.IsBackup(e.Payload) {
			c, err := kv.DecodeCommand(e.Payload)
			if err == nil && c.Backup.Kind == kv.BackupReport && c.Backup.Turn == m.row.Turn &&
				c.Backup.Member == uint64(m.config.Member) {
				m.heard = c.Backup.Progress.At
			}
		}
	}
}

// Done tells how an operation of Ship ended.
func (m *Machine) Done(now time.Time, op *ship.Op, outcome ship.Outcome) {
	m.now = now
	delete(m.under, op.ID)
	switch op.Kind {
	case ship.PutFile:
		m.filing--
	case ship.Checkpoint, ship.Discard:
		m.copies = false
	}
	if m.phase == leaving {
		m.closeIfIdle()
		return
	}
	if op.Kind != ship.Discard && !m.acknowledged(op) {
		m.ship.Permit(m.trusted())
		m.ship.Done(op.ID, outcome)
	}
	m.work()
}

// Reported tells how Report ended. A report that does not fit the row ends the turn.
func (m *Machine) Reported(now time.Time, err error) {
	m.now = now
	m.reporting = false
	switch {
	case m.phase == leaving:
		m.closeIfIdle()
	case errors.Is(err, kv.ErrBadCommand):
		m.refused = m.row.Turn
		m.leave()
	default:
		if err == nil {
			m.accepted, m.told = m.reported, m.said.Base
		}
		m.work()
	}
}

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
