package prove_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/backuptest"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/backup/prove"
	"github.com/quorate/quorate/internal/backup/replay"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/objects/objectstest"
)

// shipped is a place with the backup of a small cluster: three bases or more, and a segment for each entry.
type shipped struct {
	t     *testing.T
	place *objectstest.Place
	heads []backup.Head
}

func ships(t *testing.T) *shipped {
	t.Helper()
	s := &shipped{t: t, place: objectstest.NewPlace(1, func() time.Time { return time.UnixMilli(backuptest.Begun) })}
	var commands []kv.Command
	for i := range 60 {
		key := []byte(fmt.Sprint("k", i%7))
		switch i % 10 {
		case 3:
			commands = append(commands, kv.Command{LeaseGrant: &kv.LeaseGrantOp{ID: kv.LeaseID(1 + i), TTLSeconds: 600}})
		case 5:
			commands = append(commands, kv.Command{Delete: &kv.DeleteOp{Key: key}})
		case 7:
			commands = append(commands, kv.Command{Compact: &kv.CompactOp{Revision: kv.Revision(i / 2)}})
		case 9:
			commands = append(commands, kv.Command{Auth: &auth.Change{Kind: auth.UserAdd, User: string(key), Hash: []byte("h")}})
		default:
			commands = append(commands, kv.Command{Put: &kv.PutOp{Key: key, Value: bytes.Repeat([]byte{byte(i)}, 40)}})
		}
	}
	// A key that nothing touches after the first base.
	commands[0] = kv.Command{Put: &kv.PutOp{Key: []byte("untouched"), Value: []byte(strings.Repeat("u", 40))}}
	s.heads = backuptest.Ship(t, s.place, commands)
	if n := len(s.catalog().Bases); n < 3 {
		t.Fatalf("%d bases", n)
	}
	return s
}

