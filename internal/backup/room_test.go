package backup_test

import (
	"bytes"
	"errors"
	"math/rand"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/consensus"
)

// allocated returns how many bytes f allocates.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// room is the memory of the tests below.
const room = 4 << 20

// Ensure that lists of many elements that take few bytes each are refused before anything is made of them, also where there is
// no bound but that of the form, and that an error repeats little of an object.
func TestOpenManifestWithin_hostile(t *testing.T) {
	for what, text := range map[string]string{
		"empty files":    `{"files":[` + strings.Repeat("{},", 300_000) + `{}]}`,
		"nothing":        `{"files":[` + strings.Repeat("null,", 300_000) + `null]}`,
		"numbers":        `{"objects":[` + strings.Repeat("0,", 300_000) + `0]}`,
		"many lists":     `{"files":[` + strings.Repeat("[],", 300_000) + `[]]}`,
		"brackets":       strings.Repeat("[", 300_000),
		"in a text":      `{"build":"\"","files":[` + strings.Repeat("{},", 300_000) + `{}]}`,
		"unknown fields": `{"later":[` + strings.Repeat("{},", 300_000) + `{}]}`,
	} {
		for _, set := range []backup.Set{0, 7} {
			for _, most := range []int64{0, room} {
				content := []byte(text)
				name := backup.BaseName{Hash: backup.HashOf(content), Set: set}
				var err error
				took := allocated(func() { _, err = backup.ObjectsWithin(&name, content, most) })
				large := (*backup.TooLargeError)(nil)
				if !errors.Is(err, backup.ErrDamaged) && !errors.As(err, &large) || took > 256<<10 {
					t.Errorf("%s, set %d, within %d: %v, by %d bytes", what, set, most, err, took)
				}
			}
		}
	}
	for what, text := range map[string]string{
		"a number": `{"version":` + strings.Repeat("1", 1<<20) + `}`,
		"an id":    `{"cluster":"` + strings.Repeat("\x01", 1<<20) + `"}`,
		"hash":     `{"version":1,"files":[{"sha256":"` + strings.Repeat("ü", 1<<19) + `"}]}`,
	} {
		content := []byte(text)
		_, err := backup.ObjectsOf(&backup.BaseName{Hash: backup.HashOf(content)}, content)
		if !errors.Is(err, backup.ErrDamaged) || len(err.Error()) > 1<<10 {
			t.Errorf("%s: an error of %d bytes", what, len(err.Error()))
		}
	}
}

// Ensure that a manifest is read within the memory that it takes, and is no damage in less.
func TestOpenManifestWithin(t *testing.T) {
	name, content := manifest(rand.New(rand.NewSource(3)), backup.Head{Point: backup.Point{Index: 5}}).Encode()
	for _, most := range []int64{0, 16 << 10, 64} {
		m, err := backup.OpenManifestWithin(&name, content, nil, most)
		large := (*backup.TooLargeError)(nil)
		if most == 64 && (!errors.As(err, &large) || errors.Is(err, backup.ErrDamaged)) || most != 64 && (err != nil || m == nil) {
			t.Errorf("within %d: %v", most, err)
		}
	}
}

// Ensure that a segment that says it holds much, or has many entries, is refused by its head, however small it is at the place.
func TestOpenSegmentWithin_hostile(t *testing.T) {
	rng := rand.New(rand.NewSource(4))
	large := segment(rng, backup.Head{}, 2)
	large.Items[1].Entry.Payload = make([]byte, 32<<20)
	many := segment(rng, backup.Head{}, 1)
	for i := range 1 << 17 {
		item := many.Items[0]
		item.Entry.Index, item.Entry.Payload, item.Sum = item.Entry.Index+1+consensus.Index(i), nil, 0
		many.Items = append(many.Items, item)
	}
	for what, s := range map[string]*backup.Segment{"a large entry": large, "many entries": many} {
		name, content := backup.NewPacker().Pack(s)
		if len(content) > room {
			t.Fatalf("%s: %d bytes at the place", what, len(content))
		}
		var err error
		took := allocated(func() { _, err = backup.OpenSegmentWithin(&name, content, nil, room) })
		refused := (*backup.TooLargeError)(nil)
		if !errors.As(err, &refused) || refused.Most != room || errors.Is(err, backup.ErrDamaged) || took > 64<<10 {
			t.Errorf("%s: %v, by %d bytes", what, err, took)
		}
		for _, most := range []int64{0, 64 << 20} {
			if _, err := backup.OpenSegmentWithin(&name, content, nil, most); err != nil {
				t.Errorf("%s within %d: %v", what, most, err)
			}
		}
	}
}

// Ensure that a segment whose frame holds more than its head says is refused before the frame is unpacked, also if the frame does
// not say how much it holds.
func TestOpenSegmentWithin_frame(t *testing.T) {
	_, content := backup.NewPacker().Pack(segment(rand.New(rand.NewSource(5)), backup.Head{}, 2))
	head := content[:bytes.Index(content, []byte{0x28, 0xb5, 0x2f, 0xfd})]
	var streamed bytes.Buffer
	encoder, err := zstd.NewWriter(&streamed)
	if err != nil {
		t.Fatal(err)
	}
	zeros := make([]byte, 7<<20)
	if _, err := encoder.Write(zeros); err != nil {
		t.Fatal(err)
	}
	if err := encoder.Close(); err != nil {
		t.Fatal(err)
	}
	for what, frame := range map[string][]byte{"named": encoder.EncodeAll(zeros, nil), "not named": streamed.Bytes()} {
		content := append(slices.Clone(head), frame...)
		name := backup.SegmentName{Hash: backup.HashOf(content)}
		took := allocated(func() { _, err = backup.OpenSegmentWithin(&name, content, nil, room) })
		if !errors.Is(err, backup.ErrDamaged) || took > 64<<10 || len(content) > 4096 {
			t.Errorf("%s: %d bytes: %v, by %d bytes", what, len(content), err, took)
		}
	}
}
