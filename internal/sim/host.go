package sim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/kv/nextlevel"
	"github.com/quorate/quorate/internal/member/applier"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/node"
	"github.com/quorate/quorate/internal/sim/actions"
	"github.com/quorate/quorate/internal/sim/check"
	"github.com/quorate/quorate/internal/sim/diary"
	"github.com/quorate/quorate/internal/sim/dice"
	"github.com/quorate/quorate/internal/sim/disk"
	"github.com/quorate/quorate/internal/sim/kernel"
	"github.com/quorate/quorate/internal/sim/plan"
	"github.com/quorate/quorate/internal/sim/shell"
	"github.com/quorate/quorate/internal/sim/users"
	"github.com/quorate/quorate/internal/storage/wal"
)

// host is one machine, and the member on it.
type host struct {
	run     *run
	cluster *cluster
	slot    int
	id      consensus.MemberID
	base    consensus.SnapshotMeta // the beginning of its data
	rng     *rand.Rand
	wall    kernel.Clock
	date    time.Duration // error of its date
	disk    *disk.FS
	suite   *check.Suite // the world's; impostors have their own
	actions *actions.Member
	credentials
	address

	alive bool // its process runs
	life  int
	proc  *shell.Process // of this life, once it has read its disk
	pilot *pilot         // likewise; nil in worlds without jobs
	gate  *users.Gate    // likewise; nil in worlds without users
	ships *shipper       // likewise; nil in worlds without a backup
	older bool           // its build is the one that ships, while others have the next level
	gone  bool           // removed from the cluster, or not needed any more

	inForce *raft.ConfigInForce // from the last step

	joiner *joiner       // of a machine whose process joins by itself
	frozen time.Duration // it does nothing before this time
	// electionTicks is the election timeout of this life.
	electionTicks int
	// asksAgain is when a caller of another epoch may next make it ask that caller's identity; see called.
	asksAgain time.Duration
	slow      time.Duration // extra time of each write
	hung      time.Duration // its store applies nothing before this time
}

const dataDir = "data"

// packFrom is small, because most records of a simulated log are.
const packFrom = 64

// endBytes is small, because leases of a simulated cluster are: a lease with three keys ends in two parts.
const endBytes = 100

// endBytes is how many bytes of keys a revocation deletes at once in this world; zero: as many as in a real one.
func (r *run) endBytes() int64 {
	if r.plan.Parts || r.broken.OwnParts {
		return endBytes
	}
	return 0
}

// limitCountBytes is small, so that the counts of few keys take several steps; mostHeads, so that heads of the audit are
// thinned out in short worlds.
const (
	limitCountBytes = 3 * kv.WalkKeyBytes
	mostHeads       = 8
)

func (h *host) options() datadir.Options {
	end := h.run.endBytes()
	if h.run.broken.OwnParts {
		end += int64(h.slot) * endBytes
	}
	applies := apply.Options{EndBytes: end, Faults: h.run.broken.Apply}
	if h.run.plan.Rises {
		applies.Level, applies.Needs = h.knowsLevel(), nextlevel.Needs
	}
	applies.LimitCountBytes, applies.MostHeads = limitCountBytes, mostHeads
	if h.run.broken.OwnCounts {
		applies.LimitCountBytes *= int64(1 + h.slot)
	}
	if h.run.broken.OwnHeads {
		applies.MostHeads += 2 * h.slot
	}
	open, view := h.run.stores.On(h.slot, h.disk)
	fs, keys := h.run.stores.Over(h.disk)
	return datadir.Options{
		FS: fs, Below: h.disk, Keys: keys, Dir: dataDir, Logger: discard, SegmentBytes: h.run.plan.Segments,
		NoSync:   h.run.broken.LyingLog,
		Nonce:    func() uint64 { return uint64(h.cluster.lives+1)<<32 | uint64(h.id) },
		PackFrom: packFrom, OpenEngine: open, OpenView: view, Apply: applies,
	}
}

// after calls f in this life of the process, later if the process is paused at that time.
func (h *host) after(d time.Duration, f func()) {
	life := h.life
	var fire func()
	fire = func() {
		switch {
		case !h.alive || h.life != life:
		case h.run.Now() < h.frozen:
			h.run.After(h.frozen-h.run.Now(), fire)
		default:
			h.run.current = h
			f()
		}
	}
	h.run.After(d, fire)
}

// clock is the time of the member's own clock, with its wrong date.
func (h *host) clock() time.Time {
	return h.wall.At(h.run.Now()).Add(h.date)
}

