package snapshot

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"strconv"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/storage/durable"
)

// Names in the data directory.
const (
	// StoresDir holds the generations of the store, each in a directory named by its number, and which one counts.
	StoresDir = "stores"
	// WorkDir holds snapshots that are built or received. Recover empties it.
	WorkDir = "snapshots"

	currentFile = "CURRENT"
)

// Current says which generation of the store counts. Its file is text with a checksum, replaced as a whole:
//
//	quorate store 1
//	generation 3
//	installed 4711 3
type Current struct {
	Generation uint64
	// Installed is the position of the snapshot that this generation came from, until the log has taken it over: only then
	// may the store be ahead of the log. Zero: the log holds, or begins after, all that the store has applied.
	Installed consensus.Position
}

const currentFormat = "quorate store 1\ngeneration %d\ninstalled %d %d\n"

// CurrentName and CurrentForm are in the first line of that file.
const (
	CurrentName = "store"
	CurrentForm = 1
)

func (c Current) text() string {
	return fmt.Sprintf(currentFormat, c.Generation, uint64(c.Installed.Index), uint64(c.Installed.Term))
}

// Load reads which generation counts.
func Load(fs env.FS, dataDir string) (c Current, err error) {
	text, err := durable.ReadSealed(fs, CurrentPath(fs, dataDir))
	switch {
	case errors.Is(err, iofs.ErrNotExist):
		return c, fmt.Errorf("%w: %w", ErrStoreMissing, err)
	case err != nil:
		return c, fmt.Errorf("%w: which store counts is not known: replace this member: %w", ErrCorrupt, err)
	}
	if _, err := durable.CutHead(text, CurrentName, CurrentForm); errors.Is(err, level.ErrLater) {
		return c, fmt.Errorf("%w: %s: %w", ErrNewer, CurrentPath(fs, dataDir), err)
	}
	if _, err := fmt.Sscanf(text, currentFormat, &c.Generation, &c.Installed.Index, &c.Installed.Term); err != nil ||
		c.text() != text {
		return Current{}, fmt.Errorf("%w: %s holds %q, which no build has written: replace this member", ErrForeign,
			CurrentPath(fs, dataDir), text)
	}
	return c, nil
}

// Switch makes c the generation that counts, durably. After an error either may count at the next start.
func Switch(fs env.FS, dataDir string, c Current) error {
	if err := durable.WriteSealed(fs, CurrentPath(fs, dataDir), c.text()); err != nil {
		return fmt.Errorf("snapshot: switch to generation %d: %w", c.Generation, err)
	}
	return nil
}

// CurrentPath is the file that names the store that counts.
func CurrentPath(fs env.FS, dataDir string) string {
	return fs.PathJoin(dataDir, StoresDir, currentFile)
}

// StorePath is where a generation lies.
func StorePath(fs env.FS, dataDir string, generation uint64) string {
	return fs.PathJoin(dataDir, StoresDir, strconv.FormatUint(generation, 10))
}

// Stage moves the snapshot in dir, a directory in WorkDir, to the place of a generation that does not count yet, durably.
// Files that an earlier attempt left there go. The snapshot can be opened there as a store.
func Stage(fs env.FS, dataDir, dir string, generation uint64) error {
	path := StorePath(fs, dataDir, generation)
	if err := stage(fs, dir, path); err != nil {
		return fmt.Errorf("snapshot: stage %s as generation %d: %w", dir, generation, err)
	}
	return nil
}

func stage(fs env.FS, dir, path string) error {
	if _, err := loadManifest(fs, dir); err != nil {
		return err
	}
	if err := fs.RemoveAll(path); err != nil {
		return err
	}
	if err := fs.Rename(dir, path); err != nil {
		return err
	}
	// The manifest has done its work; the engine should meet none but its own files.
	if err := fs.Remove(fs.PathJoin(path, manifestName)); err != nil {
		return err
	}
	for _, changed := range []string{path, fs.PathDir(path), fs.PathDir(dir)} {
		if err := durable.SyncDir(fs, changed); err != nil {
			return err
		}
	}
	return nil
}

// Generations lists those that are there, whether they count or not.
func Generations(fs env.FS, dataDir string) ([]uint64, error) {
	names, err := fs.List(fs.PathJoin(dataDir, StoresDir))
	if errors.Is(err, iofs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("snapshot: look for stores: %w", err)
	}
	var all []uint64
	for _, name := range names {
		if number, err := strconv.ParseUint(name, 10, 64); err == nil {
			all = append(all, number)
		}
	}
	return all, nil
}

// Find is Load, and returns ErrStoreMissing if the generation that counts is not there. It changes nothing.
func Find(fs env.FS, dataDir string) (Current, error) {
	current, err := Load(fs, dataDir)
	if err != nil {
		return current, err
	}
	path := StorePath(fs, dataDir, current.Generation)
	if _, err := fs.Stat(path); errors.Is(err, iofs.ErrNotExist) {
		return current, fmt.Errorf("%w: %s", ErrStoreMissing, path)
	}
	return current, nil
}

// Recover removes the snapshots that were being built or received when the member stopped, and every generation but the
// one that counts. It must run before the store is opened. It removes no generation if it cannot tell which one counts.
func Recover(fs env.FS, dataDir string) (Current, error) {
	current, err := Find(fs, dataDir)
	if err != nil {
		return current, err
	}
	all, err := Generations(fs, dataDir)
	if err != nil {
		return current, err
	}
	for _, generation := range all {
		if generation == current.Generation {
			continue
		}
		if err := Remove(fs, dataDir, generation); err != nil {
			return current, err
		}
	}
	if err := fs.RemoveAll(fs.PathJoin(dataDir, WorkDir)); err != nil {
		return current, fmt.Errorf("snapshot: recover: %w", err)
	}
	return current, nil
}

// Remove removes a generation that does not count. If a power loss brings it back, it goes at the next start.
func Remove(fs env.FS, dataDir string, generation uint64) error {
	if err := fs.RemoveAll(StorePath(fs, dataDir, generation)); err != nil {
		return fmt.Errorf("snapshot: remove generation %d: %w", generation, err)
	}
	return nil
}
