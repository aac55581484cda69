package member

import (
	"encoding/json"
	"fmt"

	"github.com/cockroachdb/errors/oserror"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/storage/durable"
)

// Small files beside the log, each a line of JSON and a line with its checksum: what this member knows of others' data
// directories, that its own is of no use any more, and, until there is data, how far its founding is.

const (
	seenFile     = "peers"
	lostFile     = "lost"
	foundingFile = "founding"
)

// LostError says that a data directory can never be used by its member again.
type LostError struct {
	Reason identity.Reason `json:"reason"`
	Text   string          `json:"text"`
}

func (e *LostError) Error() string { return e.Text }

// FoundingRecord is what a member has on disk before it has data.
type FoundingRecord struct {
	Storage consensus.StorageID `json:"storage"`
	Roster  []identity.Bound    `json:"roster,omitempty"`
}

// SeenPeers returns what is remembered of others' data directories. Damage is no reason to stay away: what was seen is
// learned again, but for copies that come back before their originals.
func (d *Data) SeenPeers() ([]identity.Seen, error) {
	var seen []identity.Seen
	_, err := readRecord(&d.Options, seenFile, &seen)
	return seen, err
}

// RememberPeers replaces what SeenPeers returns, on disk.
func (d *Data) RememberPeers(seen []identity.Seen) error {
	return writeRecord(&d.Options, seenFile, seen)
}

// CheckLost returns a *LostError if the directory was found to be of no use any more.
func CheckLost(options DataOptions) error {
	var lost LostError
	switch found, err := readRecord(&options, lostFile, &lost); {
	case err != nil:
		return err
	case found:
		return &lost
	}
	return nil
}

// MarkLost records that the directory is of no use any more: CheckLost tells so from now on.
func (d *Data) MarkLost(lost *LostError) error { return writeRecord(&d.Options, lostFile, lost) }

// ReadFounding returns how far a founding is; the zero record if it has not begun.
func ReadFounding(options DataOptions) (FoundingRecord, error) {
	var record FoundingRecord
	_, err := readRecord(&options, foundingFile, &record)
	return record, err
}

// WriteFounding records how far it is, on disk.
func WriteFounding(options DataOptions, record FoundingRecord) error {
	if err := durable.MakeDir(options.FS, options.Dir); err != nil {
		return fmt.Errorf("member: create data directory: %w", err)
	}
	return writeRecord(&options, foundingFile, record)
}

// ForgetFounding removes the record once there is data.
func ForgetFounding(options DataOptions) error {
	err := options.FS.Remove(options.FS.PathJoin(options.Dir, foundingFile))
	if oserror.IsNotExist(err) {
		return nil
	}
	return err
}

func readRecord(options *DataOptions, name string, into any) (found bool, err error) {
	path := options.FS.PathJoin(options.Dir, name)
	if _, err := options.FS.Stat(path); oserror.IsNotExist(err) {
		return false, nil
	}
	text, err := durable.ReadSealed(options.FS, path)
	if err != nil {
		return false, fmt.Errorf("member: %w", err)
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return false, fmt.Errorf("member: read %s: %w", path, err)
	}
	return true, nil
}

func writeRecord(options *DataOptions, name string, record any) error {
	text, err := json.Marshal(record)
	if err != nil {
		return err
	}
	if err := durable.WriteSealed(options.FS, options.FS.PathJoin(options.Dir, name), string(text)+"\n"); err != nil {
		return fmt.Errorf("member: %w", err)
	}
	return nil
}
