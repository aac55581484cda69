package prune_test

import (
	"encoding/json"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/backup/keep"
	"github.com/quorate/quorate/internal/backup/prune"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// forge puts a base that looks whole: its manifest has the name's hash, and its only file is there.
func (w *world) forge(epoch uint64, index consensus.Index, time int64, set backup.Set) string {
	w.put(fileName("forged"), []byte("content of forged"))
	file := backup.File{Name: "forged", Size: int64(len("content of forged")), Hash: backup.HashOf([]byte("content of forged"))}
	n := backup.BaseName{Cluster: cluster, Epoch: epoch, Point: backup.Point{Index: index, Sum: uint64(index) * 7},
		Moment: backup.Moment{Revision: 1, Time: time}, Set: set}
	m := backup.Manifest{Version: 1, Cluster: cluster, Epoch: epoch, Member: 3, Index: index, Term: 1, Revision: 1,
		Sum: backup.Hex(n.Sum), Level: 1, Time: time, Files: []backup.File{file}}
	if set == 0 {
		name, content := m.Encode()
		w.put(name.String(), content)
		return name.String()
	}
	content, err := json.Marshal(map[string]any{"version": 1, "objects": []backup.Object{{Hash: file.Hash, Size: file.Size}},
		"sealed": []byte("nobody opens it")})
	if err != nil {
		w.t.Fatal(err)
	}
	n.Hash = backup.HashOf(content)
	w.put(n.String(), content)
	return n.String()
}

func (w *world) known() (all []kv.BackupBase) {
	for i := range w.bases {
		all = append(all, kv.BackupBase{Index: uint64(w.bases[i].Index), Hash: w.bases[i].Hash})
	}
	return all[max(0, len(all)-kv.MaxBackupKnown):]
}

// after returns which objects of members are there after some rounds, and what the last one said.
func (w *world) after(rounds int) (names []string, r prune.Report) {
	p := prune.New(config)
	for range rounds {
		p.Begin(w.now, w.bases[len(w.bases)-1].Index, w.known()...)
		for ops := p.Take(); len(ops) > 0; ops = p.Take() {
			for i := range ops {
				p.Done(ops[i].ID, fetch.Prune(w.t.Context(), w.place, &ops[i]))
			}
		}
	}
	return w.place.Names(), p.Report()
}

// Ensure that bases which somebody else puts make retention remove nothing of the members' that it would not remove without
// them: bases to come, bases between those that are there, with times of long ago or of now, in the clear or encrypted, of this
// epoch, a former or a later one.
func TestPruner_forgedBases(t *testing.T) {
	const last = 120
	build := func() *world {
		w := newWorld(t)
		w.base(0, "always")
		w.ship(0, last)
		return w
	}
	calm := build()
	want, _ := calm.after(6)
	for seed := range int64(60) {
		rng := rand.New(rand.NewSource(seed))
		w := build()
		set := backup.Set(rng.Intn(2) * 0x1234)
		var forged []string
		above := false
		for i := range 1 + rng.Intn(40) {
			index, time := consensus.Index(rng.Intn(last)), begun-int64(rng.Intn(5000))*hour
			epoch := uint64(0)
			switch rng.Intn(8) {
			case 0:
				index, above = 1<<40+consensus.Index(i), true
			case 1:
				index = last - 1
			case 2:
				epoch, above = 3, true
			case 3, 4:
				time = state(int(index)).Time // as if it were true
			}
			if index%4 == 0 { // two states of one entry let nothing go anyway
				index++
			}
			forged = append(forged, w.forge(epoch, index, time, set))
		}
		got, report := w.after(6)
		for _, name := range want {
			if !slices.Contains(got, name) && !strings.HasPrefix(name, backup.KeptPrefix) {
				t.Fatalf("seed %d: %s is gone, by %v: %+v", seed, name, forged, report)
			}
		}
		if above && (report.Removed > 0 || !report.Refused || !slices.ContainsFunc(forged, func(name string) bool {
			return strings.Contains(report.Why, name)
		})) {
			t.Errorf("seed %d: %+v", seed, report)
		}
		if !above && (!report.Done || report.Refused) {
			t.Errorf("seed %d: bases that do not matter stop retention: %+v", seed, report)
		}
	}
}

// Ensure that a segment of an epoch which there is not lets nothing go, and is named: it might be of a cluster that was recovered.
func TestPruner_forgedEpoch(t *testing.T) {
	w := newWorld(t)
	w.base(0, "always")
	w.ship(0, 120)
	before := len(w.place.Names())
	s := backup.SegmentName{Cluster: cluster, Epoch: 3, First: 1, End: backup.Point{Index: 2, Sum: 2}}
	w.put(s.String(), nil)
	if _, r := w.after(3); !r.Refused || !strings.Contains(r.Why, s.String()) || len(w.place.Names()) != before+1 {
		t.Errorf("got %+v", r)
	}
}

// Ensure that, where it is not known who made what, times that do not rise with the entries let nothing go.
func TestPruner_disorder(t *testing.T) {
	w := newWorld(t)
	w.base(0, "always")
	w.ship(0, 100)
	before := len(w.place.Names())
	name := w.forge(0, 99, begun-1000*hour, 0)
	r := w.whole()
	if !r.Refused || !strings.Contains(r.Why, name) || len(w.place.Names()) != before+2 {
		t.Errorf("got %+v", r)
	}
}

// Ensure that the newest base is the one that members made, not one that somebody else put for the same entry.
func TestPruner_newestForged(t *testing.T) {
	w := newWorld(t)
	w.base(0, "always")
	w.ship(0, 8)
	known := w.known()
	w.forge(0, 8, state(8).Time+1, 0)
	newest := w.bases[len(w.bases)-1].String()
	if err := w.place.Delete(t.Context(), newest); err != nil {
		t.Fatal(err)
	}
	p := prune.New(config)
	p.Begin(w.now, 8, known...)
	for ops := p.Take(); len(ops) > 0; ops = p.Take() {
		for i := range ops {
			p.Done(ops[i].ID, fetch.Prune(w.t.Context(), w.place, &ops[i]))
		}
	}
	if r := p.Report(); !strings.Contains(r.Why, "does not list the newest base") {
		t.Errorf("got %+v", r)
	}
}

// Ensure that a base that was put long after its time replaces none of those that members have forgotten.
func TestPruner_forgedLate(t *testing.T) {
	build := func() *world {
		w := newWorld(t)
		w.base(0, "always")
		w.ship(0, 400) // the rows know those from entry 148 on
		return w
	}
	rule := config.Rule
	config.Rule = keep.Rule{Window: rule.Window, Daily: 30}
	defer func() { config.Rule = rule }()
	want, _ := build().after(8)
	w := build()
	for index := 5; index < 140; index += 4 { // some are the last of a day
		w.forge(0, consensus.Index(index), state(index).Time, 0)
	}
	got, _ := w.after(8)
	for _, name := range want {
		if !slices.Contains(got, name) && !strings.HasPrefix(name, backup.KeptPrefix) {
			t.Fatalf("%s is gone", name)
		}
	}
}

// Ensure that a note of what was removed, of entries that there are not yet, does not become what members note.
func TestPruner_forgedNote(t *testing.T) {
	w := newWorld(t)
	w.ship(0, 120)
	forged := backup.Kept{Cluster: backup.Hex(cluster), Member: 3, Floor: 1 << 40, Rule: "1h"}
	name, content := forged.Encode()
	w.put(name.String(), content)
	names, r := w.after(2)
	var floors []consensus.Index
	for _, one := range names {
		if n, err := backup.ParseKept(one); err == nil {
			floors = append(floors, n.Floor)
		}
	}
	if r.Plan == nil || r.Plan.Floor == 0 || len(floors) != 2 || floors[0] != r.Plan.Floor || floors[1] != 1<<40 {
		t.Errorf("notes of %v, %+v", floors, r)
	}
}
