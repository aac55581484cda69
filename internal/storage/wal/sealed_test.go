package wal_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/storage/atrest"
	"github.com/quorate/quorate/internal/storage/atrest/atresttest"
	"github.com/quorate/quorate/internal/storage/files/filestest"
	"github.com/quorate/quorate/internal/storage/wal"
)

// tap is a file system that keeps all that is ever written into files in place.
type tap struct {
	env.FS
	written [][]byte
}

func (d *tap) OpenReadWrite(name string) (env.File, error) {
	file, err := d.FS.OpenReadWrite(name)
	return &tapped{file, d}, err
}

// headBytes is the length of the head of a sealed segment.
const headBytes = 120

type tapped struct {
	env.File
	disk *tap
}

func (f *tapped) WriteAt(p []byte, offset int64) (int, error) {
	if offset == 0 { // the head of a segment is no secret
		p = bytes.Clone(p)
		f.disk.written = append(f.disk.written, p[min(headBytes, len(p)):])
		return f.File.WriteAt(p, offset)
	}
	f.disk.written = append(f.disk.written, bytes.Clone(p))
	return f.File.WriteAt(p, offset)
}

// recycle writes a log of entries of zeros whose segments are used several times, and opens it in between, which goes on in a
// segment that was begun before.
func recycle(t *testing.T, sealed bool) (disk *tap, recycled uint64) {
	t.Helper()
	disk = &tap{FS: memory()}
	o := sealedOptions(disk, 8<<10, sealed)
	w := must(wal.Create(o, identity))
	for index := consensus.Index(1); index < 200; index++ {
		e := entries(index, 1, 600)
		clear(e[0].Payload)
		if err := w.Append(wal.Batch{Entries: e}); err != nil {
			t.Fatal(err)
		}
		if index%20 == 0 {
			if err := w.Compact(metaAt(index - 2)); err != nil {
				t.Fatal(err)
			}
		}
		if index%7 == 0 {
			recycled += w.Stats().Recycled
			var err error
			if w, _, err = wal.Open(o); err != nil {
				t.Fatal(err)
			}
		}
	}
	return disk, recycled
}

// repeated counts blocks of AES that were written more than once. Entries of zeros show the key stream itself. The blocks of a
// record begin behind its head and its nonce. Open writes the last record again as it is; it is counted once.
func repeated(written [][]byte) (blocks, again int) {
	const head, block = 16 + 12, 16
	seen, whole := map[[block]byte]bool{}, map[string]bool{}
	for _, record := range written {
		if whole[string(record)] || len(record) < head {
			continue
		}
		whole[string(record)] = true
		for at := head; at+block <= len(record); at += block {
			b := [block]byte(record[at:])
			if blocks++; seen[b] {
				again++
			}
			seen[b] = true
		}
	}
	return blocks, again
}

// Ensure that no key stream is ever used twice, although files are written over and a log is continued. The plain log is the
// control: its zeros are seen.
func TestWAL_sealed_streamsAreNeverReused(t *testing.T) {
	for _, sealed := range []bool{true, false} {
		disk, recycled := recycle(t, sealed)
		blocks, again := repeated(withoutZeros(disk.written))
		if recycled < 4 || blocks < 5000 {
			t.Fatalf("%d segments were used again, %d blocks were written", recycled, blocks)
		}
		if sealed && again > 0 || !sealed && again < blocks/2 {
			t.Errorf("sealed %v: %d of %d blocks were written before", sealed, again, blocks)
		}
	}
}

// withoutZeros drops what is written ahead of the log.
func withoutZeros(written [][]byte) (rest [][]byte) {
	for _, p := range written {
		if bytes.Count(p, []byte{0}) < len(p) {
			rest = append(rest, p)
		}
	}
	return rest
}

