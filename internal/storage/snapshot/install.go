package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	iofs "io/fs"
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/env"
	"github.com/quorate/quorate/internal/storage/durable"
)

// Names in the data directory.
const (
	// StoreDir holds the store.
	StoreDir = "store"
	// WorkDir holds snapshots that are built or received. Recover empties it.
	WorkDir = "snapshots"

	nextDir    = "store.next"      // the new store, until it is in place
	oldDir     = "store.old"       // the old one, until the new one is in place
	markerFile = "store.install"   // there from the moment when the installation will be finished, come what may
	recordFile = "store.installed" // what the marker becomes: the last installation
	tempSuffix = ".tmp"
)

// InstallAt puts the snapshot in dir, a directory in WorkDir, in place of the store. The store must be closed. mark
// is remembered for Installed. After an error that is not a crash, Recover has to run before the store is opened.
//
//	step                                             after a crash here, Recover
//	1 dir -> store.next, sync                        removes store.next: the old store stays
//	2 write store.install, sync                      finishes from here on
//	3 store -> store.old, sync
//	4 store.next -> store, sync
//	5 remove store.old
//	6 store.install -> store.installed, sync
func InstallAt(fs env.FS, dataDir, dir string, mark consensus.Mark) error {
	if err := stage(fs, dataDir, dir); err != nil {
		return fmt.Errorf("snapshot: install %s: %w", dir, err)
	}
	if err := writeMarker(fs, dataDir, mark); err != nil {
		return fmt.Errorf("snapshot: install %s: %w", dir, err)
	}
	return finish(fs, dataDir)
}

// stage is step 1.
func stage(fs env.FS, dataDir, dir string) error {
	if _, err := loadManifest(fs, dir); err != nil {
		return err
	}
	next := fs.PathJoin(dataDir, nextDir)
	if err := errors.Join(fs.RemoveAll(next), fs.RemoveAll(fs.PathJoin(dataDir, oldDir))); err != nil {
		return err
	}
	if err := fs.Rename(dir, next); err != nil {
		return err
	}
	// The manifest has done its work; the engine should meet none but its own files.
	if err := fs.Remove(fs.PathJoin(next, manifestName)); err != nil {
		return err
	}
	return errors.Join(durable.SyncDir(fs, next), durable.SyncDir(fs, dataDir), durable.SyncDir(fs, fs.PathDir(dir)))
}

// writeMarker is step 2: what follows cannot be undone any more.
func writeMarker(fs env.FS, dataDir string, mark consensus.Mark) error {
	marker := fs.PathJoin(dataDir, markerFile)
	if err := writeFile(fs, marker+tempSuffix, appendMark(nil, mark)); err != nil {
		return err
	}
	if err := fs.Rename(marker+tempSuffix, marker); err != nil {
		return err
	}
	return durable.SyncDir(fs, dataDir)
}

// finish is steps 3 to 6. It may begin after a crash in any of them, and find a renamed directory under both names:
// a rename that was not synced may have reached the disk by half.
func finish(fs env.FS, dataDir string) error {
	store, next, old := fs.PathJoin(dataDir, StoreDir), fs.PathJoin(dataDir, nextDir), fs.PathJoin(dataDir, oldDir)
	if err := moveIn(fs, dataDir, store, next, old); err != nil {
		return err
	}
	if err := fs.RemoveAll(old); err != nil {
		return fmt.Errorf("snapshot: remove the old store: %w", err)
	}
	// The old store must be gone for good before the marker is: a later installation must not meet it.
	err := durable.SyncDir(fs, dataDir)
	if err == nil {
		err = fs.Rename(fs.PathJoin(dataDir, markerFile), fs.PathJoin(dataDir, recordFile))
	}
	if err == nil {
		err = durable.SyncDir(fs, dataDir)
	}
	if err != nil {
		return fmt.Errorf("snapshot: end the installation: %w", err)
	}
	return nil
}

