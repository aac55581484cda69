package datadir

import (
	"errors"

	"github.com/cockroachdb/errors/oserror"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/storage/durable"
	"github.com/quorate/quorate/internal/storage/snapshot"
)

// restoredFile is in a directory that was restored from a backup, beside the store with the backup's contents, and says which
// member and cluster the directory belongs to. The directory has no log: the first start makes it, once the members have
// exchanged their storage ids as in any founding. That start removes the file.
const restoredFile = "restored"

// Restored says which cluster a restored directory belongs to.
type Restored struct {
	Name    string              `json:"name"`
	Self    consensus.MemberID  `json:"self"`
	Cluster consensus.ClusterID `json:"cluster"`
	Members []consensus.Member  `json:"members"` // sorted by id; all are voters
	From    string              `json:"from"`    // the source of the restore, for operators
	// Level is the feature level that the contents need; zero: the first.
	Level level.Level `json:"level,omitempty"`
}

// restoredForm is the number of the file's form if the contents need a feature level: a build without it refuses the file.
const restoredForm = smallForm + 1

// restoredBase is the position of restored contents. No member has an entry there in its log, so a member without the contents
// is sent a snapshot.
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
func WriteRestored(options Options, r *Restored) error {
	if r.Level > level.First {
		return writeRecordAs(&options, restoredFile, restoredForm, r)
	}
	return writeRecord(&options, restoredFile, r)
}

// partialSuffix is appended to a directory's name while the directory is being restored.
const partialSuffix = ".partial"

// ErrPartial means that a restore into the directory was interrupted. Its remains are of no use.
var ErrPartial = errors.New("a restore into this directory was interrupted, or has failed, and what it left is of no use")

// MarkPartial leaves a failed restore in the form in which FinishRestore finds an interrupted one: the directory must not be
// taken for an empty one.
func MarkPartial(options Options) error {
	return durable.MakeDir(options.FS, options.Dir+partialSuffix)
}

// FinishRestore completes a restore that a crash interrupted just before its last step. It returns ErrPartial if a restore was
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

// moveWhole gives a restored directory its final name. It is the last step of a restore.
func moveWhole(options Options) error {
	if err := options.FS.Rename(options.Dir+partialSuffix, options.Dir); err != nil {
		return err
	}
	return durable.SyncDir(options.FS, options.FS.PathDir(options.Dir))
}

// Restore makes the directory of a restored member, which must not exist, or only as the remains of an interrupted restore.
// fill fills its store and returns the content of its file. A crash leaves the whole directory or none. The first start makes
// the other parts: see Create. If aside is given, Restore first moves an existing directory there.
func Restore(options Options, aside string, fill func(*apply.Loader) (*Restored, error)) error {
	return restoreWith(options, aside, func(partial Options) error { return fillStore(partial, fill) })
}

func restoreWith(options Options, aside string, make func(partial Options) error) error {
	partial := options
	partial.Dir, partial.WALDir = options.Dir+partialSuffix, ""
	if err := options.FS.RemoveAll(partial.Dir); err != nil {
		return err
	}
	err := durable.MakeDir(options.FS, partial.Dir)
	if err == nil {
		err = make(partial)
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

// RestoreStore is Restore, for contents that are a store: put makes it in a directory that does not exist, with no cluster's
// rows (apply.Machine.Refound), and with files that are durable.
func RestoreStore(options Options, put func(dir string) (*Restored, error)) error {
	return restoreWith(options, "", func(partial Options) error {
		if err := durable.MakeDir(options.FS, options.FS.PathJoin(partial.Dir, snapshot.StoresDir)); err != nil {
			return err
		}
		restored, err := put(partial.storeDir(firstGeneration))
		if err != nil {
			return err
		}
		return markRestored(partial, restored)
	})
}

// markRestored marks a directory as one that was restored, once all of its store is durable: after a crash the mark says that
// the directory is whole.
func markRestored(options Options, r *Restored) error {
	store := options.storeDir(firstGeneration)
	for _, dir := range []string{store, options.FS.PathDir(store), options.Dir} {
		if err := durable.SyncDir(options.FS, dir); err != nil {
			return err
		}
	}
	return WriteRestored(options, r)
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
	return markRestored(options, restored)
}