// Ensure that no byte of any file of the log, of spares too, shows an entry or a record. The plain log is the control.
func TestWAL_sealed_showsNothing(t *testing.T) {
	for _, sealed := range []bool{true, false} {
		for _, packFrom := range []int{1, wal.AsTheyAre} {
			fs := filestest.NewMem()
			o := sealedOptions(fs, 8<<10, sealed)
			o.PackFrom = packFrom
			w, planted := must(wal.Create(o, identity)), []byte("PLANTED")
			for index := consensus.Index(1); index < 120; index++ {
				e := entries(index, 1, 0)
				e[0].Payload = append(newHistory(uint64(index), 800).bytes(), fmt.Appendf(nil, "%s-%d", planted, index)...)
				b := wal.Batch{Entries: e, Witness: []wal.WitnessRecord{{
					Attempt: wal.AttemptID{byte(index % 3)}, Payload: fmt.Appendf(nil, "%s as a record %d", planted, index)}}}
				if err := w.Append(b); err != nil {
					t.Fatal(err)
				}
				if index%40 == 0 {
					if err := w.Compact(metaAt(index - 2)); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := w.Compact(metaAt(118)); err != nil {
				t.Fatal(err)
			}
			if s := w.Stats(); s.Recycled == 0 || s.Spares == 0 {
				t.Fatalf("no segment is spare or was recycled: %+v", s)
			}
			seen := 0
			for _, content := range read(fs) {
				seen += bytes.Count(content, planted)
			}
			if sealed && seen > 0 || !sealed && seen == 0 {
				t.Errorf("sealed %v: planted texts were seen %d times", sealed, seen)
			}
		}
	}
}

// Ensure that a record which somebody changed, with the sums of one that was written so, is refused wherever it is, also at the
// end of the log, where a record with wrong sums would be cut.
func TestOpen_sealed_forgedRecord(t *testing.T) {
	log, _ := smallSealedLog(t, false, false, true)
	for _, p := range recordsSealed(t, log.with("", nil), true) {
		forged := bytes.Clone(log[p.file])
		wal.Forge(forged, p.offset)
		fs := log.with(p.file, forged)
		if _, _, err := wal.Open(sealedOptions(fs, 4<<10, true)); !errors.Is(err, wal.ErrCorrupt) {
			t.Errorf("%s at %d: %v", p.file, p.offset, err)
		}
		checkUntouched(t, fs, p.file, forged)
		var out bytes.Buffer
		if err := wal.Dump(&out, fs, dir, keys); !errors.Is(err, wal.ErrCorrupt) {
			t.Errorf("dump: %v\n%s", err, &out)
		}
	}
}

// Ensure that keys and log belong together: a log that is not sealed is refused where it should be, and one that is where there
// are no keys, or others. Nothing is changed.
func TestOpen_sealed_otherKeys(t *testing.T) {
	plain, _ := smallLog(t, true, false)
	sealed, _ := smallSealedLog(t, true, false, true)
	for _, row := range []struct {
		name string
		log  contents
		keys *atrest.Ring
		want error
	}{
		{"a plain log, and keys", plain, keys, atrest.ErrPlain},
		{"a sealed log without keys", sealed, nil, atrest.ErrEncrypted},
		{"a sealed log, and keys of another directory", sealed, atresttest.Ring(), atrest.ErrNoKey},
	} {
		fs := row.log.with("", nil)
		o := options(fs, 4<<10)
		o.Keys = row.keys
		_, _, openErr := wal.Open(o)
		_, _, inspectErr := wal.Inspect(o)
		for _, err := range []error{openErr, inspectErr} {
			if !errors.Is(err, row.want) || errors.Is(err, wal.ErrCorrupt) {
				t.Errorf("%s: %v", row.name, err)
			}
		}
		for name, content := range row.log {
			checkUntouched(t, fs, name, content)
		}
	}
}

// Ensure that a log which begins where another one has left spares does not write into them when it is sealed: they hold what
// was not.
func TestCreate_sealed_discardsSpares(t *testing.T) {
	fs := memory()
	if err := fs.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	spare := must(fs.Create(dir + "/0000000000000007.spare"))
	must(spare.Write(bytes.Repeat([]byte("PLANTED!"), 1<<10)))
	must(wal.Create(sealedOptions(fs, 8<<10, true), identity))
	for name, content := range read(fs) {
		if bytes.Contains(content, []byte("PLANTED")) {
			t.Errorf("%s holds what was in a spare", name)
		}
	}
}

// Ensure that a log goes on when its keys are rotated: old segments open with the old key, new ones have the new one.
func TestWAL_sealed_rotation(t *testing.T) {
	fs, ring := memory(), atresttest.Ring()
	o := options(fs, 8<<10)
	o.Keys = ring
	w, m, h := must(wal.Create(o, identity)), model{}, newHistory(1, 4000)
	var out bytes.Buffer
	dump := func() {
		if err := wal.Dump(&out, fs, dir, ring); err != nil {
			t.Error(err)
		}
	}
	for i := range 100 {
		if i%50 == 20 {
			dump()
			must(ring.Rotate(t.Context(), nil, ring.Active().Created))
		}
		b := h.batch(&m)
		m.append(&b)
		if err := w.Append(b); err != nil {
			t.Fatal(err)
		}
	}
	dump()
	o.FS = fs.CrashClone(filestest.CrashCloneCfg{})
	if _, got, err := wal.Open(o); err != nil || m.differs(&got) != "" {
		t.Errorf("%v: %s", err, m.differs(&got))
	}
	all, _, _ := ring.Keys()
	for _, key := range all {
		if !bytes.Contains(out.Bytes(), []byte(key.ID.String())) {
			t.Errorf("no segment has key %v", key.ID)
		}
	}
}