func (s *shipped) catalog() *backup.Catalog {
	s.t.Helper()
	c, err := fetch.Catalog(s.t.Context(), s.place, backuptest.Cluster)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

func open(dir string) (engine.Engine, error) {
	return engine.Open(engine.Options{FS: files.Disk, Dir: dir})
}

func (s *shipped) options() prove.Options {
	return prove.Options{Store: s.place, FS: files.Disk, Dir: s.t.TempDir() + "/scratch", OpenEngine: open}
}

func (s *shipped) prove(o prove.Options) (*prove.Proof, error) {
	s.t.Helper()
	p, err := prove.Run(s.t.Context(), o, s.catalog())
	if names, listing := files.Disk.List(o.Dir); listing == nil {
		s.t.Errorf("the scratch stays: %v", names)
	}
	return p, err
}

// A backup that is whole is proven, and each base after the one that was proven before is compared with the log.
func TestRun_whole(t *testing.T) {
	s := ships(t)
	c := s.catalog()
	o := s.options()
	p, err := s.prove(o)
	if err != nil || p.At != s.heads[len(s.heads)-1] || p.Bases != 1 || len(p.Damaged) > 0 || p.Entries == 0 {
		t.Fatalf("got %+v, %v", p, err)
	}
	if last := c.Bases[len(c.Bases)-1]; p.Base != last {
		t.Errorf("got base %+v, want %+v", p.Base, last)
	}
	o.After = c.Bases[0].Hash
	if p, err = s.prove(o); err != nil || p.Bases != len(c.Bases)-1 || p.At != s.heads[len(s.heads)-1] {
		t.Errorf("all bases: got %+v, %v", p, err)
	}
	o.After = p.Base.Hash
	if p, err = s.prove(o); err != nil || p.Bases != 0 || p.At != s.heads[len(s.heads)-1] || p.Base.Hash != o.After {
		t.Errorf("no new base: got %+v, %v", p, err)
	}
}

// Each object that a proof needs is taken away, and each is changed: the proof names it, and the newest state is proven by others
// where they are.
func TestRun_eachObject(t *testing.T) {
	s := ships(t)
	c := s.catalog()
	after := c.Bases[0].Hash
	named, refused := 0, 0
	for i, name := range s.place.Names() {
		for _, cut := range []bool{true, false} {
			content, _ := s.place.Bytes(name)
			if strings.HasPrefix(name, backup.LogPrefix) && i%8 != 0 || len(content) == 0 {
				continue // of very many
			}
			s.place.Remove(name)
			if !cut {
				spoiled := bytes.Clone(content)
				spoiled[len(spoiled)/2] ^= 1
				s.put(name, spoiled)
			}
			o := s.options()
			o.After = after
			p, err := s.prove(o)
			switch {
			case err == nil && p.At != s.heads[len(s.heads)-1] && !(cut && strings.HasPrefix(name, backup.LogPrefix)):
				t.Errorf("%s: proved %+v", name, p.At)
			case err == nil && len(p.Damaged) > 0 && strings.Contains(errors.Join(p.Damaged...).Error(), name):
				named++
			case err != nil && prove.Verdict(err) && strings.Contains(err.Error(), name):
				refused++
			case err != nil && !prove.Verdict(err):
				t.Errorf("%s: no verdict: %v", name, err)
			}
			s.place.Remove(name)
			s.put(name, content)
		}
	}
	if named < 4 || refused < 1 {
		t.Errorf("%d damaged objects were named where others replaced them, %d where none did", named, refused)
	}
}

func (s *shipped) put(name string, content []byte) {
	s.t.Helper()
	if err := s.place.Put(s.t.Context(), name, bytes.NewReader(content), int64(len(content))); err != nil {
		s.t.Fatal(err)
	}
}

// A base with other values, whose objects are all as they were put, is found though no later entry touches them.
func TestRun_differs(t *testing.T) {
	s := ships(t)
	c := s.catalog()
	last := c.Bases[len(c.Bases)-1]
	name := backuptest.Spoil(t, s.place, c, &last, open)
	if restored, err := replay.Run(t.Context(), replay.Options{Store: s.place, FS: files.Disk, Dir: t.TempDir() + "/scratch",
		OpenEngine: open}, s.catalog(), backup.Target{}); err != nil {
		t.Fatalf("a restore alone finds nothing: %v", err)
	} else if err := restored.Close(); err != nil {
		t.Error(err)
	}
	p, err := s.prove(s.options())
	if !errors.Is(err, prove.ErrContents) || !prove.Verdict(err) || !strings.Contains(err.Error(), name) {
		t.Errorf("got %+v, %v", p, err)
	}
}

// A base behind a gap is where a proof begins: it is compared with nothing.
func TestRun_gap(t *testing.T) {
	s := ships(t)
	c := s.catalog()
	last := c.Bases[len(c.Bases)-1]
	for _, segment := range c.Segments {
		if segment.End.Index == last.Index-2 {
			s.place.Remove(segment.String())
		}
	}
	p, err := s.prove(s.options())
	if err != nil || p.Bases != 0 || p.Base != last || p.At != s.heads[len(s.heads)-1] || len(p.Damaged) != 1 {
		t.Fatalf("got %+v, %v", p, err)
	}
	if lost := (*prove.LostError)(nil); !errors.As(p.Damaged[0], &lost) || lost.First != last.Index-2 || *lost.Base != last {
		t.Errorf("no note tells of the gap: got %+v", p.Damaged)
	}
	s.notes(last.Index-3, last.Index-1)
	if p, err := s.prove(s.options()); err != nil || len(p.Damaged) > 0 || p.Holes != 1 {
		t.Errorf("a note tells of it: got %+v, %v", p, err)
	}
}

// notes puts a note of a gap.
func (s *shipped) notes(after, until consensus.Index) {
	s.t.Helper()
	g := backup.Gap{Cluster: backup.Hex(backuptest.Cluster), After: after, Until: until, Time: backuptest.Begun}
	name, content := g.Encode()
	s.put(name.String(), content)
}

// Rest and Room end a proof, which is no verdict.
func TestRun_ends(t *testing.T) {
	s := ships(t)
	full := errors.New("full")
	o := s.options()
	needs := int64(0)
	o.Room = func(bytes int64) error { needs = bytes; return full }
	if p, err := s.prove(o); !errors.Is(err, full) || prove.Verdict(err) || needs == 0 {
		t.Errorf("got %+v, %v, for %d bytes", p, err, needs)
	}
	o = s.options()
	rests := 0
	o.Rest = func() error { rests++; return nil }
	if _, err := s.prove(o); err != nil || rests < 3 {
		t.Errorf("got %v, after %d rests", err, rests)
	}
}

// The next proof begins at no base that lies behind damage, so that it names the damage again: behind a note of a gap it does.
func TestRun_damageIsNamedAgain(t *testing.T) {
	s := ships(t)
	c := s.catalog()
	n := len(c.Bases)
	after, last := c.Bases[n-3], c.Bases[n-1]
	var damaged backup.Stored // between the first two of three bases
	for _, segment := range c.Segments {
		if segment.End.Index == c.Bases[n-2].Index-2 {
			damaged = segment
		}
	}
	name := damaged.String()
	content, _ := s.place.Bytes(name)
	o := s.options()
	o.After = after.Hash
	s.place.Flip(name, len(content)/2)
	for try := range 2 {
		p, err := s.prove(o)
		if err != nil || p.Base != after || p.Bases != 1 || len(p.Damaged) != 1 || !strings.Contains(p.Damaged[0].Error(), name) {
			t.Fatalf("try %d: got %+v, %v", try, p, err)
		}
		o.After = p.Base.Hash
	}
	s.place.Remove(name)
	if p, err := s.prove(o); err != nil || p.Base != after || len(p.Damaged) != 1 {
		t.Errorf("an object is gone: got %+v, %v", p, err)
	}
	s.notes(damaged.First-1, damaged.End.Index+1)
	if p, err := s.prove(o); err != nil || p.Base != last {
		t.Errorf("a gap: got %+v, %v", p, err)
	}
}
