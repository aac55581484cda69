package wal_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/storage/files/filestest"
	"github.com/quorate/quorate/internal/storage/wal"
)

// place is where a record begins, as Dump prints it.
type place struct {
	file   string
	offset int64
	bytes  int64
}

func recordsIn(t *testing.T, fs env.FS) []place {
	t.Helper()
	return recordsSealed(t, fs, false)
}

func recordsSealed(t *testing.T, fs env.FS, sealed bool) []place {
	t.Helper()
	var out bytes.Buffer
	if err := wal.Dump(&out, fs, dir, keysIf(sealed)); err != nil {
		t.Fatalf("dump: %v\n%s", err, &out)
	}
	var places []place
	var file string
	for lines := bufio.NewScanner(&out); lines.Scan(); {
		line := lines.Text()
		if name, _, ok := strings.Cut(line, ": cluster"); ok {
			file = name
		}
		var p place
		if n, _ := fmt.Sscanf(line, "%d record of %d bytes", &p.offset, &p.bytes); n == 2 {
			p.file = file
			places = append(places, p)
		}
	}
	return places
}

// contents is a log as bytes, so that a damaged copy of it is quick to make.
type contents map[string][]byte

func read(fs env.FS) contents {
	all := contents{}
	for _, name := range must(fs.List(dir)) {
		f := must(fs.Open(fs.PathJoin(dir, name)))
		all[name] = must(io.ReadAll(f))
	}
	return all
}

// with returns a file system with the log in it, in which one file is replaced.
func (f contents) with(name string, content []byte) *filestest.MemFS {
	fs := filestest.NewMem()
	if err := fs.MkdirAll("member", 0o700); err != nil {
		panic(err)
	}
	if err := fs.MkdirAll(dir, 0o700); err != nil {
		panic(err)
	}
	for other, b := range f {
		if other == name {
			b = content
		}
		file := must(fs.Create(fs.PathJoin(dir, other)))
		must(file.Write(slices.Clone(b)))
	}
	return fs
}

// smallLog returns a log of three segments and its successive states. Its last append adds a record and holds two entries by
// name: one of that record, one of a record that was added before. Records that get smaller are packed, if packed is set.
func smallLog(t *testing.T, clean, packed bool) (contents, []model) {
	t.Helper()
	return smallSealedLog(t, clean, packed, false)
}