// monotonic is the time of the member's monotonic clock.
func (h *host) monotonic() time.Time { return h.wall.At(h.run.Now()) }

// until returns how long in virtual time it takes until the member's own clock shows a time.
func (h *host) until(due time.Time) time.Duration {
	return h.wall.Until(due.Add(-h.date), h.run.Now())
}

// startAfter starts the process again, unless it was started meanwhile.
func (h *host) startAfter(d time.Duration) {
	h.run.After(d, func() {
		if !h.alive && !h.gone {
			h.start()
		}
	})
}

// start opens the data as the real member does and starts the process.
func (h *host) start() {
	h.run.current = h
	if h.run.rng.IntN(20) == 0 && !h.run.calm {
		h.disk.DieAfter(h.rng.IntN(30)) // the power fails again before the start is complete
	}
	switch waits, err := h.waits(); {
	case err != nil:
		h.startFailed(err)
		return
	case waits:
		return
	}
	data, err := h.open()
	if err != nil {
		h.startFailed(err)
		return
	}
	h.disk.DieAfter(-1)
	h.cluster.lives++
	h.alive, h.life = true, h.cluster.lives
	h.openGuard(data)
	if h.run.plan.Identity {
		h.readTold()
		h.after(addressScan, h.keepWhereabouts)
	}
	h.run.counts.Starts++
	h.run.trace.Note(h.run.Now(), h.slot, diary.Start, uint64(data.Restored.Applied), uint64(data.Restored.Hard.Term),
		uint64(len(data.Restored.Entries)), nil)
	h.ships = newShipper(h, data)
	if h.proc, err = shell.New(h.newLife(), data, h.processOptions(data)); err != nil {
		h.suite.Report("recovery", err.Error())
		return
	}
	h.checkConfig()
	h.proc.Start()
	if h.epochs != nil {
		h.lookAround()
	}
	h.proc.BeginCompaction()
	if h.run.plan.Reconfigures {
		h.after(promoteScan, h.promote)
	}
	h.startPilot()
	openGate(h)
	keepLevel(h)
	keepMoments(h)
	keepBackup(h)
	keepShipping(h)
	keepProofs(h)
}

// newLife returns the machine's ports for a life of the process.
func (h *host) newLife() *shell.Life {
	life := h.life
	return &shell.Life{
		ID: h.id, Pace: &h.run.plan.Pace, Rng: h.rng, Disk: h.disk, Suite: h.suite, Counts: &h.run.counts,
		Actions: h.actions,
		Period:  time.Duration(float64(h.run.plan.Tick) / h.wall.Rate),
		Runs:    func() bool { return h.alive && h.life == life },
		Serves:  func() bool { return h.life == life && h.serves() },
		After:   h.after,
		Now:     h.run.Now,
		Clock:   h.clock,
		Until:   h.until,
		Ping:    func(to consensus.MemberID, answered func()) { h.cluster.net.ping(h, to, answered) },
		Slow:    func() time.Duration { return h.slow },
		Hangs:   func() bool { return h.run.Now() < h.hung },
		Send:    func(messages []consensus.Message) { h.cluster.net.send(h, messages) },
		Fail:    h.fail,
		Note: func(what diary.Kind, a, b, c uint64, text func() string) {
			h.run.trace.Note(h.run.Now(), h.slot, what, a, b, c, text)
		},
	}
}

func (h *host) processOptions(data *datadir.Data) *shell.Options {
	core := h.run.plan.Raft
	core.ID, core.Cluster, core.Dropped = h.id, clusterID, h.run.broken.Raft
	if h.run.plan.Identity {
		core.Storage = data.Identity.Storage
	}
	core.Seed += uint64(h.life)
	setting := h.run.plan.Settings(&core, h.run.spoil)
	h.electionTicks = core.ElectionTicks
	o := &shell.Options{
		Raft: core, FastPath: setting, Delay: h.run.plan.Delay, Extend: h.extension(),
		RequestTimeout: h.requestTimeout(), Natives: h.natives(), TellHeard: h.tellHeard, Silent: h.judgeSilent,
		Revokes: h.judgeRevocation,
		Offers:  h.run.broken.Offers, Log: h.run.broken.Log, Leases: h.run.broken.Leases,
		Most: node.MostTicks(&h.run.plan.Raft),
		Mute: h.mute, Stepped: h.stepped, Observe: h.observe, Carry: h.carry, Altered: h.run.altered,
		Configure: func(c raft.ConfigInForce) { h.inForce = &c },
	}
	if h.run.plan.Mixed {
		o.Most *= plan.Slowest
	}
	if h.ships != nil {
		o.Feed = h.ships.feed
	}
	return o
}

