package datadir

import (
	"errors"
	"fmt"
	"strings"

	"github.com/quorate/quorate/internal/storage/wal"
)

// ErrLogElsewhere means that --wal-dir holds no log but the data directory does: nothing is lost, and the flag is wrong.
var ErrLogElsewhere = errors.New("the log lies elsewhere")

// noLog extends wal.ErrNoLog by where the log may be. It returns other errors unchanged.
func (o *Options) noLog(err error) error {
	if !errors.Is(err, wal.ErrNoLog) {
		return err
	}
	inside := o.FS.PathJoin(o.Dir, "wal")
	switch {
	case o.WALDir == "" || o.WALDir == inside:
		return fmt.Errorf("datadir: %s is the data of a member whose log is not in %s: give --wal-dir if the member was "+
			"started with it before, and see that the log's disk is mounted: %w", o.Dir, inside, err)
	case o.holdsLog(inside):
		return fmt.Errorf("datadir: %w: %s is the data of a member whose log is not in %s, and a log lies in %s: drop "+
			"--wal-dir; or, to move the log, move all files of %s to %s while the process is stopped. Nothing was changed",
			ErrLogElsewhere, o.Dir, o.WALDir, inside, inside, o.WALDir)
	}
	return fmt.Errorf("datadir: %s is the data of a member whose log is not in %s: correct --wal-dir if it is wrong, and see "+
		"that the log's disk is mounted: %w", o.Dir, o.WALDir, err)
}

func (o *Options) holdsLog(dir string) bool {
	names, err := o.FS.List(dir)
	for _, name := range names {
		if err == nil && strings.HasSuffix(name, ".wal") {
			return true
		}
	}
	return false
}
