package datadir

import (
	"errors"

	"github.com/cockroachdb/errors/oserror"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/storage/durable"
	"github.com/quorate/quorate/internal/storage/snapshot"
)

// A directory that was restored from a backup has a store that holds its contents, and the file restoredFile, which says whose
// it is. It has no log: the first start makes it, once the members have met as in any founding. That start removes the file.
const restoredFile = "restored"

// Restored says what cluster a restored directory is of.
type Restored struct {
	Name    string              `json:"name"`
	Self    consensus.MemberID  `json:"self"`
	Cluster consensus.ClusterID `json:"cluster"`
	Members []consensus.Member  `json:"members"` // sorted by id; all vote
	From    string              `json:"from"`    // what it was restored from, for people
}

// restoredBase is the position of restored contents: of an entry that nobody has in a log, so that a member which lacks the
// contents is sent a snapshot.
var restoredBase = consensus.Position{Index: 1, Term: 1}

// ReadRestored returns nil if the directory was not restored, or has started since.
func ReadRestored(options Options) (*Restored, error) {
	var r Restored
	found, err := readRecord(&options, restoredFile, &r)
	if err != nil || !found {
		return nil, err
	}
	return &r, nil
}

// WriteRestored marks a directory as one that was restored and has not started.
func WriteRestored(options Options, r *Restored) error { return writeRecord(&options, restoredFile, r) }

// partialSuffix is added to the name of a directory while it is being restored.
const partialSuffix = ".partial"

// ErrPartial means that a directory was being restored when that broke off. It holds nothing that can be used.
var ErrPartial = errors.New("a restore into this directory was interrupted, or has failed, and what it left is of no use")

// MarkPartial makes what FinishRestore takes for a restore that was interrupted: it has failed, and the directory must not be
// taken for an empty one.
func MarkPartial(options Options) error {
	return durable.MakeDir(options.FS, options.Dir+partialSuffix)
}

// FinishRestore completes a restore that a crash has interrupted just before its end. It returns ErrPartial if one was
// interrupted earlier and not repeated since.
func FinishRestore(options Options) error {
	_, partial := options.FS.Stat(options.Dir + partialSuffix)
	_, whole := options.FS.Stat(options.Dir)
	if partial != nil || !oserror.IsNotExist(whole) {
		return nil
	}
	made := options
	made.Dir = options.Dir + partialSuffix
	if restored, err := ReadRestored(made); err != nil || restored == nil {
		return ErrPartial
	}
	return moveWhole(options)
}

// moveWhole gives a directory its name. It is the last step.
func moveWhole(options Options) error {
	if err := options.FS.Rename(options.Dir+partialSuffix, options.Dir); err != nil {
		return err
	}
	return durable.SyncDir(options.FS, options.FS.PathDir(options.Dir))
}

// Restore makes a directory of which there is nothing yet, or only what an interrupted restore left. fill fills its store, and
// returns what is to be known of it. A crash leaves the whole directory or none. Its first start makes the rest: see Create.
// What has the directory's name already is moved to aside, if that is given.
func Restore(options Options, aside string, fill func(*apply.Loader) (*Restored, error)) error {
	partial := options
	partial.Dir, partial.WALDir = options.Dir+partialSuffix, ""
	if err := options.FS.RemoveAll(partial.Dir); err != nil {
		return err
	}
	err := durable.MakeDir(options.FS, partial.Dir)
	if err == nil {
		err = fillStore(partial, fill)
	}
	if err == nil {
		err = durable.SyncDir(options.FS, options.FS.PathJoin(partial.Dir, snapshot.StoresDir))
	}
	if err == nil {
		err = durable.SyncDir(options.FS, partial.Dir)
	}
	if err != nil {
		return errors.Join(err, options.FS.RemoveAll(partial.Dir))
	}
	if aside != "" {
		if err := options.FS.Rename(options.Dir, aside); err != nil {
			return err
		}
	}
	return moveWhole(options)
}

func fillStore(options Options, fill func(*apply.Loader) (*Restored, error)) error {
	store, err := options.OpenEngine(options.storeDir(firstGeneration))
	if err != nil {
		return err
	}
	loader := apply.NewLoader(store)
	restored, err := fill(loader)
	if err != nil {
		loader.Discard()
	}
	if err = errors.Join(err, store.Close()); err != nil {
		return err
	}
	return WriteRestored(options, restored)
}
