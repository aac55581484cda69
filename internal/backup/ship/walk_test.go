package ship_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/prune"
	"github.com/quorate/quorate/internal/backup/ship"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

const cluster = 0xabcdef

// world is a member that ships, its history, and a place with faults.
type world struct {
	t       *testing.T
	rng     *rand.Rand
	config  ship.Config
	shipper *ship.Shipper
	now     int64
	history []backup.Item // entry i has index i+1
	own     []bool        // of them: it is the backup's own
	given   int           // entries that the shipper was given
	place   map[string][]byte
	times   map[string]int64
	hours   int64 // how much faster time goes
	deleted int
	ghosts  bool // operations of a member end after another one has begun
	running []running
	calm    bool
	good    []backup.Head // points that were called restorable
	sealed  uint64        // objects
	// lock encrypts what the present member puts; secrets are those of all locks that there were.
	lock    *backup.Lock
	secrets []backup.Secret
	// restarts: other members take over. late: lists are late, and operations of the former one end later. Both hide what came
	// before: then a gap shows in the names, without a note.
	restarts, late bool
	remembers      bool // members have all that they applied
	plain          bool // a member shipped in the clear
}

// running is an operation, perhaps of a shipper that is gone.
type running struct {
	op ship.Op
	of *ship.Shipper
}

func (w *world) sum(index consensus.Index) uint64 {
	if index == 0 {
		return 1
	}
	return w.history[index-1].Sum
}

func (w *world) revision(index consensus.Index) kv.Revision {
	if index == 0 {
		return 1
	}
	return w.history[index-1].Revision
}

// write applies entries to the member's store.
func (w *world) write(n int) {
	for range n {
		index := consensus.Index(len(w.history) + 1)
		payload := make([]byte, w.rng.Intn(300))
		w.rng.Read(payload)
		w.history = append(w.history, backup.Item{
			Entry:    consensus.Entry{Index: index, Term: 1, Kind: consensus.EntryCommand, Payload: payload},
			Revision: w.revision(index-1) + kv.Revision(w.rng.Intn(2)), Sum: w.rng.Uint64(),
		})
		w.own = append(w.own, w.rng.Intn(3) == 0)
	}
}

// give gives the shipper some of what was applied.
func (w *world) give(most int) {
	n := min(most, len(w.history)-w.given)
	if n == 0 {
		return
	}
	before := consensus.Index(w.given)
	w.given += n
	w.shipper.Applied(w.now, &ship.Batch{Since: 0, Before: w.sum(before), RevisionBefore: w.revision(before),
		Items: slices.Clone(w.history[before:w.given]), Own: min(n, w.ownAtEnd(w.given))})
}

// ownAtEnd returns how many of the first n entries, at their end, are the backup's own.
func (w *world) ownAtEnd(n int) (own int) {
	for own < n && w.own[n-1-own] {
		own++
	}
	return own
}

