package wal_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/storage/files/filestest"
	"github.com/quorate/quorate/internal/storage/wal"
)

// meanwhile is a disk on which something else happens before a file is opened, or right after.
type meanwhile struct {
	env.FS
	opens  int
	at     int
	after  bool
	happen func()
}

func (m *meanwhile) Open(name string) (env.File, error) {
	m.opens++
	if m.opens == m.at && !m.after {
		m.happen()
	}
	file, err := m.FS.Open(name)
	if m.opens == m.at && m.after {
		m.happen()
	}
	return file, err
}

// Ensure that the log of a running member can be printed whenever that frees segments, and writes over them: one that is gone, or
// holds something else by now, is neither an error nor damage.
func TestDump_freedMeanwhile(t *testing.T) {
	for _, after := range []bool{false, true} {
		for at, opens := 1, 1; at <= opens; at++ {
			fs := filestest.NewMem()
			w := must(wal.Create(options(fs, 8<<10), identity))
			last := consensus.Index(0)
			grow := func(n int) {
				for range n {
					last++
					if err := w.Append(wal.Batch{Entries: entries(last, 1, 600)}); err != nil {
						t.Fatal(err)
					}
				}
			}
			grow(100)
			shown := last
			disk := &meanwhile{FS: fs, at: at, after: after, happen: func() {
				if err := w.Compact(metaAt(last - 1)); err != nil {
					t.Fatal(err)
				}
				grow(40) // over what was freed
				if w.Stats().Recycled == 0 {
					t.Fatal("nothing was written over")
				}
			}}
			var out strings.Builder
			err := wal.Dump(&out, disk, dir, keysIf(false))
			if opens = disk.opens; err != nil {
				t.Fatalf("open %d of %d, after it: %v: %v\n%s", at, opens, after, err, out.String())
			}
			if strings.Contains(out.String(), "damaged") {
				t.Fatalf("open %d of %d, after it: %v: a log that is whole is called damaged:\n%s", at, opens, after, out.String())
			}
			if at == 1 && !strings.Contains(out.String(), "freed") {
				t.Errorf("it is not said that segments are gone:\n%s", out.String())
			}
			if entry := fmt.Sprintf("entry    %d.1 ", shown); !strings.Contains(out.String(), entry) {
				t.Fatalf("open %d of %d, after it: %v: the listing lacks %q:\n%s", at, opens, after, entry, out.String())
			}
		}
	}
}
