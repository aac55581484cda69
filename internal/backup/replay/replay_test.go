package replay_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/backup/perform"
	"github.com/quorate/quorate/internal/backup/replay"
	"github.com/quorate/quorate/internal/backup/ship"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/objects/objectstest"
)

const cluster = 0xabcdef

// opener opens the stores of a test: those of the simulator, or Pebble's.
type opener func(dir string) (engine.Engine, error)

func openMem(dir string) (engine.Engine, error) {
	return engine.OpenMem(engine.MemOptions{FS: files.Disk, Dir: dir})
}

func openPebble(dir string) (engine.Engine, error) {
	return engine.Open(engine.Options{FS: files.Disk, Dir: dir})
}

// member is a state machine whose backup is shipped to a place.
type member struct {
	t        *testing.T
	rng      *rand.Rand
	open     opener
	store    engine.Engine
	machine  *apply.Machine
	place    *objectstest.Place
	reads    backup.Opener // nil: the backup is in the clear
	shipper  *ship.Shipper
	performs perform.Performer
	now      int64
	index    consensus.Index
	was      map[consensus.Index]string // what was there after each entry
	at       map[consensus.Index]backup.Moment
}

func newMember(t *testing.T, seed int64, open opener) *member {
	t.Helper()
	m := &member{t: t, rng: rand.New(rand.NewSource(seed)), open: open, now: 1_790_000_000_000,
		was: map[consensus.Index]string{}, at: map[consensus.Index]backup.Moment{}}
	m.store, m.machine = bootstrapped(t, open)
	m.place = objectstest.NewPlace(uint64(seed), func() time.Time { return time.UnixMilli(m.now) })
	m.performs = perform.Performer{Store: m.place, FS: files.Disk, Dir: t.TempDir() + "/checkpoint",
		Checkpoint: checkpointOf(m.store, m.machine)}
	m.shipper = ship.New(ship.Config{Cluster: cluster, Member: 3, Build: "1.1.0", SealBytes: 4000, BaseEvery: 60_000},
		ship.Start{}, m.now)
	return m
}

// bootstrapped opens the store of a new cluster.
func bootstrapped(t testing.TB, open opener) (engine.Engine, *apply.Machine) {
	t.Helper()
	store, err := open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := apply.Bootstrap(store, cluster, consensus.Config{Voters: []consensus.MemberID{3}}); err != nil {
		t.Fatal(err)
	}
	machine, err := apply.Open(store, apply.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return store, machine
}

// checkpointOf makes checkpoints of a store while its machine applies nothing.
func checkpointOf(
	store engine.Engine, machine *apply.Machine,
) func(context.Context, string, func(*apply.Machine) error) error {
	return func(_ context.Context, dir string, f func(*apply.Machine) error) error {
		if err := store.Checkpoint(dir); err != nil {
			return err
		}
		return f(machine)
	}
}

func (m *member) command() kv.Command {
	key, value := fmt.Sprint("k", m.rng.Intn(20)), strings.Repeat(fmt.Sprint(m.rng.Intn(1000)), 1+m.rng.Intn(500))
	switch m.rng.Intn(14) {
	case 0:
		return kv.Command{Delete: &kv.DeleteOp{Key: []byte(key), End: []byte("k2")}}
	case 1:
		return kv.Command{LeaseGrant: &kv.LeaseGrantOp{ID: kv.LeaseID(1 + m.rng.Intn(4)), TTLSeconds: 60}}
	case 2:
		return kv.Command{LeaseRevoke: &kv.LeaseRevokeOp{ID: kv.LeaseID(1 + m.rng.Intn(4))}}
	case 3:
		return kv.Command{Compact: &kv.CompactOp{Revision: m.machine.Store().Revision() - kv.Revision(m.rng.Intn(20))}}
	case 4:
		return kv.Command{Auth: &auth.Change{Kind: auth.UserAdd, User: key, Hash: []byte("hash")}}
	case 5, 6:
		return kv.Command{Put: &kv.PutOp{Key: []byte(key), Value: []byte(value), Lease: kv.LeaseID(1 + m.rng.Intn(4))}}
	case 7:
		return kv.Command{Txn: &kv.TxnOp{Then: []kv.Op{{Put: &kv.PutOp{Key: []byte(key), Value: []byte(value)}},
			{Put: &kv.PutOp{Key: []byte(key + "x"), Value: []byte(value)}}}}}
	}
	return kv.Command{Put: &kv.PutOp{Key: []byte(key), Value: []byte(value)}}
}

// contents is all that a restore must bring back. Of a value it has the sum: values in full, printed after each entry, took
// most of the time of these tests.
func contents(t *testing.T, m *apply.Machine) string {
	t.Helper()
	store := m.Store()
	var text strings.Builder
	fmt.Fprintf(&text, "%d %d users %x", store.CompactRevision(), store.Revision(), m.Users().Sum())
	if store.CompactRevision() < store.Revision() { // a hash of one revision is remembered, also of before it was compacted
		hash, _, _, err := store.HashKV(0)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, " hash %x", hash)
	}
	for key := range 20 {
		for _, name := range []string{fmt.Sprint("k", key), fmt.Sprint("k", key, "x")} {
			res, _, err := store.Range(&kv.RangeOp{Key: []byte(name)})
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&text, " %d %v", res.Count, res.More)
			for _, one := range res.KVs {
				fmt.Fprintf(&text, " %s %d %d %d %d %x", one.Key, one.CreateRevision, one.ModRevision, one.Version, one.Lease,
					sha256.Sum256(one.Value))
			}
		}
	}
	for _, l := range m.Leases().Leases(time.Time{}) {
		fmt.Fprint(&text, " ", l.ID, l.TTLSeconds)
		if err := m.VisitLeaseKeys(l.ID, func(key []byte) bool { text.Write(key); return true }); err != nil {
			t.Fatal(err)
		}
	}
	return text.String()
}