func smallSealedLog(t *testing.T, clean, packed, sealed bool) (contents, []model) {
	t.Helper()
	fs := filestest.NewMem()
	o, appends := sealedOptions(fs, 4<<10, sealed), 40
	if packed {
		o.PackFrom, appends = 1, 60
	}
	w := must(wal.Create(o, identity))
	h := newHistory(3, 300)
	m := model{}
	states := []model{{}, m}
	for range appends {
		b := h.batch(&m)
		m = m.clone()
		m.append(&b)
		states = append(states, m)
		if err := w.Append(b); err != nil {
			t.Fatal(err)
		}
	}
	early, late := recordOf(70, "the one before"), recordOf(71, "of the same append")
	for _, batches := range [][]wal.Batch{
		{{Witness: keep(early)}},
		{{Witness: keep(late)}, {Entries: []consensus.Entry{entryOf(m.last()+1, early), entryOf(m.last()+2, late)}}},
	} {
		m = m.clone()
		for i := range batches {
			m.append(&batches[i])
		}
		states = append(states, m)
		before := w.Stats().Named
		if err := w.Append(batches...); err != nil {
			t.Fatal(err)
		}
		if len(batches) == 2 && w.Stats().Named != before+2 {
			t.Fatalf("the last append has %d entries by name", w.Stats().Named-before)
		}
	}
	if s := w.Stats(); s.Segments < 3 || (s.Packed > 15) != packed {
		t.Fatalf("the log has only %d segments, or %d records are packed", s.Segments, s.Packed)
	}
	if clean {
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return read(fs), states
}

func refused(err error) bool {
	return errors.Is(err, wal.ErrCorrupt) || errors.Is(err, wal.ErrNewerVersion)
}

// Ensure that a flip of any byte is refused or harmless. In a log that was closed cleanly it never loses anything; in one that
// was not, at most the last append is lost, and only by a flip inside it: such a flip cannot be told from a write that the
// power cut short.
func TestOpen_flipOfEveryByte(t *testing.T) {
	for i := range 6 {
		clean, packed, sealed := i%2 == 0, i/2 == 1, i/2 == 2
		log, states := smallSealedLog(t, clean, packed, sealed)
		last := recordsSealed(t, log.with("", nil), sealed)
		final := last[len(last)-1]
		step := stride()
		if sealed {
			step = 7 // as with -short
		}
		for _, name := range sortedNames(log) {
			for at := 0; at < len(log[name]); at += step {
				damaged := slices.Clone(log[name])
				damaged[at] ^= 1 << (at % 8)
				if at%2 == 1 {
					damaged[at] = ^log[name][at]
				}
				fs := log.with(name, damaged)
				_, got, err := wal.Open(sealedOptions(fs, 4<<10, sealed))
				if refused(err) {
					checkUntouched(t, fs, name, damaged)
					continue
				}
				if err != nil {
					t.Fatalf("clean %v: %s byte %d: %v", clean, name, at, err)
				}
				inFinal := name == final.file && int64(at) >= final.offset
				switch k := match(states, 1, &got); {
				case k == len(states)-1:
				case k == len(states)-2 && !clean && inFinal:
				default:
					t.Fatalf("clean %v: a flip of %s byte %d leaves state %d of %d", clean, name, at, k, len(states)-1)
				}
			}
		}
	}
}

func sortedNames(f contents) []string {
	var names []string
	for name := range f {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func checkUntouched(t *testing.T, fs env.FS, name string, want []byte) {
	t.Helper()
	if got := read(fs)[name]; !bytes.Equal(got, want) {
		t.Fatalf("%s was changed although the log was refused", name)
	}
}

// Ensure that a sealed segment that is truncated anywhere is refused, and that truncating the last one leaves an earlier state,
// or is refused where its head is gone.
func TestOpen_truncationAtEveryByte(t *testing.T) {
	log, states := smallLog(t, true, false)
	names := sortedNames(log)
	places := recordsIn(t, log.with("", nil))
	for i, name := range names {
		sealed := int64(0)
		for _, p := range places {
			if p.file == name {
				sealed = p.offset + 16 + p.bytes
			}
		}
		for length := 0; length < len(log[name]); length += stride() {
			_, got, err := wal.Open(options(log.with(name, log[name][:length]), 4<<10))
			switch {
			case refused(err):
			case err != nil:
				t.Fatalf("%s cut to %d: %v", name, length, err)
			case i < len(names)-1 && int64(length) < sealed:
				t.Fatalf("%s cut to %d of %d is not refused", name, length, sealed)
			case match(states, 1, &got) < 0:
				t.Fatalf("%s cut to %d gives a state that never was", name, length)
			}
		}
	}
}

// Ensure that an append of which only the first bytes, or only the last ones, reached the disk is cut and reported, and that
// the log continues from there. The missing bytes are zeros or bytes of the file's former life.
func TestOpen_tornAtEveryByte(t *testing.T) {
	t.Run("plain", func(t *testing.T) { tearEverywhere(t, false) })
	t.Run("sealed", func(t *testing.T) { tearEverywhere(t, true) })
}

func tearEverywhere(t *testing.T, sealed bool) {
	log, states := smallSealedLog(t, false, true, sealed)
	places := recordsSealed(t, log.with("", nil), sealed)
	final := places[len(places)-1]
	whole := log[final.file]
	record := whole[final.offset : final.offset+16+final.bytes]
	for cut := range record {
		if sealed && cut%5 > 0 {
			continue
		}
		for _, firstHalf := range []bool{true, false} {
			for _, former := range []byte{0, 0xa7} {
				torn := slices.Clone(whole)
				lost := torn[final.offset:][:cut]
				if firstHalf {
					lost = torn[final.offset:][cut:len(record)]
				}
				for i := range lost {
					lost[i] = former
				}
				w, got, err := wal.Open(sealedOptions(log.with(final.file, torn), 4<<10, sealed))
				if err != nil {
					t.Fatalf("cut %d, first %v: %v", cut, firstHalf, err)
				}
				k := match(states, len(states)-2, &got)
				if intact := bytes.Equal(torn, whole); k < 0 || (intact && k != len(states)-1) {
					t.Fatalf("cut %d, first %v: state %d", cut, firstHalf, k)
				}
				if err := w.Append(wal.Batch{Hard: &consensus.HardState{Term: 77}}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// Ensure that a sealed segment is refused when its last record is damaged, even if the next segment would fit: here the record
// replaced an entry by one of a later term, and without it the old one would be back.
func TestOpen_flipInLastRecordOfSealedSegment(t *testing.T) {
	fs := filestest.NewMem()
	w := must(wal.Create(options(fs, 4<<10), identity))
	first, second, third := entries(1, 1, 1800), entries(1, 1, 1500), entries(2, 1, 1800)
	second[0].Term, third[0].Term = 2, 2
	for _, b := range []wal.Batch{{Entries: first}, {Entries: second}, {Entries: third}} {
		if err := w.Append(b); err != nil {
			t.Fatal(err)
		}
	}
	log, last := read(fs), recordsIn(t, fs)[2]
	if last.file != sortedNames(log)[0] || len(log) != 2 {
		t.Fatalf("%d segments, the second record is in %s", len(log), last.file)
	}
	damaged := slices.Clone(log[last.file])
	damaged[last.offset+100] ^= 4
	if _, _, err := wal.Open(options(log.with(last.file, damaged), 4<<10)); !errors.Is(err, wal.ErrCorrupt) {
		t.Errorf("got %v", err)
	}
}

// Ensure that bytes behind a cut never come back, although a new append ends exactly where they begin. Only without syncs can
// whole records follow a hole.
func TestOpen_clearsWhatFollowsTheCut(t *testing.T) {
	o := wal.Options{Dir: dir, NoSync: true, FS: filestest.NewMem(), PackFrom: wal.AsTheyAre}
	w := must(wal.Create(o, identity))
	for index := consensus.Index(1); index <= 3; index++ {
		if err := w.Append(wal.Batch{Entries: entries(index, 1, 600)}); err != nil {
			t.Fatal(err)
		}
	}
	log, hole := read(o.FS), recordsIn(t, o.FS)[2]
	torn := log[hole.file]
	clear(torn[hole.offset : hole.offset+16+hole.bytes])
	o.FS = log.with(hole.file, torn)
	w, got, err := wal.Open(o)
	if err != nil || len(got.Entries) != 1 || got.CutBytes == 0 {
		t.Fatalf("%v: %d entries, cut %d", err, len(got.Entries), got.CutBytes)
	}
	const markSpan = 24 // Open wrote one where the hole began
	if err := w.Append(wal.Batch{Entries: entries(2, 1, 600-markSpan)}); err != nil {
		t.Fatal(err)
	}
	places := recordsIn(t, o.FS)
	if end := places[len(places)-1]; end.offset+16+end.bytes != hole.offset+16+hole.bytes {
		t.Fatalf("the append ends at %d, the hole at %d", end.offset+16+end.bytes, hole.offset+16+hole.bytes)
	}
	if _, got, err = wal.Open(o); err != nil || len(got.Entries) != 2 {
		t.Errorf("%v: %d entries, want the two that were written", err, len(got.Entries))
	}
}

// Ensure that a lost segment is noticed, wherever it was, and that the error says so.
func TestOpen_missingSegment(t *testing.T) {
	log, _ := smallLog(t, true, false)
	names := sortedNames(log)
	for i, name := range names {
		fs := log.with("", nil)
		if err := fs.Remove(fs.PathJoin(dir, name)); err != nil {
			t.Fatal(err)
		}
		_, _, err := wal.Open(options(fs, 4<<10))
		if i < len(names)-1 && !errors.Is(err, wal.ErrCorrupt) {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

// Ensure that a refusal names the file, the offset and the remedy.
func TestOpen_corruptErrorSaysWhereAndWhat(t *testing.T) {
	log, _ := smallLog(t, true, false)
	place := recordsIn(t, log.with("", nil))[4]
	damaged := slices.Clone(log[place.file])
	damaged[place.offset+20] ^= 1
	_, _, err := wal.Open(options(log.with(place.file, damaged), 4<<10))
	var corrupt *wal.CorruptError
	if !errors.As(err, &corrupt) || corrupt.Offset != place.offset || !strings.HasSuffix(corrupt.File, place.file) {
		t.Fatalf("got %v, want damage in %s at %d", err, place.file, place.offset)
	}
	for _, want := range []string{place.file, fmt.Sprint(place.offset), "nothing was changed", "replace the member"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in %q", want, err)
		}
	}
	var out bytes.Buffer
	if err := wal.Dump(&out, log.with(place.file, damaged), dir, keysIf(false)); !errors.Is(err, wal.ErrCorrupt) {
		t.Errorf("dump: %v", err)
	}
	if want := fmt.Sprintf("%10d damaged", place.offset); !strings.Contains(out.String(), want) {
		t.Errorf("%q is missing in the dump:\n%s", want, &out)
	}
}
