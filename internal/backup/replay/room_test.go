package replay_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/replay"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/objects"
)

// gets counts the objects of a kind that are read.
type gets struct {
	objects.Store
	prefix string
	count  int
}

func (g *gets) Get(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	if strings.HasPrefix(name, g.prefix) {
		g.count++
	}
	return g.Store.Get(ctx, name, offset, length)
}

// Ensure that manifests and segments for which there is too little memory end a restore, by their name and before the place is
// asked for them, and that this is no damage.
func TestRun_tooLarge(t *testing.T) {
	m := newMember(t, 1, openMem)
	m.write(20)
	m.settle()
	m.apply(kv.Command{Put: &kv.PutOp{Key: []byte("k"), Value: make([]byte, 64<<10)}}) // after the first base
	m.settle()
	c := m.catalog()
	c.Bases = c.Bases[:1]
	large := *c
	large.Bases = []backup.Base{c.Bases[0]}
	large.Bases[0].Size = 8 << 20
	for what, row := range map[string]struct {
		catalog *backup.Catalog
		most    int64
		say     string // no such object was read; empty: all were
	}{
		"a manifest": {&large, 16 << 20, "object base/"},
		"a segment":  {c, 32 << 10, "object log/"},
		"nothing":    {c, 16 << 20, ""},
	} {
		place := &gets{Store: m.place, prefix: "base/"}
		state, err := replay.Run(t.Context(), replay.Options{Store: place, FS: files.Disk, Dir: t.TempDir() + "/scratch",
			OpenEngine: openMem, ObjectBytes: row.most}, row.catalog, backup.Target{})
		refused := (*backup.TooLargeError)(nil)
		switch {
		case row.say == "":
			if err != nil || state.At.Index != m.index {
				t.Errorf("%s is too large: %v", what, err)
			} else if err := state.Close(); err != nil {
				t.Error(err)
			}
		case !errors.As(err, &refused) || errors.Is(err, backup.ErrDamaged) || !strings.Contains(err.Error(), row.say):
			t.Errorf("%s is too large: %v", what, err)
		}
		if (row.catalog == &large) != (place.count == 0) {
			t.Errorf("%s is too large: %d manifests were read", what, place.count)
		}
	}
}