// write applies entries, and ships them.
func (m *member) write(entries int) {
	m.t.Helper()
	for range entries {
		m.apply(m.command())
		if m.rng.Intn(4) == 0 {
			if _, err := m.machine.Store().CompactStep(5); err != nil {
				m.t.Fatal(err)
			}
		}
	}
}

// apply applies an entry, and ships it.
func (m *member) apply(cmd kv.Command) {
	m.t.Helper()
	m.index++
	e := []consensus.Entry{{Index: m.index, Term: 1, Kind: consensus.EntryCommand, Payload: cmd.Append(nil)}}
	revision := m.machine.Store().Revision()
	results, err := m.machine.Apply(e)
	if err != nil {
		m.t.Fatal(err)
	}
	batch, err := perform.Batch(m.machine, revision, e, results)
	if err != nil {
		m.t.Fatal(err)
	}
	m.was[m.index] = contents(m.t, m.machine)
	m.now += int64(m.rng.Intn(400))
	m.at[m.index] = backup.Moment{Revision: m.machine.Store().Revision(), Time: m.now}
	m.shipper.Applied(m.now, batch)
	m.perform()
}

// perform performs what the shipper wants now, once.
func (m *member) perform() {
	for _, op := range m.shipper.Take() {
		m.shipper.Done(op.ID, m.performs.Do(m.t.Context(), &op))
	}
}

// settle lets the shipper do all that it has to do, in a place without faults.
func (m *member) settle() {
	m.t.Helper()
	m.place.SetFaults(objectstest.Faults{})
	for range 200 {
		m.now += 1000
		m.shipper.Tick(m.now)
		m.perform()
	}
	if p := m.shipper.Progress(); p.Restorable.Index != m.index {
		m.t.Fatalf("entry %d: %+v", m.index, p)
	}
}

func (m *member) catalog() *backup.Catalog {
	m.t.Helper()
	ids, err := fetch.Clusters(m.t.Context(), m.place)
	if err != nil || len(ids) != 1 || ids[0] != cluster {
		m.t.Fatalf("clusters %v, %v", ids, err)
	}
	c, err := fetch.Catalog(m.t.Context(), m.place, cluster)
	if err != nil {
		m.t.Fatal(err)
	}
	return c
}

func (m *member) run(target backup.Target) (*replay.State, error) {
	return replay.Run(m.t.Context(), replay.Options{Store: m.place, FS: files.Disk, Dir: m.t.TempDir() + "/scratch",
		OpenEngine: m.open, Open: m.reads}, m.catalog(), target)
}