// start lets a member begin to ship, from what it finds in the place.
func (w *world) start() {
	catalog := &backup.Catalog{Cluster: cluster}
	for _, name := range slices.Sorted(maps.Keys(w.place)) {
		content := w.place[name]
		if (!w.late || w.rng.Intn(20) > 0) && w.whole(name, content) {
			if err := catalog.Add(name, int64(len(content))); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	catalog.Sort()
	applied := consensus.Index(len(w.history))
	held := applied // the log has the entries after it
	if n := w.rng.Intn(80); int(held) > n && !w.remembers {
		held -= consensus.Index(n)
	} else {
		held = 0
	}
	at := ship.Begin(&ship.Found{Catalog: catalog, Applied: applied, Now: w.now, Secrets: w.secrets,
		Own: func(i consensus.Index) (uint64, bool) {
			if i < held || i > applied {
				return 0, false
			}
			return w.sum(i), true
		}})
	w.given = int(at.Applied)
	w.config.Lock, w.plain = w.lock, w.plain || w.lock == nil
	w.shipper = ship.New(w.config, at, w.now)
}

// whole reports whether an object is what its name says: a member reads the end of what it continues.
func (w *world) whole(name string, content []byte) bool {
	return strings.Contains(name, backup.HashOf(content).String())
}

// step does one thing.
func (w *world) step() {
	switch w.rng.Intn(12) {
	case 0, 1:
		w.write(1 + w.rng.Intn(8))
	case 2, 3:
		w.give(1 + w.rng.Intn(10))
	case 4, 5, 6:
		w.tick(int64(w.rng.Intn(400)))
	case 7:
		if w.restarts && !w.calm && w.rng.Intn(8) == 0 {
			if !w.late {
				w.running = nil
			}
			if w.lock != nil && w.rng.Intn(2) == 0 {
				w.relock()
			}
			w.start()
		}
	case 8:
		if !w.calm && w.rng.Intn(12) == 0 { // a snapshot replaces the store: the shipper does not see some entries
			w.write(1 + w.rng.Intn(5))
			w.given = len(w.history)
			w.shipper.Replaced(w.now, consensus.Index(w.given))
		}
	default:
		w.finish()
	}
	w.look()
}

func (w *world) tick(ms int64) {
	w.now += ms * w.hours
	w.shipper.Tick(w.now)
}

// look begins what the shipper asks for, and notes what it says.
func (w *world) look() {
	for _, op := range w.shipper.Take() {
		if op.Kind != ship.Discard {
			w.running = append(w.running, running{op, w.shipper})
		}
	}
	w.judgeRoads()
	p := w.shipper.Progress()
	if most := w.config.HeldBytes + int64(w.config.SealBytes) + 1024; p.Held > most { // a head, a note of a gap
		w.t.Fatalf("%d bytes wait", p.Held)
	}
	if n := len(w.good); p.Restorable.Index > 0 && (n == 0 || w.good[n-1] != p.Restorable) {
		w.good = append(w.good, p.Restorable)
	}
}

// finish ends an operation: well, not at all, or well without an answer. That of a shipper that is gone may end, too.
func (w *world) finish() {
	if len(w.running) == 0 {
		return
	}
	i := w.rng.Intn(len(w.running))
	op, of := w.running[i].op, w.running[i].of
	w.running = slices.Delete(w.running, i, i+1)
	out := ship.Outcome{}
	if does, answers := w.calm || w.rng.Intn(4) > 0, w.calm || w.rng.Intn(4) > 0; does {
		out = w.perform(&op)
		if !answers {
			out = failed(&op, "no answer")
		}
	} else {
		out = failed(&op, "busy")
	}
	if of == w.shipper {
		of.Done(op.ID, out)
	}
}

func failed(op *ship.Op, why string) ship.Outcome {
	if op.Kind == ship.Prune {
		return ship.Outcome{Pruned: prune.Outcome{Why: why}}
	}
	return ship.Outcome{Result: ship.Failed, Why: why}
}

func (w *world) perform(op *ship.Op) ship.Outcome {
	content := op.Content
	switch op.Kind {
	case ship.Prune:
		return ship.Outcome{Pruned: w.prune(op.Prune)}
	case ship.Checkpoint:
		return ship.Outcome{Made: w.checkpoint()}
	case ship.PutFile:
		if !w.calm && w.rng.Intn(20) == 0 {
			return ship.Outcome{Result: ship.Changed, Why: "the file changed"}
		}
		content = fileOf(op.File.Name, op.File.Key)
		if backup.HashOf(content) != op.File.Hash {
			w.t.Fatalf("file %+v", op.File)
		}
	}
	if there, taken := w.place[op.Name]; taken && !bytes.Equal(there, content) {
		return ship.Outcome{Result: ship.Taken, Why: "other bytes"}
	} else if !taken && op.Kind == ship.Put && !w.calm && w.rng.Intn(25) == 0 {
		w.place[op.Name] = content[:len(content)/2] // somebody's half of an object, which nobody was told of
		return ship.Outcome{Result: ship.Failed, Why: "no answer"}
	}
	w.place[op.Name], w.times[op.Name] = content, w.now
	return ship.Outcome{}
}

// checkpoint is one of now. Its files are few of the many that there are.
func (w *world) checkpoint() *backup.Manifest {
	index := consensus.Index(len(w.history))
	m := &backup.Manifest{Index: index, Term: 1, Revision: w.revision(index), Sum: backup.Hex(w.sum(index)), Level: 1}
	if w.hours > 1 { // files that are in all bases, and files that come again
		names := []string{"always", fmt.Sprint("again-", index/15%12)}
		for _, name := range names {
			m.Files = append(m.Files, w.fileNamed(name))
		}
	}
	for i := range 3 {
		name := fmt.Sprint(int(index)/(10+i), ".sst")
		name = fmt.Sprint(i, "-", name)
		m.Files = append(m.Files, w.fileNamed(name))
	}
	backup.SortFiles(m.Files)
	return m
}

func (w *world) fileNamed(name string) backup.File {
	f := backup.File{Name: name, Size: int64(len(fileOf(name, nil))), Hash: backup.HashOf(fileOf(name, nil))}
	if w.lock != nil {
		f.Key = w.lock.Secret.FileKey(f.Hash)
		f.Hash = backup.HashOf(fileOf(name, f.Key))
	}
	return f
}

func fileOf(name string, key *backup.FileKey) []byte {
	content := []byte("the content of " + name)
	if key != nil {
		key.Stream(0).XORKeyStream(content, content)
	}
	return content
}

// relock gives the backup other recipients. Sealing is a stand-in here: a number that never repeats, and the content under a
// mask.
func (w *world) relock() {
	var secret backup.Secret
	w.rng.Read(secret[:])
	w.secrets = append(w.secrets, secret)
	w.lock = &backup.Lock{Secret: secret, Seal: func(content []byte) []byte {
		w.sealed++
		return append(binary.LittleEndian.AppendUint64(nil, w.sealed), masked(content)...)
	}}
}

func masked(content []byte) []byte {
	content = bytes.Clone(content)
	for i := range content {
		content[i] ^= 0x5a
	}
	return content
}

func unmask(sealed []byte, most int64) ([]byte, error) {
	if len(sealed) < 8 || int64(len(sealed)-8) > most {
		return nil, errors.New("too long, or too short")
	}
	return masked(sealed[8:]), nil
}

// Whatever a place does (answers that are lost, halves of objects, names that are taken, lists that are late), and whatever
// befalls the member (it stops, another one goes on, a snapshot replaces its store, a checkpoint fails): a point that was
// called restorable is restored with the chain's sum, no entry is left out without a note, and once the place answers again,
// all that was written can be restored.
func TestShipper_walk(t *testing.T) {
	seeds := int64(250)
	if testing.Short() {
		seeds = 60
	}
	for seed := range seeds {
		walk(t, seed)
	}
}

func walk(t *testing.T, seed int64) {
	t.Helper()
	rng := rand.New(rand.NewSource(seed))
	w := &world{t: t, rng: rng, place: map[string][]byte{}, times: map[string]int64{}, hours: 1, now: 1_790_000_000_000, config: ship.Config{
		Cluster: cluster, Member: 3, SealBytes: 1 + rng.Intn(2000), SealAfter: 300, BaseEvery: 5000,
		HeldBytes: int64(1000 + rng.Intn(20000)), AtOnce: ship.LeastAtOnce + int(seed%5),
	}}
	defer func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	}()
	w.restarts, w.late = seed%3 > 0, seed%3 == 2
	if seed%4 > 1 {
		w.relock()
	}
	if rng.Intn(2) == 0 {
		w.config.BaseEvery = 1 << 40
	}
	w.write(rng.Intn(20))
	w.start()
	for i := range 600 {
		w.step()
		if i%100 == 99 {
			w.check()
		}
	}
	w.calm = true
	for range 400 {
		w.give(1000)
		w.tick(200)
		w.look()
		for range 8 {
			w.finish()
			w.look()
		}
	}
	w.check()
	w.apart()
	news := consensus.Index(len(w.history) - w.ownAtEnd(len(w.history)))
	if p := w.shipper.Progress(); p.Restorable.Index < news || !p.Current || p.Lost || p.Trouble != "" {
		t.Fatalf("%d entries, the last but the backup's own is %d, and all is calm: %+v", len(w.history), news, p)
	}
	w.shipper.Seal()
	for range 100 {
		w.look()
		w.finish()
	}
	if p := w.shipper.Progress(); p.Restorable.Index != consensus.Index(len(w.history)) {
		t.Fatalf("%d entries, and what waited was sealed: %+v", len(w.history), p)
	}
	if !w.late {
		w.covered()
	}
}

// apart wants no file of a base to be shared by two sets of recipients, and all that is not a file to be encrypted.
func (w *world) apart() {
	w.t.Helper()
	sets := map[backup.Hash]backup.Set{}
	for _, base := range w.catalog().Bases {
		objects, err := backup.ObjectsOf(&base.BaseName, w.place[base.String()])
		if err != nil {
			continue // damage
		}
		for _, o := range objects {
			if set, known := sets[o.Hash]; known && set != base.Set {
				w.t.Fatalf("file %v is of sets %x and %x", o.Hash, set, base.Set)
			}
			sets[o.Hash] = base.Set
		}
	}
	for name := range w.place {
		if !w.plain && (strings.HasSuffix(name, ".ql") || strings.HasSuffix(name, ".json") && !strings.HasSuffix(name, ".seal.json")) {
			w.t.Fatalf("%s is in the clear", name)
		}
	}
}

func (w *world) check() {
	w.t.Helper()
	for _, h := range w.good {
		w.restores(h)
	}
}
