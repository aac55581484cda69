package replay_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/replay"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/storage/files"
)

// sole restores a target, as a reader that knows nothing but the place or as a member.
func (m *member) sole(target backup.Target, sole bool) (*replay.State, error) {
	return replay.Run(m.t.Context(), replay.Options{Store: m.place, FS: files.Disk, Dir: m.t.TempDir() + "/scratch",
		OpenEngine: m.open, Open: m.reads, OneHistory: sole}, m.catalog(), target)
}

// alone wants the state after an entry for a target, and so many objects that are named.
func (m *member) alone(what string, target backup.Target, want consensus.Index, sole bool, named int) {
	m.t.Helper()
	s, err := m.sole(target, sole)
	if err != nil {
		m.t.Errorf("%s, %v, one history %v: %v", what, target, sole, err)
		return
	}
	if got := contents(m.t, s.Machine); s.At.Index != want || got != m.was[want] || len(s.Damaged) != named {
		m.t.Errorf("%s, %v, one history %v: got entry %d, told %v", what, target, sole, s.At.Index, s.Damaged)
	}
	if err := s.Close(); err != nil {
		m.t.Error(err)
	}
}

// Ensure that a base of a later level, of a later version, or that is encrypted to somebody refuses no restore from another one.
func TestRun_laterBases(t *testing.T) {
	for what, change := range map[string]func(*backup.Manifest) (backup.BaseName, []byte){
		"of a later level": func(made *backup.Manifest) (backup.BaseName, []byte) {
			made.Level = 99
			return made.Encode()
		},
		"of a later version": func(made *backup.Manifest) (backup.BaseName, []byte) {
			name, content := made.Encode()
			content = bytes.Replace(content, []byte(`"version": 1`), []byte(`"version": 99`), 1)
			name.Hash = backup.HashOf(content)
			return name, content
		},
		"of others": func(made *backup.Manifest) (backup.BaseName, []byte) {
			return made.Seal(&backup.Lock{Secret: backup.Secret{1}, Seal: func(content []byte) []byte { return content }})
		},
	} {
		m := newMember(t, 9, openMem)
		m.write(60)
		m.settle()
		bases := m.catalog().Bases
		last := bases[len(bases)-1]
		content, _ := m.place.Bytes(last.String())
		made, err := backup.OpenManifest(&last.BaseName, content, nil)
		if err != nil {
			t.Fatal(err)
		}
		made.Time++
		name, content := change(made)
		m.replace(name.String(), content)
		told := 1
		if name.Set != 0 {
			told = 0
		}
		for _, sole := range []bool{false, true} {
			m.alone(what, backup.Target{}, m.index, sole, told)
		}
		for _, b := range bases {
			m.place.Remove(b.String())
		}
		if _, err := m.sole(backup.Target{}, true); err == nil || !strings.Contains(err.Error(), name.String()) {
			t.Errorf("%s, and no other: %v", what, err)
		}
	}
}