// restores restores a target, which must be the state after an entry, with all its contents.
func (m *member) restores(target backup.Target, want consensus.Index) *replay.State {
	m.t.Helper()
	s, err := m.run(target)
	if err != nil {
		m.t.Fatalf("%v: %v", target, err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			m.t.Error(err)
		}
	}()
	if got := contents(m.t, s.Machine); s.At.Index != want || s.Machine.Applied().Index != want || got != m.was[want] {
		m.t.Fatalf("%v: got entry %d, %s; want %d, %s", target, s.At.Index, got, want, m.was[want])
	}
	return s
}

// last returns the last entry within a target.
func (m *member) last(target backup.Target) (last consensus.Index) {
	for i := consensus.Index(1); i <= m.index && target.Within(i, m.at[i]); i++ {
		last = i
	}
	return last
}

// Points of a history (entries, times, revisions, the latest state) come back with the contents that the member had, from a
// place whose answers were lost, late and cut while the backup was shipped; also to a reader that knows nothing but the place,
// and refuses what may not be the state that is asked for.
func TestRun_walk(t *testing.T) {
	for seed := range int64(3) {
		m := newMember(t, seed, openMem)
		if seed == 2 {
			m.encrypt()
		}
		m.write(30)
		m.place.SetFaults(objectstest.Faults{Busy: 0.1, Lost: 0.1, Gone: 0.1, Cut: 0.1})
		m.write(300)
		m.settle()
		c := m.catalog()
		if len(c.Bases) < 2 || len(c.Segments) < 20 {
			t.Fatalf("seed %d: %d bases, %d segments", seed, len(c.Bases), len(c.Segments))
		}
		m.points(fmt.Sprint("seed ", seed), 10)
	}
}

// points restores some states of the place, each by its entry, its time and its revision, and the latest one.
func (m *member) points(what string, states int) {
	m.t.Helper()
	first := m.catalog().Bases[0]
	for i := range states {
		at := first.Index + 1 + consensus.Index(m.rng.Intn(int(m.index-first.Index)))
		targets := []backup.Target{{}, {Index: at}, {Time: m.at[at].Time}, {Revision: m.at[at].Revision}}
		for _, target := range targets[min(1, i):] {
			if !target.Within(first.Index, first.Moment) {
				continue // of a time before that of the first base
			}
			m.honest(what, target, m.last(target))
		}
	}
}

// honest wants the state after an entry for a target, of a place that is as members left it; for a revision any state of it.
func (m *member) honest(what string, target backup.Target, want consensus.Index) {
	m.t.Helper()
	for _, sole := range []bool{true, false} {
		s, err := m.sole(target, sole)
		if err != nil {
			m.t.Errorf("%s, %v, one history %v: %v", what, target, sole, err)
			continue
		}
		if target.Revision != 0 && s.At.Revision == m.at[want].Revision {
			want = s.At.Index
		}
		if got := contents(m.t, s.Machine); s.At.Index != want || got != m.was[want] || len(s.Damaged) > 0 {
			m.t.Errorf("%s, %v, one history %v: got entry %d, want %d; told %v", what, target, sole, s.At.Index, want, s.Damaged)
		}
		if err := s.Close(); err != nil {
			m.t.Error(err)
		}
	}
}

// Each object of a place is taken away, and each is changed: the restore names it, and gets the same state from an older
// base, or refuses and says what can be had.
func TestRun_eachObject(t *testing.T) {
	t.Run("in the clear", func(t *testing.T) { eachObject(newMember(t, 7, openMem)) })
	t.Run("encrypted", func(t *testing.T) {
		m := newMember(t, 7, openMem)
		m.encrypt()
		eachObject(m)
	})
}

