// Package filestest has file systems for tests: in memory, with a copy of what a power loss leaves, and with errors that a test
// injects. They are Pebble's, which only packages that know Pebble import. Only tests import this package.
package filestest

import (
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/storage/files"
)

// MemFS is a file system in memory.
type MemFS struct {
	env.FS
	mem *vfs.MemFS
}

func memFS(mem *vfs.MemFS) *MemFS { return &MemFS{files.FromPebble(mem), mem} }

// NewMem returns an empty file system. All that is written to it is durable.
func NewMem() *MemFS { return memFS(vfs.NewMem()) }

// NewCrashableMem returns an empty file system that knows what was synced.
func NewCrashableMem() *MemFS { return memFS(vfs.NewCrashableMem()) }

// CrashCloneCfg says how much of what was not synced survives a power loss: UnsyncedDataPercent, drawn by RNG.
type CrashCloneCfg = vfs.CrashCloneCfg

// CrashClone returns what a power loss now would leave. The file system goes on. NewCrashableMem must have made it.
func (m *MemFS) CrashClone(c CrashCloneCfg) *MemFS { return memFS(m.mem.CrashClone(c)) }

// SetDiskUsage sets what DiskUsage tells. Before, it cannot tell.
func (m *MemFS) SetDiskUsage(usage env.DiskUsage) { m.mem.TestingSetDiskUsage(vfs.DiskUsage(usage)) }

// Op is an operation on a file system: its kind, the path, or the old one of two, and the offset of a ReadAt or WriteAt.
type Op = errorfs.Op

// Kinds of operations.
const (
	OpCreate          = errorfs.OpCreate
	OpOpenDir         = errorfs.OpOpenDir
	OpRemoveAll       = errorfs.OpRemoveAll
	OpRename          = errorfs.OpRename
	OpMkdirAll        = errorfs.OpMkdirAll
	OpFilePreallocate = errorfs.OpFilePreallocate
	OpFileWrite       = errorfs.OpFileWrite
	OpFileWriteAt     = errorfs.OpFileWriteAt
	OpFileSync        = errorfs.OpFileSync
	OpFileSyncData    = errorfs.OpFileSyncData

	// These are the answers of Op.Kind.ReadOrWrite.
	OpIsRead  = errorfs.OpIsRead
	OpIsWrite = errorfs.OpIsWrite
)

// InjectorFunc is asked before each operation. If it returns an error the operation fails with it, and changes nothing.
type InjectorFunc = errorfs.InjectorFunc

// Wrap returns the file system with an injector of errors.
func Wrap(fs env.FS, injector InjectorFunc) env.FS {
	return files.FromPebble(errorfs.Wrap(files.ToPebble(fs), injector))
}
