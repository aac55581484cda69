package datadir

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cockroachdb/errors/oserror"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/storage/durable"
)

// Small files beside the log, each a line with its name and the number of its form, a line of JSON, and a line with its
// checksum.
const (
	seenFile     = "peers"    // what this member knows of the data directories of other members
	lostFile     = "lost"     // this member's data can never be used again
	foundingFile = "founding" // the state of the cluster's founding, until there is data
	droppedFile  = "dropped"  // the members that the recovery of this directory dropped
	forcedFile   = "forced"   // a start with --force-new-cluster was requested
)

// smallForm is the number of the form of each of them: see smallFiles. The file of a restore has another one, too.
const smallForm = 1

// lastForm is the highest number of a file's form that this build reads.
func lastForm(name string) int {
	if name == restoredFile {
		return restoredForm
	}
	return smallForm
}

// LostError says that a data directory can never be used by its member again.
type LostError struct {
	Reason identity.Reason `json:"reason"`
	Text   string          `json:"text"`
}

func (e *LostError) Error() string { return e.Text }

// Founding is the state of a founding on disk, before the member has data.
type Founding struct {
	Storage  consensus.StorageID `json:"storage"`
	Bindings []identity.Bound    `json:"roster,omitempty"`
	Excluded bool                `json:"excluded,omitempty"` // identity.Founder
}

// SeenPeers returns the stored state of other members' data directories. A member may start without it: it learns the state
// again, but does not recognize a copy that connects before its original.
func (d *Data) SeenPeers() ([]identity.Seen, error) {
	var seen []identity.Seen
	_, err := readRecord(&d.Options, seenFile, &seen)
	return seen, err
}

// WriteSeenPeers replaces what SeenPeers returns.
func (d *Data) WriteSeenPeers(seen []identity.Seen) error {
	return writeRecord(&d.Options, seenFile, seen)
}

// CheckLost returns a *LostError if MarkLost was called for the directory.
func CheckLost(options Options) error {
	var lost LostError
	switch found, err := readRecord(&options, lostFile, &lost); {
	case err != nil:
		return err
	case found:
		return &lost
	}
	return nil
}

// MarkLost records that the directory can never be used again.
func (d *Data) MarkLost(lost *LostError) error { return writeRecord(&d.Options, lostFile, lost) }

// ReadFounding returns the state of a founding; the zero value if it has not begun.
func ReadFounding(options Options) (Founding, error) {
	var record Founding
	_, err := readRecord(&options, foundingFile, &record)
	return record, err
}

// WriteFounding records the state of a founding.
func WriteFounding(options Options, record Founding) error {
	if err := durable.MakeDir(options.FS, options.Dir); err != nil {
		return fmt.Errorf("datadir: create data directory: %w", err)
	}
	return writeRecord(&options, foundingFile, record)
}

// RemoveFounding removes the file once there is data.
func RemoveFounding(options Options) error {
	err := options.FS.Remove(options.FS.PathJoin(options.Dir, foundingFile))
	if oserror.IsNotExist(err) {
		return nil
	}
	return err
}

// dropped is the content of the file of dropped members. It counts only if the log has the same epoch, because the file is
// written before the log.
type dropped struct {
	Epoch   consensus.Epoch    `json:"epoch"`
	Members []consensus.Member `json:"members"`
}

// WriteDropped records the members that a recovery drops, before the recovery begins epoch.
func WriteDropped(options Options, epoch consensus.Epoch, members []consensus.Member) error {
	return writeRecord(&options, droppedFile, dropped{epoch, members})
}

// Dropped returns the members that were dropped by the recovery that began the present epoch, if the recovery was done in this
// directory.
func (d *Data) Dropped() ([]consensus.Member, error) {
	var record dropped
	found, err := readRecord(&d.Options, droppedFile, &record)
	if err != nil || !found || record.Epoch != d.Identity.Epoch {
		return nil, err
	}
	return record.Members, nil
}

// forced is the content of the file of a start with --force-new-cluster. It counts once the log has this epoch or a later one,
// because the file is written before the log. If the data has this epoch already, it counts at once: there was nothing to
// force.
type forced struct {
	Epoch consensus.Epoch `json:"epoch"`
}

// WriteForced records that the data in options was or will be forced into epoch. If the data has this epoch already, it records
// only that the operator requested it.
func WriteForced(options Options, epoch consensus.Epoch) error {
	return writeRecord(&options, forcedFile, forced{epoch})
}

// Forced reports whether a start with --force-new-cluster was recorded for data whose epoch is now.
func Forced(options Options, now consensus.Epoch) (bool, error) {
	var record forced
	found, err := readRecord(&options, forcedFile, &record)
	return found && now.Number >= record.Epoch.Number, err
}

func readRecord(options *Options, name string, into any) (found bool, err error) {
	path := options.FS.PathJoin(options.Dir, name)
	if _, err := options.FS.Stat(path); oserror.IsNotExist(err) {
		return false, nil
	}
	text, err := durable.ReadSealed(options.FS, path)
	if err != nil {
		return false, fmt.Errorf("datadir: %w", err)
	}
	rest, err := durable.CutHead(text, name, smallForm)
	if lastForm(name) > smallForm && errors.Is(err, level.ErrLater) {
		rest, err = durable.CutHead(text, name, lastForm(name))
	}
	if err != nil {
		return false, newerBuild(fmt.Errorf("datadir: read %s: %w", path, err))
	}
	if err := json.Unmarshal([]byte(rest), into); err != nil {
		return false, fmt.Errorf("datadir: read %s: %w", path, err)
	}
	return true, nil
}

func writeRecord(options *Options, name string, record any) error {
	return writeRecordAs(options, name, smallForm, record)
}

func writeRecordAs(options *Options, name string, form int, record any) error {
	text, err := json.Marshal(record)
	if err != nil {
		return err
	}
	if err := durable.WriteSealed(options.FS, options.FS.PathJoin(options.Dir, name),
		durable.Head(name, form)+string(text)+"\n"); err != nil {
		return fmt.Errorf("datadir: %w", err)
	}
	return nil
}
