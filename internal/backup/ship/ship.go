package ship

import (
	"fmt"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/keep"
	"github.com/quorate/quorate/internal/backup/prune"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// Config is what a Shipper goes by. All times are in milliseconds.
type Config struct {
	Cluster consensus.ClusterID
	Epoch   uint64             // of the cluster
	Member  consensus.MemberID // that ships
	Build   string             // for manifests
	Lock    *backup.Lock       // encrypts what is put; nil: it is in the clear

	SealBytes int   // a segment is sealed when its entries have so many bytes
	SealAfter int64 // or when its first entry waits for so long
	RestAfter int64 // or when all its entries are the backup's own, and the first waits for so long
	BaseEvery int64 // a base is made so often
	BaseAfter int   // and after so many segments: a reader of the newest state has not more of them to list and to apply
	HeldBytes int64 // entries and segments that the place has not taken: more of them are left out
	Puts      int   // segments that are put at once
	FilePuts  int   // files of a base that are put at once
	AtOnce    int   // operations at the place at once, of all kinds, LeastAtOnce or more; one of them is for segments alone

	Keep      keep.Rule // what stays at the place
	KeepBytes int64     // memory of a look at the place for what does not (prune.Config)
	Faults    prune.Faults
}

// Defaults.
const (
	DefaultSealBytes = 1 << 20
	DefaultSealAfter = 1000
	DefaultRestAfter = 3600 * 1000
	DefaultBaseEvery = 6 * 3600 * 1000
	DefaultBaseAfter = 22_000 // six hours of writes in each second; less than fetch.LeastSegments
	DefaultHeldBytes = 64 << 20
	DefaultPuts      = 4
	DefaultFilePuts  = 2
	DefaultAtOnce    = 8
)

// LeastAtOnce is the least Config.AtOnce: a segment and something else.
const LeastAtOnce = 2

// The times after which an operation that failed is tried again.
const retryFirst, retryLimit int64 = 500, 30_000

func (c Config) withDefaults() Config {
	set(&c.SealBytes, DefaultSealBytes)
	set(&c.SealAfter, DefaultSealAfter)
	set(&c.RestAfter, DefaultRestAfter)
	set(&c.BaseEvery, DefaultBaseEvery)
	set(&c.BaseAfter, DefaultBaseAfter)
	set(&c.HeldBytes, DefaultHeldBytes)
	set(&c.Puts, DefaultPuts)
	set(&c.FilePuts, DefaultFilePuts)
	set(&c.AtOnce, DefaultAtOnce)
	c.AtOnce = max(c.AtOnce, LeastAtOnce)
	return c
}

func set[N int | int64](field *N, value N) {
	if *field <= 0 {
		*field = value
	}
}

// Batch is a number of applied entries, in order.
type Batch struct {
	Since          consensus.Index // where the chain began
	Before         uint64          // the chain's sum before the first entry
	RevisionBefore kv.Revision
	Items          []backup.Item // without times
	Own            int           // so many of the last items change nothing but the row of the backup itself
}

// news returns the last entry that is not the backup's own; zero: all are.
func (b *Batch) news() consensus.Index {
	if n := len(b.Items) - b.Own; n > 0 {
		return b.Items[n-1].Entry.Index
	}
	return 0
}

// First returns a batch of the first n items.
func (b *Batch) First(n int) *Batch {
	return &Batch{Since: b.Since, Before: b.Before, RevisionBefore: b.RevisionBefore, Items: b.Items[:n],
		Own: max(0, b.Own-(len(b.Items)-n))}
}

// Kind is the kind of an operation.
type Kind uint8

// Kinds of operations.
const (
	// Put puts Content under Name (objects.PutOnce).
	Put Kind = 1 + iota
	// PutFile puts a file of the checkpoint, File, under Name.
	PutFile
	// Checkpoint makes a checkpoint of the store. One that was made before is given up.
	Checkpoint
	// Discard removes the checkpoint. It has no outcome.
	Discard
	// Prune performs the operation Prune. Its outcome is Pruned.
	Prune
)

// Op is an operation that the caller begins now, and tells the end of by Done.
type Op struct {
	ID      uint64
	Kind    Kind
	Name    string
	Content []byte
	File    backup.File
	// Needs are objects that must be at the place before Content is put: files of the manifest of a base. They were put by
	// this run, or for a base before it, and may have been removed by hand since.
	Needs []Needed
	Prune *prune.Op
}

// Needed is an object that must be at the place.
type Needed struct {
	Name string
	Size int64
}

// Result says how an operation ended.
type Result uint8

// Results.
const (
	// OK means that it was done: an object that was put is there.
	OK Result = iota
	// Failed means that it may be tried again.
	Failed
	// Taken means that the name has other bytes.
	Taken
	// Missing means that an object of Needs is not there, or has another size: nothing was put.
	Missing
	// Changed means that a file of the checkpoint is not what it was when it was summed.
	Changed
)

// Outcome is how an operation ended.
type Outcome struct {
	Result Result
	Why    string           // of what was not OK
	Made   *backup.Manifest // of a Checkpoint that is OK: all but time and ids
	Pruned prune.Outcome    // of Prune
}

// Progress is how far a backup is.
type Progress struct {
	Applied    consensus.Index // the last entry that was given
	Sealed     backup.Head     // all entries of this run up to it are in the place
	Base       backup.Head     // the newest base; zero: none
	BaseHash   backup.Hash     // of its manifest
	Restorable backup.Head     // the last point that can be restored; zero: none
	Held       int64           // bytes that wait for the place
	Gaps       int             // since the Shipper began
	Gap        backup.Gap      // the last one that was noted; zero: none was
	Lost       bool            // entries are left out now
	Current    bool            // after Restorable nothing but the backup's own entries was given
	Trouble    string          // why the last operation failed, but for those of retention; empty: it did not
	Retention  Retention
}

// Shipper is the state machine. It is not safe for concurrent use.
type Shipper struct {
	config Config
	packer *backup.Packer
	now    int64

	// Of the entries.
	applied consensus.Index
	news    consensus.Index // the last entry that is not the backup's own, as far as is known
	last    backup.Moment   // of the last entry taken; its time bounds all later ones from below
	first   consensus.Index // the segments from this one on have no gap
	pending pending
	lost    *loss
	// Of the place.
	queue       []*object // to be put, in the order of the log
	queued      int64     // their bytes
	predecessor backup.Hash
	follows     uint64      // the sum in the name of what the next segment continues; zero: as the lock says
	end         backup.Head // of the last segment that was sealed here
	sealed      backup.Head // of the last segment that is in the place, with all before it
	restorable  backup.Head
	floor       consensus.Index // the last gap begins after it
	base        baseWork
	known       []kv.BackupBase // that members reported; empty: not known
	retention   retention
	gaps        int
	gap         backup.Gap
	trouble     string

	ops     []Op
	running map[uint64]started // by the id of the operation
	nextID  uint64
	roads   roads
}

// started is an operation under way.
type started struct {
	kind Kind
	road road
	end  func(*Outcome)
}

// New returns a Shipper that begins at a time, in milliseconds.
func New(c Config, at Start, now int64) *Shipper {
	s := &Shipper{config: c.withDefaults(), packer: backup.NewPacker(), now: now, applied: at.Applied, news: at.Applied,
		first: at.Applied + 1, running: map[uint64]started{}}
	s.roads.atOnce = s.config.AtOnce
	s.packer.Lock = c.Lock
	s.base.known, s.base.after = map[backup.Hash]bool{}, at.Behind
	s.beginRetention()
	if base := at.Base; base != nil {
		s.end, s.follows = base.Head(), base.Sum
		if base.Set == c.Lock.Set() {
			s.base.head, s.base.hash = s.end, base.Hash
			s.base.at = min(base.Time, now) // the clock of another member may be ahead
			s.first = base.Index + 1
		} else {
			s.floor = base.Index // its recipients are others: a base for those of now follows
		}
	}
	if segment := at.Continue; segment != nil {
		s.end, s.predecessor, s.follows = segment.Head(), segment.Hash, segment.End.Sum
		s.sealed = s.end
	}
	s.last = backup.Moment{Revision: s.end.Revision, Time: max(now, min(max(s.end.Time, s.base.head.Time), now+ahead))}
	if at.Lost > 0 {
		s.floor, s.gaps = at.Lost, 1
		s.lost = &loss{after: at.Lost, why: "the member that ships since does not have these entries any more"}
	}
	s.turn()
	return s
}

// Know tells which bases members reported (kv.BackupRow.Known). Retention believes no others. The list must not be changed.
func (s *Shipper) Know(bases []kv.BackupBase) { s.known = bases }

// Tick tells the time.
func (s *Shipper) Tick(now int64) {
	s.now = max(s.now, now)
	s.turn()
}

// Applied takes entries that were applied. They are the caller's again once they are sealed: nothing may change them before.
func (s *Shipper) Applied(now int64, b *Batch) {
	if len(b.Items) == 0 {
		return
	}
	s.now = max(s.now, now)
	s.last.Time = max(s.last.Time, s.now)
	s.news = max(s.news, b.news())
	s.take(b)
	s.applied = b.Items[len(b.Items)-1].Entry.Index
	s.came()
	s.turn()
}

// Room returns how many of the items of a batch there is room for now: given more, the Shipper would leave some out. It takes
// the first one, however large, while nothing waits, and all of them while it leaves out entries.
func (s *Shipper) Room(b *Batch) (items int) {
	if s.lost != nil || b.Items[0].Entry.Index != s.applied+1 {
		return len(b.Items)
	}
	held := s.held()
	for items < len(b.Items) {
		held += int64(b.Items[items].Entry.SizeBytes())
		if held > s.config.HeldBytes && (items > 0 || s.held() > 0) {
			break
		}
		items++
	}
	return items
}

// Replaced tells that a snapshot has taken the place of the store: entries up to applied are in it, and will not be given.
func (s *Shipper) Replaced(now int64, applied consensus.Index) {
	s.now = max(s.now, now)
	s.last.Time = max(s.last.Time, s.now)
	if applied > s.applied {
		s.leaveOut(fmt.Sprintf("the store was replaced by a snapshot of entry %d", applied))
		s.applied, s.news = applied, applied
		s.came()
	}
	s.turn()
}

// Seal seals what waits, whatever its age: the member is about to end.
func (s *Shipper) Seal() {
	if len(s.pending.segment.Items) > 0 {
		s.seal()
	}
	s.turn()
}

// Done tells how an operation ended.
func (s *Shipper) Done(id uint64, o Outcome) {
	of, known := s.running[id]
	if !known {
		return
	}
	delete(s.running, id)
	s.roads.end(of.road)
	if of.kind != Prune {
		s.trouble = o.Why
	}
	of.end(&o)
	s.turn()
}

// Take returns the operations that are to begin.
func (s *Shipper) Take() []Op {
	ops := s.ops
	s.ops = nil
	return ops
}

// Progress returns how far the backup is.
func (s *Shipper) Progress() Progress {
	return Progress{Applied: s.applied, Sealed: s.sealed, Base: s.base.head, BaseHash: s.base.hash,
		Restorable: s.restorable, Held: s.held(), Gaps: s.gaps, Gap: s.gap, Lost: s.lost != nil, Trouble: s.trouble,
		Current: s.restorable.Index > 0 && s.restorable.Index >= s.news, Retention: s.retention.said}
}

// turn does all that can be done now.
func (s *Shipper) turn() {
	s.sealIfDue()
	s.recover()
	s.putQueue(1)
	s.turnRetention()
	s.turnOthers()
	s.putQueue(s.config.Puts)
	s.noteRestorable()
}

// turnOthers begins what is due of a base and of retention, by turns: neither waits for the end of the other. It comes before
// the log has more than one operation, which has more to put all the time where the place is slow.
func (s *Shipper) turnOthers() {
	if s.roads.pruned {
		s.turnBase()
		s.takePrune()
		return
	}
	s.takePrune()
	s.turnBase()
}

// noteRestorable notes how far a restore comes: to the newest base, or to the last segment, if the segments from that base on
// are all there.
func (s *Shipper) noteRestorable() {
	at := s.base.head
	if at.Index > 0 && s.first > 0 && at.Index+1 >= s.first && s.sealed.Index > at.Index {
		at = s.sealed
	}
	if at.Index > s.restorable.Index {
		s.restorable = at
	}
}

// begin begins an operation, for which a road is free. end is called with its outcome.
func (s *Shipper) begin(op Op, by road, end func(*Outcome)) {
	s.nextID++
	op.ID = s.nextID
	s.running[op.ID] = started{op.Kind, by, end}
	s.roads.begin(by, op.Kind == Prune)
	s.ops = append(s.ops, op)
}

// retry is when something is tried again that has failed so many times.
func (s *Shipper) retry(failures int) int64 {
	return s.now + min(retryFirst<<min(failures, 10), retryLimit)
}
