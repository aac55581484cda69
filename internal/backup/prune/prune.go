package prune

import (
	"time"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/keep"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// Config is what a Pruner goes by.
type Config struct {
	Cluster consensus.ClusterID
	Epoch   uint64             // of the cluster
	Member  consensus.MemberID // for notes
	Rule    keep.Rule
	// MostBytes bounds what a round holds: what it knows of bases, notes and files, and of what they leave one manifest, which
	// has a quarter in any case.
	MostBytes int64
	DryRun    bool // count what would go, and remove nothing
	Faults    Faults
}

// Faults make a Pruner wrong on purpose, for the simulator's negative controls.
type Faults struct {
	Young   bool // files are removed however new they are
	Named   bool // files are removed that manifests name
	Lacking bool // a base counts as whole though files are missing
	AllLog  bool // the log before the newest base is removed
}

// DefaultMostBytes is the memory of a round.
const DefaultMostBytes = 64 << 20

// A base, a note and a file take about so many bytes of memory: a base with its fate, and with what earlier rounds knew of it.
const (
	baseBytes = 768
	noteBytes = 192
	fileBytes = 128
)

// Bounds of what a place may have.
const (
	MaxBases  = 50_000
	MaxEpochs = 1000
	MaxNotes  = 50_000
	MaxPages  = 100_000 // of lists, in a round
)

// Times by the place's clock.
const (
	// FileGrace is how old a file is that is removed: a member may have put it for a base whose manifest is not there yet.
	FileGrace = 24 * time.Hour
	// ManifestGrace lies between the end of the manifests that named a file, and its own.
	ManifestGrace = 30 * time.Minute
)

// deletes is how many segments are deleted at once.
const deletes = 4

// Kind is the kind of an operation.
type Kind uint8

// Kinds of operations.
const (
	// List returns the first objects whose names begin with Name and come after After.
	List Kind = 1 + iota
	// Get reads the object Name, which has the hash Hash and at most Most bytes.
	Get
	// Put puts Content under Name.
	Put
	// Delete removes the object Name.
	Delete
)

// Op is an operation that the caller begins now, and tells the end of by Done.
type Op struct {
	ID      uint64
	Kind    Kind
	Name    string
	After   string      // of List
	Hash    backup.Hash // of Get
	Most    int64       // of Get, in bytes
	Content []byte      // of Put
}

// Listed is an object in a list.
type Listed struct {
	Name string
	Size int64 // bytes
	Time int64 // when the place took it, by its clock, in milliseconds since 1970
}

// Outcome is how an operation ended.
type Outcome struct {
	Why     string // it failed; empty: it did not
	Refused bool   // it will fail again unless somebody does something
	Listed  []Listed
	More    bool   // the list goes on
	Content []byte // of Get
	Absent  bool   // Get found no object
	Damaged bool   // Get found other bytes
}

// Report is how the last round ended.
type Report struct {
	Ended   int64 // milliseconds since 1970; zero: none did
	Done    bool  // to its end
	Why     string
	Refused bool       // Why lasts until somebody does something
	Plan    *keep.Plan // nil: the round did not come so far
	Removed int        // objects
	Bytes   int64      // of them
	Lacks   bool       // the newest base lacks files: a new one should be made
}

// Pruner is the state machine. It is not safe for concurrent use.
type Pruner struct {
	config  Config
	now     int64
	round   *round // nil: none is under way
	stopped bool
	seen    map[backup.BaseName]stored // bases of this round and of earlier ones: a list may omit some
	report  Report

	ops     []Op
	running map[uint64]func(*Outcome)
	nextID  uint64
}

// stored is what the place says of an object.
type stored struct{ size, time int64 }

// New returns a Pruner.
func New(c Config) *Pruner {
	if c.MostBytes <= 0 {
		c.MostBytes = DefaultMostBytes
	}
	return &Pruner{config: c, seen: map[backup.BaseName]stored{}, running: map[uint64]func(*Outcome){}}
}

// Active reports whether a round is under way.
func (p *Pruner) Active() bool { return p.round != nil }

// Looking reports whether a round is under way that still looks which files are named: a base that is made meanwhile may be
// missed.
func (p *Pruner) Looking() bool { return p.round != nil && !p.round.looked }

// Report is that of the last round that has ended.
func (p *Pruner) Report() Report { return p.report }

// Begin begins a round, at a time in milliseconds. The newest base that is known to be there must be in the place's list; zero:
// none is known. known are the bases that members reported last, that one among them; none: it is known by its entry only, and
// all bases at the place are believed.
func (p *Pruner) Begin(now int64, newest consensus.Index, known ...kv.BackupBase) {
	p.now, p.stopped = now, false
	p.round = newRound(newest)
	p.round.known, p.round.held = known, baseBytes*int64(len(p.seen))
	p.listBases("")
}

// Stop ends the round once the operations under way have ended.
func (p *Pruner) Stop() {
	p.stopped = true
	p.ops = nil
	if p.round != nil {
		for id := range p.running {
			if !p.round.begun[id] {
				delete(p.running, id)
			}
		}
		p.settle()
	}
}

// Take returns the operations that are to begin.
func (p *Pruner) Take() (ops []Op) {
	for op, due := p.TakeOne(); due; op, due = p.TakeOne() {
		ops = append(ops, op)
	}
	return ops
}

// TakeOne returns the next operation that is to begin; false: there is none.
func (p *Pruner) TakeOne() (op Op, due bool) {
	if len(p.ops) == 0 {
		return Op{}, false
	}
	op = p.ops[0]
	p.ops = p.ops[1:]
	p.round.begun[op.ID] = true
	return op, true
}

// Done tells how an operation ended.
func (p *Pruner) Done(id uint64, o Outcome) {
	then := p.running[id]
	if then == nil {
		return
	}
	delete(p.running, id)
	delete(p.round.begun, id)
	switch {
	case p.stopped:
	case o.Why != "":
		p.fail(o.Why, o.Refused)
	default:
		then(&o)
	}
	p.settle()
}

// do begins an operation. then is called with what it gave, if it did not fail.
func (p *Pruner) do(op Op, then func(*Outcome)) {
	if op.Kind == List {
		if p.round.pages++; p.round.pages > MaxPages {
			p.tooMany(op.Name)
			return
		}
	}
	p.nextID++
	op.ID = p.nextID
	p.running[op.ID] = then
	p.ops = append(p.ops, op)
}

// tooMany ends a round at a place that has more than it looks at.
func (p *Pruner) tooMany(prefix string) {
	p.fail("the place has more objects below "+prefix+" than retention looks at: find out who else writes there, and give "+
		"members more --memory; until then nothing is removed", true)
}

// fail ends the round.
func (p *Pruner) fail(why string, refused bool) {
	p.stopped, p.ops = true, nil
	for id := range p.running {
		if !p.round.begun[id] {
			delete(p.running, id)
		}
	}
	p.round.report.Why, p.round.report.Refused = why, refused
}

// settle ends a round that was stopped, once nothing of it is under way.
func (p *Pruner) settle() {
	if p.stopped && p.round != nil && len(p.running) == 0 {
		p.end()
	}
}

func (p *Pruner) end() {
	p.report = p.round.report
	p.report.Ended = p.now
	p.round = nil
}

// finish ends a round that came to its end.
func (p *Pruner) finish() {
	p.round.report.Done = true
	p.end()
}