// judgeRevocation checks that no lease ends whose renewal the leader has not answered for long: its client may be alive.
func (h *host) judgeRevocation(id kv.LeaseID, renewing bool) {
	if renewing {
		h.suite.Report("lease-renewing",
			fmt.Sprintf("leader %v ends lease %x while a renewal of it waits there", h.id, int64(id)))
	}
}

// requestTimeout is how long a request may take: at most as long as its client waits, if clients are impatient. In other worlds
// there is no timeout, so that a lost request is noticed.
func (h *host) requestTimeout() time.Duration {
	if patience := h.run.plan.Mix.Patience; patience <= time.Second {
		return patience * time.Duration(2+h.slot%3) / 4
	}
	return time.Hour
}

// natives is what the process has for native clients: in half of its lives what a member has, and else little.
func (h *host) natives() shell.Natives {
	n := shell.DefaultNatives()
	n.Faults, n.Patience, n.KeepsSilent = h.run.broken.Streams, clientPatience, h.run.broken.KeepsSilent
	switch h.nativesKind() {
	case 4:
		n.Bounds.AnswerBytes, n.Bounds.UnreadBytes = 1, 2<<10
	case 5:
		n.Bounds.Proposals, n.Bounds.Verdicts, n.Offered = 2, 2, 2<<10
	case 6:
		n.Held = 6 << 10
	case 7:
		n.Bounds.ResultBytes, n.Bounds.FewResultBytes = 4<<10, 256
	}
	return n
}

func (h *host) nativesKind() uint64 { return (h.run.plan.Raft.Seed/1024 + uint64(h.life)) % 8 }

// putsOff reports whether the process has so little for the results of native clients that it may put one off for as long as it
// keeps the others'.
func (h *host) putsOff() bool { return h.nativesKind() == 7 }

const clusterID consensus.ClusterID = 0x51

func (h *host) open() (*datadir.Data, error) {
	if err := h.run.stores.Rotate(); err != nil { // each life of a process begins new keys
		return nil, err
	}
	exists, err := datadir.Exists(h.options())
	if err != nil {
		return nil, err
	}
	if !exists {
		identity := wal.Identity{Cluster: clusterID, Member: h.id, Storage: h.storageID()}
		if err := datadir.Create(h.options(), identity, h.firstConfig()); err != nil {
			return nil, err
		}
	}
	return datadir.Open(h.options())
}

// storageID is the storage id of the host's disk.
func (h *host) storageID() wal.StorageID {
	if h.joiner != nil { // it has a disk before it has an id
		return storageOf(consensus.MemberID(joinedIDs*joinedIDs+h.slot), h.emptied)
	}
	return storageOf(h.id, h.emptied)
}

func storageOf(member consensus.MemberID, emptied int) (id wal.StorageID) {
	binary.BigEndian.PutUint64(id[:], uint64(member)+1000)
	id[15] = byte(emptied)
	return id
}

// startFailed tries again if the disk is the cause.
func (h *host) startFailed(err error) {
	died := h.disk.Dead()
	if !died && !h.disk.Full && !h.disk.Broken {
		h.suite.Report("recovery", err.Error())
		return
	}
	h.run.trace.Note(h.run.Now(), h.slot, diary.Fail, 0, 0, 0, err.Error)
	if died {
		h.disk = h.disk.Crash(h.crashMode(), h.rng)
	}
	h.disk.DieAfter(-1)
	h.startAfter(dice.Between(h.rng, 10*time.Millisecond, time.Second))
}

func (h *host) crashMode() disk.Mode {
	switch {
	case h.run.plan.Torn && h.rng.IntN(4) > 0:
		return disk.Torn
	case h.rng.IntN(2) == 0:
		return disk.KeepAll
	}
	return disk.LoseAll
}

// crash cuts the power, in the middle of a write if there is one.
func (h *host) crash() {
	if !h.alive {
		return
	}
	h.run.current = h
	switch {
	case h.proc.Writes() && h.rng.IntN(4) > 0:
		h.disk.DieAfter(h.rng.IntN(4))
		h.proc.FinishWrite() // the power fails during this write or right after it
	case h.rng.IntN(8) == 0:
		h.disk.DieAfter(h.rng.IntN(8))
		_ = h.proc.Data.Engine.Flush() // the same for the store
	}
	h.disk = h.disk.Crash(h.crashMode(), h.rng)
	h.keepCopy()
	h.run.trace.Note(h.run.Now(), h.slot, diary.Crash, 0, 0, 0, nil)
	h.down()
}

