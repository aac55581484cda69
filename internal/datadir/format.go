package datadir

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/cockroachdb/errors/oserror"

	"github.com/quorate/quorate/internal/storage/durable"
	"github.com/quorate/quorate/internal/storage/snapshot"
	"github.com/quorate/quorate/internal/storage/wal"
)

// Errors of CheckFormat. They say nothing about damage: see Damaged.
var (
	// ErrOlderBuild means that an earlier build wrote the directory, in a form that this one does not read.
	ErrOlderBuild = errors.New("this data directory was written by an earlier build, in a form that this build does not " +
		"read. Nothing is damaged and nothing was changed. Start this member with the build that wrote it. To come to this " +
		"build, save a snapshot while the earlier one serves (`quorate snapshot save`), and make new directories for all " +
		"members of it with this one (`quorate snapshot restore`). Move no directory aside, and reset or recover no member, " +
		"because of this")
	// ErrNewerBuild means that a later build wrote the directory.
	ErrNewerBuild = errors.New("this data directory was written by a later build, in a form that this build does not read. " +
		"Nothing is damaged and nothing was changed: start this member with that build")
)

// oldStore is where builds had the store before there were generations.
const oldStore = "store"

// CheckFormat returns ErrOlderBuild or ErrNewerBuild if another build wrote the directory in another form. It comes before
// anything else is read: to whoever expects this build's form, another one looks like damage.
func CheckFormat(options Options) error {
	if _, err := options.FS.Stat(options.bootsFile()); err != nil {
		return nil // see Exists
	}
	current := snapshot.CurrentPath(options.FS, options.Dir)
	_, missing := options.FS.Stat(current)
	if _, err := options.FS.Stat(options.FS.PathJoin(options.Dir, oldStore)); err == nil && oserror.IsNotExist(missing) {
		return fmt.Errorf("%s: %w (its store lies in %s/)", options.Dir, ErrOlderBuild, oldStore)
	}
	if err := checkVersion(&options, "boots file", options.bootsFile(), bootsFormat); err != nil {
		return err
	}
	if err := checkVersion(&options, "record of the store", current, snapshot.CurrentFormat); err != nil {
		return err
	}
	switch err := wal.CheckVersion(options.WAL()); {
	case errors.Is(err, wal.ErrOlderVersion):
		return fmt.Errorf("%s: %w (%w)", options.Dir, ErrOlderBuild, err)
	case errors.Is(err, wal.ErrNewerVersion):
		return fmt.Errorf("%s: %w (%w)", options.Dir, ErrNewerBuild, err)
	}
	return nil
}

// checkVersion compares the number at the end of the first line of a file with that of format. A file that is damaged, or
// begins otherwise, is for others to judge.
func checkVersion(options *Options, what, path, format string) error {
	text, err := durable.ReadSealed(options.FS, path)
	if err != nil {
		return nil
	}
	line, _, _ := strings.Cut(text, "\n")
	mine, _, _ := strings.Cut(format, "\n")
	at := strings.LastIndex(mine, " ") + 1
	own, _ := strconv.Atoi(mine[at:]) // it is a constant
	digits, ok := strings.CutPrefix(line, mine[:at])
	number, err := strconv.Atoi(digits)
	switch {
	case !ok || err != nil || number == own:
		return nil
	case number < own:
		return fmt.Errorf("%s: %w (%s of version %d, this build reads %d)", options.Dir, ErrOlderBuild, what, number, own)
	}
	return fmt.Errorf("%s: %w (%s of version %d, this build reads %d)", options.Dir, ErrNewerBuild, what, number, own)
}