// moveIn is steps 3 and 4.
func moveIn(fs env.FS, dataDir, store, next, old string) error {
	haveStore, err1 := exists(fs, store)
	haveNext, err2 := exists(fs, next)
	haveOld, err3 := exists(fs, old)
	if err := errors.Join(err1, err2, err3); err != nil {
		// Not knowing is not the same as not there: a wrong guess would lose the new store.
		return fmt.Errorf("snapshot: look for the stores: %w", err)
	}
	if !haveNext {
		if !haveStore {
			return fmt.Errorf("%w: neither %s nor %s is there", ErrStoreMissing, store, next)
		}
		return nil
	}
	if haveStore {
		var err error
		if haveOld {
			// One of two names for the same store: the old one, which is kept, or the new one, which is moved here.
			err = fs.RemoveAll(store)
		} else {
			err = fs.Rename(store, old)
		}
		if err == nil {
			err = durable.SyncDir(fs, dataDir)
		}
		if err != nil {
			return fmt.Errorf("snapshot: set the old store aside: %w", err)
		}
	}
	err := fs.Rename(next, store)
	if err == nil {
		err = durable.SyncDir(fs, dataDir)
	}
	if err != nil {
		return fmt.Errorf("snapshot: move the new store into place: %w", err)
	}
	return nil
}

// Recover finishes or undoes an installation that a crash interrupted, and removes snapshots that were being built
// or received. It must run before the store is opened.
func Recover(fs env.FS, dataDir string) error {
	names, err := fs.List(dataDir)
	if errors.Is(err, iofs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("snapshot: recover: %w", err)
	}
	if slices.Contains(names, markerFile) {
		if _, err := readMark(fs, fs.PathJoin(dataDir, markerFile)); err != nil {
			return fmt.Errorf("an installation was interrupted and its marker is damaged: remove this member and add a new "+
				"one: %w", err)
		}
		if err := finish(fs, dataDir); err != nil {
			return err
		}
	}
	changed := false
	for _, name := range []string{nextDir, WorkDir, markerFile + tempSuffix} {
		if slices.Contains(names, name) {
			changed = true
			if err := fs.RemoveAll(fs.PathJoin(dataDir, name)); err != nil {
				return fmt.Errorf("snapshot: recover: %w", err)
			}
		}
	}
	if !changed {
		return nil
	}
	return durable.SyncDir(fs, dataDir)
}

// Installed reports whether the last installation put a store into place that stands at applied. Then, and only
// then, may a store be ahead of the log: the crash came before the log was told.
func Installed(fs env.FS, dataDir string, applied consensus.Mark) bool {
	mark, err := readMark(fs, fs.PathJoin(dataDir, recordFile))
	return err == nil && mark == applied
}

func exists(fs env.FS, path string) (bool, error) {
	_, err := fs.Stat(path)
	if errors.Is(err, iofs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// The marker holds magic, index, term and CRC32C of all before.
const (
	markMagic = "QRTINST\n"
	markBytes = len(markMagic) + 20
)

func appendMark(dst []byte, mark consensus.Mark) []byte {
	dst = append(dst, markMagic...)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(mark.Index))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(mark.Term))
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[len(dst)-markBytes+4:], castagnoli))
}

func readMark(fs env.FS, path string) (mark consensus.Mark, err error) {
	file, err := fs.Open(path)
	if err != nil {
		return mark, fmt.Errorf("snapshot: open %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	content, err := io.ReadAll(io.LimitReader(file, int64(markBytes)+1))
	if err != nil {
		return mark, fmt.Errorf("snapshot: read %s: %w", path, err)
	}
	if len(content) != markBytes || string(content[:len(markMagic)]) != markMagic ||
		crc32.Checksum(content[:markBytes-4], castagnoli) != binary.LittleEndian.Uint32(content[markBytes-4:]) {
		return mark, fmt.Errorf("%w: %s", ErrCorrupt, path)
	}
	mark.Index = consensus.Index(binary.LittleEndian.Uint64(content[8:]))
	mark.Term = consensus.Term(binary.LittleEndian.Uint64(content[16:]))
	return mark, nil
}

// Unfinished reports whether an installation was interrupted, and Recover would finish it.
func Unfinished(fs env.FS, dataDir string) (bool, error) {
	return exists(fs, fs.PathJoin(dataDir, markerFile))
}