// down forgets all state in memory.
func (h *host) down() {
	h.noteLoss()
	h.noteInferred()
	h.run.stores.End(h.slot)
	h.alive, h.proc, h.pilot, h.gate, h.ships = false, nil, nil, nil, nil
	h.inForce, h.frozen, h.guard, h.epochs, h.routes = nil, 0, nil, nil, nil
	h.cluster.net.broken(h)
	for _, other := range h.cluster.up() {
		if h.cluster.net.link(h.slot, other.slot).cuts == 0 {
			h.cluster.net.notice(other, h)
		}
	}
}

// fail ends the process because of an operating error, as the real member does. The disk keeps its unsynced writes.
func (h *host) fail(err error) {
	if errors.Is(err, applier.ErrRemoved) {
		h.retire()
		return
	}
	h.run.trace.Note(h.run.Now(), h.slot, diary.Fail, 1, 0, 0, err.Error)
	if !h.disk.Full && !h.disk.Broken {
		h.suite.Report("operating-error", err.Error())
	}
	h.run.counts.Failures++
	h.disk = h.disk.Crash(disk.KeepAll, h.rng)
	h.down()
	h.startAfter(dice.Between(h.rng, 100*time.Millisecond, 4*time.Second))
}

// leads reports whether the member leads.
func (h *host) leads() bool { return h.proc != nil && h.proc.Leads() }

// stepped handles the changes of a step of the core.
func (h *host) stepped() {
	if h.epochs != nil && h.proc.Node.Replica().Leader() != consensus.NoMember {
		h.epochs.Led(h.run.Now())
	}
	h.checkConfig()
}

func (h *host) checkConfig() {
	if h.inForce == nil {
		return
	}
	c := h.inForce
	h.inForce = nil
	h.run.trace.Note(h.run.Now(), h.slot, diary.Config, uint64(c.ID.Index), uint64(c.ID.Term),
		uint64(len(c.Config.Voters)), nil)
	h.suite.Configured(h.id, c.ID, &c.Config)
	h.route(c)
	if h.impostor != "" {
		return
	}
	if was, known := h.cluster.configs[h.id]; known && h.leads() && c.ID.Term == h.proc.Node.Replica().Term() {
		h.judgeAddresses(&was.Config, &c.Config)
	}
	h.cluster.configs[h.id] = *c
	h.cluster.pastIDs = append(h.cluster.pastIDs, c.ID)
}

func (h *host) observe(event raft.Event) {
	h.run.trace.Note(h.run.Now(), h.slot, diary.Lead, 0, 0, 0, event.String)
	switch e := event.(type) {
	case raft.BecameLeader:
		h.judgeEpoch()
		h.suite.Leader(h.id, e.Term)
		h.run.counts.Elections++
	case raft.BecameFollower:
		h.noteLoss()
	case raft.Removed:
		h.suite.Removed(h.id)
		h.run.After(h.leave(), h.retire)
	case raft.Denied:
		h.distrust(e)
	case raft.ConfigProposed, raft.ConfigCommitted, raft.ConfigUndone, raft.ConfigSettled:
		h.cluster.changing(h, event)
	}
}

// leave is how long a removed member may still answer requests: as long as the leader feeds it, or until no request waits.
func (h *host) leave() time.Duration {
	if h.run.plan.SwitchOff {
		return 0
	}
	return dice.Between(h.rng, 0, h.extension())
}

// retire stops a removed member for good.
func (h *host) retire() {
	if h.gone {
		return
	}
	h.run.trace.Note(h.run.Now(), h.slot, diary.Removed, 0, 0, 0, nil)
	h.gone = true
	if h.alive {
		h.down()
	}
}

// extension is the time that a new leader adds to every lease, as the real member does.
func (h *host) extension() time.Duration {
	return time.Duration(h.run.plan.Raft.ElectionTicks) * h.run.plan.Tick
}

// removed reports whether a member was removed, as far as entries are applied here.
func (h *host) removed(id consensus.MemberID) bool {
	_, removed := h.proc.Data.Machine.Removed(id)
	return removed
}