func eachObject(m *member) {
	m.t.Helper()
	t := m.t
	m.write(150)
	m.settle()
	m.write(50)
	m.settle()
	bases := m.catalog().Bases
	if len(bases) < 3 {
		t.Fatalf("%d bases", len(bases))
	}
	between := (bases[1].Index + bases[2].Index) / 2
	var others, refused int
	for i, name := range m.place.Names() {
		content, _ := m.place.Bytes(name)
		damaged := [][]byte{nil, flipped(m.rng, content), content[:len(content)/2]}[i%3]
		m.replace(name, damaged)
		wants := []consensus.Index{m.index, between}
		if m.reads != nil { // half as many restores
			wants = wants[i%2 : i%2+1]
		}
		for _, want := range wants {
			other, refuses := m.survives(name, damaged != nil, want)
			others, refused = others+other, refused+refuses
		}
		m.replace(name, content)
	}
	if others == 0 || refused == 0 {
		t.Errorf("%d restores took another base, %d were refused", others, refused)
	}
}

func flipped(rng *rand.Rand, content []byte) []byte {
	content = bytes.Clone(content)
	content[rng.Intn(len(content))] ^= 1 << rng.Intn(8)
	return content
}

// replace puts another content in an object's place; nil takes the object away.
func (m *member) replace(name string, content []byte) {
	m.t.Helper()
	m.place.Remove(name)
	if content == nil {
		return
	}
	if err := m.place.Put(m.t.Context(), name, bytes.NewReader(content), int64(len(content))); err != nil {
		m.t.Fatal(err)
	}
}

// survives restores an entry while one object is missing or damaged, and reports whether another base was taken, or it was
// refused.
func (m *member) survives(name string, there bool, want consensus.Index) (other, refused int) {
	m.t.Helper()
	s, err := m.run(backup.Target{Index: want})
	if unreachable := (*backup.UnreachableError)(nil); errors.As(err, &unreachable) {
		if there && !strings.Contains(err.Error(), name) { // one that is gone is told by the entries that no object has
			m.t.Errorf("%s is damaged: told %v", name, err)
		}
		if unreachable.Best != nil {
			m.restores(backup.Target{Index: unreachable.Best.Index}, unreachable.Best.Index)
		}
		return 0, 1
	}
	if err != nil {
		m.t.Fatalf("%s: %v", name, err)
	}
	if got := contents(m.t, s.Machine); got != m.was[want] {
		m.t.Fatalf("%s: got %s, want %s", name, got, m.was[want])
	}
	if len(s.Damaged) > 0 {
		other = 1
		if !strings.Contains(errors.Join(s.Damaged...).Error(), name) {
			m.t.Errorf("%s: told %v", name, s.Damaged)
		}
	}
	if err := s.Close(); err != nil {
		m.t.Fatal(err)
	}
	return other, 0
}

// A base of a later feature level is refused before its files are read, and is not taken for a damaged one.
func TestRun_laterLevel(t *testing.T) {
	m := newMember(t, 3, openMem)
	m.write(20)
	m.settle()
	for _, base := range m.catalog().Bases {
		content, _ := m.place.Bytes(base.String())
		made, err := backup.OpenManifest(&base.BaseName, content, nil)
		if err != nil {
			t.Fatal(err)
		}
		made.Level = level.Own + 1
		name, later := made.Encode()
		m.place.Remove(base.String())
		m.replace(name.String(), later)
		m.place.Remove(backup.FileName(cluster, made.Files[0].Hash))
	}
	var low *level.TooLowError
	if _, err := m.run(backup.Target{}); !errors.As(err, &low) || low.Active != level.Own+1 {
		t.Errorf("got %v", err)
	}
}

// The same with Pebble's stores: files that lie apart, tables that are shared by bases and put once.
func TestRun_pebble(t *testing.T) {
	m := newMember(t, 5, openPebble)
	m.write(200)
	m.settle()
	s := m.restores(backup.Target{}, m.index)
	if s.Entries == 0 && len(s.Plan.Segments) > 0 {
		t.Errorf("%d segments, no entry", len(s.Plan.Segments))
	}
	half := m.index / 2
	m.restores(backup.Target{Index: half}, half)
	for _, name := range m.place.Names() {
		if strings.HasPrefix(name, "log/") {
			m.place.Flip(name, 50)
		}
	}
	if _, err := m.run(backup.Target{Index: half}); err == nil || !strings.Contains(err.Error(), "object log/") {
		t.Errorf("got %v", err)
	}
}
