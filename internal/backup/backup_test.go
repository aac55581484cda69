package backup_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/rand"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/storage/objects"
)

// A segment comes back as it was, its name as well; any change of its bytes, of its name, and any cut is refused.
func TestSegment(t *testing.T) {
	rng := rand.New(rand.NewSource(5))
	packer := backup.NewPacker()
	for range 50 {
		s := segment(rng, backup.Head{Point: backup.Point{Index: consensus.Index(rng.Int63() >> 2), Sum: rng.Uint64()},
			Moment: backup.Moment{Revision: 5, Time: 1_790_000_000_000}}, 1+rng.Intn(40))
		name, content := packer.Pack(s)
		if err := objects.CheckName(name.String()); err != nil {
			t.Fatal(err)
		}
		parsed, err := backup.ParseSegment(name.String())
		if err != nil || parsed != name {
			t.Fatalf("got %+v, %v; want %+v", parsed, err, name)
		}
		got, err := backup.Unpack(&parsed, content)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(s, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
		flipped := bytes.Clone(content)
		flipped[rng.Intn(len(flipped))] ^= 1 << rng.Intn(8)
		if _, err := backup.Unpack(&name, flipped); !errors.Is(err, backup.ErrDamaged) {
			t.Errorf("a bit is another: %v", err)
		}
		if _, err := backup.Unpack(&name, content[:rng.Intn(len(content))]); !errors.Is(err, backup.ErrDamaged) {
			t.Errorf("cut: %v", err)
		}
		lies(t, name, content)
	}
}

// lies lets names claim what a segment does not hold.
func lies(t *testing.T, name backup.SegmentName, content []byte) {
	t.Helper()
	for what, lie := range map[string]func(n *backup.SegmentName){
		"cluster": func(n *backup.SegmentName) { n.Cluster++ }, "epoch": func(n *backup.SegmentName) { n.Epoch++ },
		"first":  func(n *backup.SegmentName) { n.First++ },
		"before": func(n *backup.SegmentName) { n.Before++ }, "last": func(n *backup.SegmentName) { n.End.Index++ },
		"sum": func(n *backup.SegmentName) { n.End.Sum++ }, "revision": func(n *backup.SegmentName) { n.Revision++ },
		"time": func(n *backup.SegmentName) { n.Time++ },
	} {
		lied := name
		lie(&lied)
		if _, err := backup.Unpack(&lied, content); !errors.Is(err, backup.ErrDamaged) {
			t.Errorf("a name with another %s: %v", what, err)
		}
	}
}

// A later form is told as one, not as damage.
func TestUnpack_later(t *testing.T) {
	name, content := backup.NewPacker().Pack(segment(rand.New(rand.NewSource(1)), backup.Head{}, 3))
	content[8]++
	name.Hash = backup.HashOf(content)
	if _, err := backup.Unpack(&name, content); !errors.Is(err, backup.ErrLater) {
		t.Errorf("got %v", err)
	}
	base, text := manifest(rand.New(rand.NewSource(1)), backup.Head{Point: backup.Point{Index: 5}}).Encode()
	text = bytes.Replace(text, []byte(`"version": 1`), []byte(`"version": 2`), 1)
	base.Hash = backup.HashOf(text)
	if _, err := backup.OpenManifest(&base, text, nil); !errors.Is(err, backup.ErrLater) {
		t.Errorf("got %v", err)
	}
}

func TestManifest(t *testing.T) {
	rng := rand.New(rand.NewSource(2))
	m := manifest(rng, backup.Head{Point: backup.Point{Index: 90, Sum: math.MaxUint64},
		Moment: backup.Moment{Revision: 70, Time: 1e12}})
	name, content := m.Encode()
	parsed, err := backup.ParseBase(name.String())
	if err != nil || parsed != name {
		t.Fatalf("got %+v, %v; want %+v", parsed, err, name)
	}
	got, err := backup.OpenManifest(&name, content, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, got); diff != "" {
		t.Fatal(diff)
	}
	for what, spoil := range map[string]func(m *backup.Manifest){
		"no file":         func(m *backup.Manifest) { m.Files = nil },
		"a way out":       func(m *backup.Manifest) { m.Files[0].Name = "../x" },
		"twice":           func(m *backup.Manifest) { m.Files = append(m.Files, m.Files[len(m.Files)-1]) },
		"a negative size": func(m *backup.Manifest) { m.Files[0].Size = -1 },
		"no level":        func(m *backup.Manifest) { m.Level = 0 },
	} {
		bad := *got
		bad.Files = append([]backup.File(nil), got.Files...)
		spoil(&bad)
		name, content := bad.Encode()
		if _, err := backup.OpenManifest(&name, content, nil); !errors.Is(err, backup.ErrDamaged) {
			t.Errorf("%s: %v", what, err)
		}
	}
	other := name
	other.Index++
	if _, err := backup.OpenManifest(&other, content, nil); !errors.Is(err, backup.ErrDamaged) {
		t.Errorf("a name of another state: %v", err)
	}
}

func TestGap(t *testing.T) {
	g := &backup.Gap{Cluster: 9, Member: 3, After: 70, Until: 95, Time: 1e12, Reason: "the place did not answer"}
	name, content := g.Encode()
	parsed, err := backup.ParseGap(name.String())
	if err != nil || parsed != name {
		t.Fatalf("got %+v, %v; want %+v", parsed, err, name)
	}
	got, err := backup.OpenGap(&name, content, nil)
	if diff := cmp.Diff(g, got); err != nil || diff != "" {
		t.Fatal(err, diff)
	}
	name.Until++
	if _, err := backup.OpenGap(&name, content, nil); !errors.Is(err, backup.ErrDamaged) {
		t.Errorf("got %v", err)
	}
}

// A name is written in one way only.
func TestParse_oneForm(t *testing.T) {
	name, _ := backup.NewPacker().Pack(segment(rand.New(rand.NewSource(1)), backup.Head{Point: backup.Point{Index: 0xabc}}, 3))
	text := name.String()
	for _, other := range []string{strings.ToUpper(text), text + "x", "x" + text, strings.Replace(text, "-", "-+", 1),
		strings.Replace(text, "-0", "--", 1), strings.Replace(text, "-", "_", 1), text[:len(text)-4] + ".ql", ""} {
		if _, err := backup.ParseSegment(other); !errors.Is(err, backup.ErrName) {
			t.Errorf("%q: %v", other, err)
		}
	}
}

func FuzzUnpack(f *testing.F) {
	name, content := backup.NewPacker().Pack(segment(rand.New(rand.NewSource(1)), backup.Head{}, 3))
	f.Add(name.String(), content)
	f.Fuzz(func(t *testing.T, text string, content []byte) {
		name, err := backup.ParseSegment(text)
		if err != nil {
			return
		}
		if name.String() != text {
			t.Fatalf("%q is read as %q", text, name.String())
		}
		name.Hash = backup.HashOf(content) // a fuzzer finds no hash
		s, err := backup.Unpack(&name, content)
		if err != nil {
			return
		}
		packed, again := backup.NewPacker().Pack(s)
		got, err := backup.Unpack(&packed, again)
		if diff := cmp.Diff(s, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Fatal(err, diff)
		}
	})
}

func FuzzDecodeManifest(f *testing.F) {
	_, content := manifest(rand.New(rand.NewSource(1)), backup.Head{Point: backup.Point{Index: 5}}).Encode()
	f.Add(content)
	f.Fuzz(func(t *testing.T, content []byte) {
		var read backup.Manifest
		_ = json.Unmarshal(content, &read) // whatever it is: its name agrees with it
		name, _ := read.Encode()
		name.Hash = backup.HashOf(content)
		m, err := backup.OpenManifest(&name, content, nil)
		if err != nil {
			return
		}
		for _, file := range m.Files {
			if strings.ContainsAny(file.Name, "/\\") || file.Name == ".." {
				t.Fatalf("file %q", file.Name)
			}
		}
		again, encoded := m.Encode()
		if _, err := backup.OpenManifest(&again, encoded, nil); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzDecodeGap(f *testing.F) {
	name, content := (&backup.Gap{Cluster: 9, After: 70, Until: 95, Time: 1}).Encode()
	f.Add(name.String(), content)
	f.Fuzz(func(t *testing.T, text string, content []byte) {
		name, err := backup.ParseGap(text)
		if err != nil {
			return
		}
		name.Hash = backup.HashOf(content)
		if g, err := backup.OpenGap(&name, content, nil); err == nil && g.Until < g.After {
			t.Fatalf("got %+v", g)
		}
	})
}
