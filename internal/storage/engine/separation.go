package engine

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/quorate/quorate/internal/env"
)

// Values of separatedBytes and more lie in files of their own, so that LSM compactions move a reference and not the value
// (WiscKey, FAST 2016). Such a file is rewritten once it is separatedAge old, if more than separatedGarbage of all separated
// values are garbage, and when a table would refer to more than separatedDepth of them. ADR 0034 has figures.
const (
	separatedBytes   = 1 << 10
	separatedAge     = time.Minute
	separatedGarbage = 0.5
	separatedDepth   = 10
)

// separator says which values lie apart.
type separator struct {
	on        atomic.Bool
	rewriting atomic.Int32 // calls of Defragment and Reclaim under way
}

// isValueFile tells whether a file of a store holds separated values.
func isValueFile(name string) bool { return strings.HasSuffix(name, ".blob") }

// goOn separates from the start in a store that has separated values: LSM compactions may begin before a caller says so.
func (s *separator) goOn(fs env.FS, dir string) error {
	names, err := fs.List(dir)
	if slices.ContainsFunc(names, isValueFile) {
		s.on.Store(true)
	}
	return err
}

// policy is that of one compaction. While the store is rewritten no table keeps its references, so values that
// live are copied and the files that they were in go.
func (s *separator) policy() pebble.ValueSeparationPolicy {
	policy := pebble.ValueSeparationPolicy{
		Enabled:               s.on.Load(),
		MinimumSize:           separatedBytes,
		MaxBlobReferenceDepth: separatedDepth,
		RewriteMinimumAge:     separatedAge,
		TargetGarbageRatio:    separatedGarbage,
	}
	if s.rewriting.Load() > 0 {
		policy.MaxBlobReferenceDepth = 0
	}
	return policy
}
