package applytest

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files"
)

// Open returns a state machine of a new cluster with a configuration, on an engine in memory. It has goroutines that outlive
// the test: in a bubble of synctest it must not be opened.
func Open(t testing.TB, cluster consensus.ClusterID, config consensus.Config) *apply.Machine {
	t.Helper()
	store, err := engine.OpenMem(engine.MemOptions{FS: files.Disk, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if err := apply.Bootstrap(store, cluster, config); err != nil {
		t.Fatal(err)
	}
	m, err := apply.Open(store, apply.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}
