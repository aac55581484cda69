package datadir

import (
	"errors"
	"fmt"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/storage/atrest"
	"github.com/quorate/quorate/internal/storage/durable"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/snapshot"
	"github.com/quorate/quorate/internal/storage/wal"
)

// smallFiles are all files of readRecord, and smallForm is the number of the form of each. A field that an earlier build may
// ignore needs no new number. Any other change does; the table then gets a number for each file.
var smallFiles = [...]string{seenFile, lostFile, foundingFile, droppedFile, forcedFile, addressesFile, restoredFile}

// CheckFormat returns ErrNewerBuild if a file says that a later build wrote it in another form. Call it before anything else is
// read, or written: to a build that expects its own form, another form looks like damage. It reads the numbers of forms alone,
// and takes no lock; Open looks at the rest.
func CheckFormat(options Options) error {
	if err := refuseLinks(&options); err != nil {
		return err
	}
	if options.Keys == nil {
		if err := atrest.CheckPlain(options.FS, options.bootsFile()); err != nil {
			return fmt.Errorf("datadir: %w", err)
		}
	}
	fs, current := options.FS, snapshot.CurrentPath(options.FS, options.Dir)
	errs := []error{
		durable.CheckHead(fs, options.bootsFile(), bootsName, bootsForm),
		durable.CheckHead(fs, current, snapshot.CurrentName, snapshot.CurrentForm),
	}
	for _, name := range smallFiles {
		errs = append(errs, durable.CheckHead(fs, fs.PathJoin(options.Dir, name), name, lastForm(name)))
	}
	for _, err := range append(errs, wal.CheckVersion(options.WAL())) {
		if err != nil {
			return newerBuild(fmt.Errorf("%s: %w", options.Dir, err))
		}
	}
	return nil
}

// refuseLinks refuses a link in the place of a directory in which a member removes files that it does not need. An operator may
// link the directory above all of it, that of the member in it, and that of the log.
func refuseLinks(options *Options) error {
	fs := options.FS
	if info, err := fs.Stat(options.Dir); err != nil || !info.IsDir() {
		return nil // there is none yet, or none can be: Open says why
	}
	if err := files.CheckDirectory(fs, fs.PathJoin(options.Dir, snapshot.StoresDir)); err != nil {
		return fmt.Errorf("datadir: %w", err)
	}
	all, err := snapshot.Generations(fs, options.Dir)
	if err != nil {
		return err
	}
	for _, generation := range all {
		if err := files.CheckDirectory(fs, options.storeDir(generation)); err != nil {
			return fmt.Errorf("datadir: %w", err)
		}
	}
	return nil
}

// CheckStore returns an error if a later build wrote the store that counts, or raised its feature level. It opens the store for
// reading alone, where options can: opening it otherwise writes the engine's manifest anew. Other errors are left to Open.
func CheckStore(options Options) error {
	if options.OpenView == nil {
		return nil
	}
	current, err := snapshot.Load(options.FS, options.Dir)
	if err != nil {
		return newerOnly(options.Dir, err)
	}
	dir := options.storeDir(current.Generation)
	if _, err := options.FS.Stat(dir); err != nil {
		return nil
	}
	view, err := options.OpenView(dir)
	if err != nil {
		return newerOnly(dir, err)
	}
	return newerOnly(dir, errors.Join(apply.CheckLevel(view, options.Apply), view.Close()))
}

func newerOnly(dir string, err error) error {
	if !errors.Is(err, level.ErrLater) {
		return nil
	}
	return newerBuild(fmt.Errorf("%s: %w", dir, err))
}
