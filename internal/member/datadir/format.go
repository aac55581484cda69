package datadir

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/quorate/quorate/internal/storage/durable"
	"github.com/quorate/quorate/internal/storage/snapshot"
	"github.com/quorate/quorate/internal/storage/wal"
)

// ErrNewerBuild means that a later build wrote the directory. It says nothing about damage: see Damaged.
var ErrNewerBuild = errors.New("this data directory was written by a later build, in a form that this build does not read. " +
	"Nothing is damaged and nothing was changed: start this member with that build")

// CheckFormat returns ErrNewerBuild if a later build wrote the directory in another form. Call it before anything else is read:
// to a build that expects its own form, another form looks like damage.
func CheckFormat(options Options) error {
	if _, err := options.FS.Stat(options.bootsFile()); err != nil {
		return nil // see Exists
	}
	current := snapshot.CurrentPath(options.FS, options.Dir)
	if err := checkVersion(&options, "boots file", options.bootsFile(), bootsFormat); err != nil {
		return err
	}
	if err := checkVersion(&options, "record of the store", current, snapshot.CurrentFormat); err != nil {
		return err
	}
	if err := wal.CheckVersion(options.WAL()); errors.Is(err, wal.ErrNewerVersion) {
		return fmt.Errorf("%s: %w (%w)", options.Dir, ErrNewerBuild, err)
	}
	return nil
}

// checkVersion compares the number at the end of the first line of a file with that of format. It accepts a file that is
// damaged or begins otherwise: the code that reads the file reports that.
func checkVersion(options *Options, what, path, format string) error {
	text, err := durable.ReadSealed(options.FS, path)
	if err != nil {
		return nil
	}
	line, _, _ := strings.Cut(text, "\n")
	mine, _, _ := strings.Cut(format, "\n")
	at := strings.LastIndex(mine, " ") + 1
	own, _ := strconv.Atoi(mine[at:]) // format is a constant
	digits, ok := strings.CutPrefix(line, mine[:at])
	number, err := strconv.Atoi(digits)
	if !ok || err != nil || number <= own {
		return nil
	}
	return fmt.Errorf("%s: %w (%s of version %d, this build reads %d)", options.Dir, ErrNewerBuild, what, number, own)
}
