package datadir

import (
	"encoding/json"
	"fmt"

	"github.com/cockroachdb/errors/oserror"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/storage/durable"
)

// Small files beside the log, each a line of JSON and a line with its checksum.
const (
	seenFile     = "peers"    // what this member knows of the data directories of others
	lostFile     = "lost"     // its own can never be used again
	foundingFile = "founding" // how far the founding of the cluster is, until there is data
	droppedFile  = "dropped"  // the members that the recovery of this directory dropped
	forcedFile   = "forced"   // a start was asked to force a new cluster
)

// LostError says that a data directory can never be used by its member again.
type LostError struct {
	Reason identity.Reason `json:"reason"`
	Text   string          `json:"text"`
}

func (e *LostError) Error() string { return e.Text }

// Founding is what a member has on disk before it has data.
type Founding struct {
	Storage  consensus.StorageID `json:"storage"`
	Bindings []identity.Bound    `json:"roster,omitempty"`
	Excluded bool                `json:"excluded,omitempty"` // identity.Founder
}

// SeenPeers returns what is on disk about the data directories of others. A member may start without it: it learns it
// again, but does not recognize a copy that comes back before its original.
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

// ReadFounding returns how far a founding is; the zero value if it has not begun.
func ReadFounding(options Options) (Founding, error) {
	var record Founding
	_, err := readRecord(&options, foundingFile, &record)
	return record, err
}

// WriteFounding records how far a founding is.
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

// dropped is what the file of the dropped members holds. It counts only if the log is of the same epoch: the file is
// written first.
type dropped struct {
	Epoch   consensus.Epoch    `json:"epoch"`
	Members []consensus.Member `json:"members"`
}

// WriteDropped records whom a recovery drops that is about to begin epoch.
func WriteDropped(options Options, epoch consensus.Epoch, members []consensus.Member) error {
	return writeRecord(&options, droppedFile, dropped{epoch, members})
}

// Dropped returns the members that the recovery which began this directory's epoch has dropped, if it was done here.
func (d *Data) Dropped() ([]consensus.Member, error) {
	var record dropped
	found, err := readRecord(&d.Options, droppedFile, &record)
	if err != nil || !found || record.Epoch != d.Identity.Epoch {
		return nil, err
	}
	return record.Members, nil
}

// forced is what the file of a start with --force-new-cluster holds. It counts once the log is of this epoch or a later one:
// the file is written first. The epoch that the data has counts at once: nothing was to be forced.
type forced struct {
	Epoch consensus.Epoch `json:"epoch"`
}

// WriteForced records that the data in options was, or is about to be, forced into epoch; or, with the epoch that it has, that
// it was asked to be.
func WriteForced(options Options, epoch consensus.Epoch) error {
	return writeRecord(&options, forcedFile, forced{epoch})
}

// Forced reports whether a start with --force-new-cluster was recorded for data that is of epoch now.
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
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return false, fmt.Errorf("datadir: read %s: %w", path, err)
	}
	return true, nil
}

func writeRecord(options *Options, name string, record any) error {
	text, err := json.Marshal(record)
	if err != nil {
		return err
	}
	if err := durable.WriteSealed(options.FS, options.FS.PathJoin(options.Dir, name), string(text)+"\n"); err != nil {
		return fmt.Errorf("datadir: %w", err)
	}
	return nil
}
